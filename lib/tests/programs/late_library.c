/* The library is brought in by dlopen, used by threads, and closed before they end. Usage: late_library PATH */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void *(*allocate)(size_t);
static void (*release)(void *);
static pthread_barrier_t barrier;

static void *work(void *arg) {
    for (int i = 0; i < 2000; i++) {
        char *p = allocate(i * 13 % 40000);
        if (i % 13) memset(p, i, i * 13 % 40000);
        release(p);
    }
    pthread_barrier_wait(&barrier); /* used */
    pthread_barrier_wait(&barrier); /* closed */
    return arg;                     /* and now the destructor of its key runs */
}

int main(int argc, char **argv) {
    for (int round = 0; round < 3; round++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) return puts(dlerror()), 1;
        allocate = (void *(*)(size_t))dlsym(library, "mi_malloc");
        release = (void (*)(void *))dlsym(library, "mi_free");
        pthread_barrier_init(&barrier, NULL, 5);
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, NULL);
        pthread_barrier_wait(&barrier);
        if (dlclose(library)) return 2;
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    }
    puts("fine");
    return 0;
}
