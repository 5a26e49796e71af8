/* Blocks that cross over from other allocators and back, and growth far beyond what is used. Each line of output is a broken
 * promise; "stranger" ends in a message and a signal. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_memalign(size_t, size_t);
void free_sized(void *, size_t) __attribute__((weak)); /* C23 */

static int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s\n", __LINE__, #x)))

/* Blocks of the C library's own malloc, as a library that was bound to it has them. */
static void of_the_c_library(void) {
    for (size_t size = 1; size < 3000000; size = size * 4 + 3) {
        char *p = __libc_malloc(size);
        memset(p, 5, size);
        CHECK(malloc_usable_size(p) >= size);
        char *q = realloc(p, size * 2); /* becomes one of ours, with all that was in it */
        CHECK(q && q[0] == 5 && q[size - 1] == 5);
        free(q);
        errno = 77, free(__libc_malloc(size));
        CHECK(errno == 77);
        free(__libc_memalign(256, size));
    }
}

/* Blocks that functions of the C library make for their callers. */
static void made_for_us(void) {
    char *line = NULL;
    CHECK(asprintf(&line, "%0500d", 5) == 500), free(line);
    char *folder = getcwd(NULL, 0);
    CHECK(folder && folder[0] == '/'), free(folder);
    free(strdup("x")), free(strndup("xyz", 2)), free(realpath("/proc/self", NULL));
    struct dirent **entries;
    int n = scandir("/proc/self/fd", &entries, NULL, alphasort);
    CHECK(n > 2);
    for (int i = 0; i < n; i++) free(entries[i]);
    free(entries);
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *found;
    CHECK(getaddrinfo("127.0.0.1", "80", &hints, &found) == 0), freeaddrinfo(found);
    size_t room = 0;
    line = NULL;
    FILE *stream = open_memstream(&line, &room);
    for (int i = 0; i < 10000; i++) fprintf(stream, "%d,", i);
    fclose(stream);
    CHECK(room == 48890 && strlen(line) == room), free(line);
}

/* 64 GiB of address space in growing steps: each block is there, or NULL with ENOMEM; and no flood of mappings. */
static void growth(void) {
    char *blocks[64];
    int n = 0;
    for (size_t size = 1 << 20, sum = 0; sum < (size_t)64 << 30; sum += size, size += size / 4, n++) {
        errno = 0;
        blocks[n] = malloc(size);
        CHECK(blocks[n] ? malloc_usable_size(blocks[n]) >= size : errno == ENOMEM);
        if (blocks[n]) blocks[n][0] = blocks[n][size - 1] = 1;
    }
    FILE *maps = fopen("/proc/self/maps", "r");
    int lines = 0;
    for (int c; (c = getc(maps)) != EOF;) lines += c == '\n';
    fclose(maps);
    CHECK(lines < 200);
    while (n--) free(blocks[n]);
    /* a page count of more than 32 bits is not cut */
    errno = 0;
    char *p = memalign(4096, ((size_t)1 << 44) + 4096);
    CHECK(p ? malloc_usable_size(p) > (size_t)1 << 44 : errno == ENOMEM);
    free(p);
}

/* Told sizes and alignments are not believed. */
static void wrong_sizes(void) {
    for (size_t size = 1; size < 2000000; size *= 3) {
        char *p = malloc(size), *q = malloc(size);
        memset(q, 9, size);
        if (free_sized) free_sized(p, size * 7); else free(p);
        p = malloc(size), memset(p, 3, size);
        CHECK(q[0] == 9 && q[size - 1] == 9);
        free(p), free(q);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) {
        char *pages = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        free(malloc(10)), free(pages + 4096 + 16); /* nobody's block */
        return 0;
    }
    of_the_c_library(), made_for_us(), growth(), wrong_sizes();
    return broken;
}
