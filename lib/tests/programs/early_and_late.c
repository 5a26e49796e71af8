/* Allocation before and after everything else: from .preinit_array, from constructors that register 40 functions for the end, from
 * those, and from destructors while other threads still run. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *from_preinit, *from_constructor, *from_main;
static int ends;

static void preinit(void) { strcpy(from_preinit = malloc(100), "preinit"), free(malloc(100000)), free(calloc(3, 3000000)); }
__attribute__((section(".preinit_array"), used)) static void (*first)(void) = preinit;

static void at_end(void) {
    free(malloc(1000 + ends)), ends++;
    if (ends == 40) {
        if (strcmp(from_main, "main")) printf("main's block is gone\n");
        free(from_main);
        puts("40 at the end"), fflush(stdout);
    }
}
__attribute__((constructor)) static void construct(void) {
    from_constructor = strdup(from_preinit);
    for (int i = 0; i < 40; i++) atexit(at_end);
}
__attribute__((destructor)) static void destruct(void) {
    if (strcmp(from_preinit, "preinit") || strcmp(from_constructor, "preinit")) printf("a block is gone\n");
    free(from_preinit), free(from_constructor);
    free(realloc(malloc(10), 5000000));
}

static void *runs_on(void *arg) {
    for (;;) free(malloc(1 + rand() % 100000));
    return arg;
}

int main(void) {
    strcpy(from_main = malloc(10), "main");
    pthread_t thread;
    for (int i = 0; i < 3; i++) pthread_create(&thread, NULL, runs_on, NULL);
    return 0;
}
