/* Somebody maps pages just where the heap would grow next, again and again: it goes on behind them, and a block that another
 * allocator has there is still that allocator's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { STEP = 1 << 20, ROUNDS = 40 };
static char *others[ROUNDS];
static int handed_on;

/* What the library hands blocks on to that are not its own. */
void __libc_free(void *block) {
    for (int i = 0; i < ROUNDS; i++)
        if ((char *)block == others[i] + 64) handed_on++;
}

/* The mappings that a block lies in: the end of the last one that touches the one before. */
static char *end_of_window(char *block) {
    FILE *maps = fopen("/proc/self/maps", "r");
    uintptr_t from, to, end = 0;
    char line[512];
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx", &from, &to) == 2) {
            if (from <= (uintptr_t)block && (uintptr_t)block < to) end = to;
            else if (end && from == end) end = to;
        }
    fclose(maps);
    return (char *)end;
}

int main(void) {
    char *blocks[ROUNDS], *highest = NULL;
    for (int i = 0; i < ROUNDS; i++) {
        /* A third are larger than a page: two kilobytes to four mebibytes. */
        size_t size = i % 3 ? 4096 : (size_t)4096 << (i % 11);
        for (;;) {
            char *end = end_of_window(highest ? highest : malloc(STEP));
            others[i] = mmap(end, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            if (others[i] != MAP_FAILED) break;
        }
        memset(others[i], i + 1, size);
        /* More than can be had before the obstacle. */
        blocks[i] = malloc(17u << 20);
        if (!blocks[i]) return printf("no memory in round %d\n", i), 1;
        memset(blocks[i], ~i, 17u << 20);
        if (blocks[i] > highest) highest = blocks[i];
        int status = 0;
        if (i % 8 == 0) {
            pid_t pid = fork();
            if (pid == 0) {
                char *more = malloc(40u << 20);
                if (more) memset(more, 1, 40u << 20);
                _exit(!more);
            }
            waitpid(pid, &status, 0);
        }
        if (status) return printf("a child failed in round %d\n", i), 1;
    }
    int inside = 0;
    for (int i = 0; i < ROUNDS; i++) {
        inside += others[i] > blocks[0] && others[i] < highest;
        if (others[i][0] != i + 1 || others[i][4095] != i + 1) return printf("mapping %d was written to\n", i), 1;
        for (size_t at = 0; at < 17u << 20; at += 4096)
            if ((unsigned char)blocks[i][at] != (unsigned char)~i) return printf("block %d was written to\n", i), 1;
        free(others[i] + 64);
        free(blocks[i]);
    }
    if (handed_on != ROUNDS) return printf("%d of %d foreign blocks handed on\n", handed_on, ROUNDS), 1;
    printf("%d obstacles\n", inside);
    return 0;
}
