/* What the kernel refuses while memory is given back: nothing is lost, nothing is handed out twice, zeroed blocks are zero, errno stays.
 *
 * reclaim_refused SEED SECONDS WHEN WHO RULE...
 *   WHEN  start   the rules hold from the first instruction of the program on (they are set, and the program is executed again)
 *         later   they are set after some work, for all threads
 *         every   each n-th call is refused, with changing answers, by a handler of SIGSYS; then all are allowed again, and memory
 *                 must come back. A rule is then a call and n.
 *   WHO   one     one thread, or `two`
 *   RULE  CALL:ERRNO, CALL:ERRNO:ARGUMENT=VALUE or CALL:ERRNO:ARGUMENT&BITS (hexadecimal)
 * Prints what the allocator says it has returned. */
#include "reclaim.h"
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <ucontext.h>

static const struct { const char *name; int number; } CALLS[] = {
    {"madvise", SYS_madvise}, {"process_madvise", SYS_process_madvise}, {"munmap", SYS_munmap}, {"mmap", SYS_mmap}, {"mremap", SYS_mremap},
    {"mprotect", SYS_mprotect}, {"membarrier", SYS_membarrier}, {"clone", SYS_clone}, {"clone3", SYS_clone3}, {"futex", SYS_futex},
    {"pidfd_open", SYS_pidfd_open}, {"open", SYS_open}, {"openat", SYS_openat}, {"clock_gettime", SYS_clock_gettime}, {"prctl", SYS_prctl},
    {"rt_sigprocmask", SYS_rt_sigprocmask}, {"mincore", SYS_mincore}, {"sched_getaffinity", SYS_sched_getaffinity}};

typedef struct { int call, error, argument; char test; unsigned value; unsigned every; atomic_uint seen; } rule;
static rule rules[20];
static int rule_count;
static bool memory_refused, advice_refused;

static void read_rules(char **texts, int count, bool every) {
    for (int i = 0; i < count; i++) {
        rule *r = &rules[rule_count++];
        char name[40], rest[40] = "";
        int n = sscanf(texts[i], "%39[a-z_0-9]:%d:%39s", name, &r->error, rest);
        CHECK(n >= 2);
        r->call = -1, r->every = r->error;
        for (unsigned k = 0; k < sizeof CALLS / sizeof *CALLS; k++)
            if (!strcmp(CALLS[k].name, name)) r->call = CALLS[k].number;
        CHECK(r->call >= 0);
        if (n == 3) CHECK(sscanf(rest, "%d%c%x", &r->argument, &r->test, &r->value) == 3);
        memory_refused |= r->call == SYS_mmap || r->call == SYS_mremap;
    }
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
static void install(const struct sock_filter *code, unsigned short count) {
    struct sock_fprog program = {count, (struct sock_filter *)code};
    CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
}
static void refuse(void) {
    struct sock_filter code[200];
    unsigned short n = 0;
    for (int i = 0; i < rule_count; i++) {
        rule *r = &rules[i];
        code[n++] = (struct sock_filter)LOAD(nr);
        if (r->test) {
            code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r->call, 0, 3);
            code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * r->argument);
            code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | (r->test == '=' ? BPF_JEQ : BPF_JSET) | BPF_K, r->value, 0, 1);
        } else
            code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r->call, 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | r->error);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    install(code, n);
}

static long own_call(long number, const greg_t *r) {
    register long r10 __asm__("r10") = r[REG_R10], r8 __asm__("r8") = r[REG_R8], r9 __asm__("r9") = r[REG_R9];
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(r[REG_RDI]), "S"(r[REG_RSI]), "d"(r[REG_RDX]), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return result;
}
static atomic_bool refusing = true;
static atomic_uint refused;
static void on_call(int number, siginfo_t *info, void *context) {
    (void)number;
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    static const int answers[] = {ENOMEM, EINVAL, EPERM, EAGAIN, ENOSYS};
    for (int i = 0; i < rule_count; i++)
        if (rules[i].call == info->si_syscall && refusing && atomic_fetch_add(&rules[i].seen, 1) % rules[i].every == 0) {
            r[REG_RAX] = -answers[atomic_fetch_add(&refused, 1) % 5];
            return;
        }
    r[REG_RAX] = own_call(info->si_syscall, r);
}
/* The code of the allocator: the C library makes such calls, too, with all signals blocked. */
static uintptr_t code_start, code_end;
static int find_code(struct dl_phdr_info *info, size_t size, void *unused) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + p->p_vaddr, inside = (uintptr_t)mi_collect;
        if (p->p_type == PT_LOAD && inside >= start && inside < start + p->p_memsz) code_start = start, code_end = start + p->p_memsz;
    }
    return 0;
}
static void trap(void) {
    dl_iterate_phdr(find_code, NULL);
    CHECK(code_start && code_start >> 32 == code_end >> 32);
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSYS, &action, NULL);
    struct sock_filter code[100] = {
        LOAD(instruction_pointer),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (unsigned)code_end, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (unsigned)code_start, 0, 1),
        LOAD(nr),
    };
    code[1].jt = 1 + 2 * rule_count + 1, code[2].jf = 2 * rule_count + 1;
    unsigned short n = 4;
    for (int i = 0; i < rule_count; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rules[i].call, 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    install(code, n);
}

