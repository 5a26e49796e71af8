/* Blocks that realloc makes larger and smaller: alone, in each other's way, under fork. With "refused", mremap is not allowed. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) \
    do { \
        if (!(what)) { printf("%d: %s\n", __LINE__, #what); exit(1); } \
    } while (0)

enum { KIB = 1 << 10, MIB = 1 << 20 };

static void refuse_mremap(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mremap, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* A block with a stamp in each 512 bytes, at its start and at its end. */
typedef struct { uint64_t *words; size_t size; uint64_t seed; } Block;

static void stamp(Block *b, size_t from) {
    for (size_t at = from / 512; at < b->size / 512; at++) b->words[at * 64] = b->seed ^ at;
    ((char *)b->words)[b->size - 1] = (char)b->seed;
}

static void check(Block *b, size_t size) {
    for (size_t at = 0; at < size / 512; at++) CHECK(b->words[at * 64] == (b->seed ^ at));
    CHECK(!size || size < b->size || ((char *)b->words)[b->size - 1] == (char)b->seed);
}

static void resize(Block *b, size_t size) {
    size_t before = b->words ? b->size : 0, kept = before < size ? before : size;
    b->words = realloc(b->words, size);
    CHECK(b->words && malloc_usable_size(b->words) >= size);
    check(&(Block){b->words, before <= size ? before : size + 1, b->seed}, kept);
    b->size = size;
    stamp(b, kept & ~(size_t)511);
}

static int mappings(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    int lines = 0, c;
    while ((c = getc(maps)) != EOF) lines += c == '\n';
    fclose(maps);
    return lines;
}

static atomic_int stop;
static void *grow_in_turn(void *most) {
    for (uint64_t round = 1; !atomic_load(&stop); round++) {
        Block a = {0, 0, round}, b = {0, 0, ~round};
        for (size_t size = 8 * KIB; size <= (size_t)most; size *= 2) resize(&a, size), resize(&b, size);
        resize(&b, 20 * KIB);
        free(a.words);
        free(b.words);
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count > 1 && !strcmp(arguments[1], "refused")) refuse_mremap();
    int status, before = mappings();
    /* Alone it need hardly ever move, however small the steps are. */
    Block block = {0, 0, 7};
    int moves = 0;
    for (size_t size = 40 * KIB; size < 8 * MIB; size += size / 10) {
        uint64_t *was = block.words;
        resize(&block, size);
        moves += block.words != was;
    }
    CHECK(moves <= 4);
    /* Smaller again: it gives up what it does not need. */
    resize(&block, 100 * KIB);
    CHECK(malloc_usable_size(block.words) < MIB);
    resize(&block, 30 * KIB);
    resize(&block, 10);
    CHECK(malloc_usable_size(block.words) == 16);
    free(block.words);
    /* Up and down by turns: what is behind a block that became smaller is not the block's. */
    Block turns[40] = {{0}};
    uint64_t random = 88172645463325252;
    for (int i = 0; i < 20000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        Block *b = &turns[random % 40];
        b->seed = (uintptr_t)b;
        if (random % 11 == 0) free(b->words), b->words = NULL, b->size = 0;
        else resize(b, 1 + (random >> 8) % (1 << (random >> 40) % 21));
    }
    for (int i = 0; i < 40; i++) check(&turns[i], turns[i].size), free(turns[i].words);
    /* In each other's way, up to sizes that are moved and not copied, also more than once. */
    for (int round = 0; round < 2; round++) {
        Block blocks[3] = {{0, 0, 1}, {0, 0, 2}, {0, 0, 3}};
        for (size_t size = 16 * KIB; size <= 100 * MIB; size += round ? size : size / 2)
            for (int i = 0; i < 3; i++) resize(&blocks[i], size + round * 4097);
        for (int i = 0; i < 3; i++) {
            check(&blocks[i], blocks[i].size);
            resize(&blocks[i], blocks[i].size / 3);
            free(blocks[i].words);
        }
    }
    /* Pages that came from elsewhere leave no trace. */
    int after = mappings();
    if (after > before + 12) return printf("%d mappings, before %d\n", after, before), 1;
    /* Fresh memory reads zero, wherever it has been before. */
    for (int i = 0; i < 2; i++) {
        unsigned char *zero = calloc(1, 70 * MIB);
        for (size_t at = 0; at < 70 * MIB; at += 511) CHECK(!zero[at]);
        memset(zero, 255, 70 * MIB);
        free(zero);
    }
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, grow_in_turn, (void *)(size_t)(40 * MIB));
    pthread_create(&threads[1], NULL, grow_in_turn, (void *)(size_t)(2 * MIB));
    for (int i = 0; i < 12; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20);
            Block a = {0, 0, 5}, b = {0, 0, 6};
            for (size_t size = 8 * KIB; size <= 40 * MIB; size *= 3) resize(&a, size), resize(&b, size);
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    atomic_store(&stop, 1);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    puts("fine");
    return 0;
}