enum { COUNT = 12000 };
static block tables[2][COUNT];
static double end;

/* A block that may be refused only where mmap is. */
static void ask(block *b, uint64_t *state) {
    errno = 77;
    if (make(b, some_size(state), state)) return;
    CHECK(memory_refused && errno == ENOMEM);
}
static void release(block *b) {
    if (!b->at) return;
    verify(b);
    errno = 77;
    free(b->at);
    CHECK(errno == 77);
    b->at = NULL;
}
static void grow(block *b, uint64_t *state) {
    if (!b->at) return;
    verify(b);
    size_t size = some_size(state);
    uint64_t *at = realloc(b->at, size < 16 ? 16 : size);
    if (!at) {
        CHECK(memory_refused && errno == ENOMEM);
        return;
    }
    size_t kept = b->size < size ? b->size : size;
    b->at = at, b->size = size < 16 ? 16 : size;
    verify_part(b, kept);
    stamp(b);
}
static void round_of(block *table, uint64_t *state) {
    for (int i = 0; i < COUNT; i++)
        if (!table[i].at) ask(&table[i], state);
    for (int i = 0; i < COUNT; i += 50) grow(&table[i], state);
    for (int i = 0; i < COUNT; i++)
        if (next(state) % 20) release(&table[i]);
    nap(20); /* a purge that follows another at once leaves alone what was used in between */
    purge();
    check(table, COUNT);
    if (next(state) % 4 == 0) nap(120); /* for the allocator's own clock */
    for (int i = 0; i < 200; i++) free(malloc(100));
}
static void *work(void *number) {
    uint64_t state = seed * 1000 + (uintptr_t)number;
    do round_of(tables[(uintptr_t)number], &state);
    while (now() < end); /* once at least, however slow the machine is */
    return NULL;
}

int main(int count, char **arguments) {
    CHECK(count >= 6);
    seed = strtoull(arguments[1], NULL, 0);
    bool two = !strcmp(arguments[4], "two"), every = arguments[3][0] == 'e';
    read_rules(arguments + 5, count - 5, every);
    alarm(120);
    if (arguments[3][0] == 's') {
        arguments[3] = "now";
        refuse();
        execv("/proc/self/exe", arguments);
        return 9;
    }
    end = now() + atof(arguments[2]);
    pthread_t other;
    if (two) CHECK(!pthread_create(&other, NULL, work, (void *)1));
    uint64_t state = seed;
    if (arguments[3][0] == 'l') round_of(tables[0], &state), refuse();
    if (every) round_of(tables[0], &state), trap();
    work((void *)0);
    if (two) pthread_join(other, NULL);
    check(tables[0], COUNT), check(tables[1], COUNT);
    bool never = false; /* may be given back with madvise */
    for (int i = 0; i < rule_count && !every; i++) never |= rules[i].call == SYS_madvise && !rules[i].test;
    if (never && !memory_refused) {
        /* What could not be given back is used again. The first half is for what fills up only once. */
        long half = 0;
        for (int i = 0; i < 10; i++) {
            if (i == 5) half = resident();
            round_of(tables[0], &state);
        }
        if (resident() > half + 24) WRONG("%ld MiB, and after five more rounds %ld MiB", half, resident());
    }
    if (every) {
        CHECK(refused > 0 || !mi_purge_all);
        /* All calls work again: what is free comes back, without and with the blocks that are left. */
        refusing = false;
        nap(20);
        purge();
        long before = resident();
        clear(tables[0], COUNT), clear(tables[1], COUNT);
        nap(20);
        purge();
        if (mi_purge_all && resident() > 24) WRONG("%ld MiB with blocks, %ld MiB are left without any", before, resident());
    }
    if (mi_purge_holes_stats_get) {
        holes_stats s;
        mi_purge_holes_stats_get(&s);
        printf("holes %zu total %zu calls %zu\n", s.purged_bytes, s.purged_bytes_total, s.discard_calls);
        for (int i = 0; i < rule_count && !every && never; i++)
            if (rules[i].call == SYS_process_madvise && arguments[3][0] == 'n') CHECK(s.purged_bytes_total == 0 && s.purged_bytes == 0);
    }
    clear(tables[0], COUNT), clear(tables[1], COUNT);
    printf("refused %u, %ld MiB\n", refused, resident());
    return 0;
}
