/* A library that is opened with RTLD_DEEPBIND, as PHP opens its extensions. Usage: deepbind PATH */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PART
void *make(void) { return strcpy(malloc(100), "made"); }
void end(void *block) { free(block); }
void *grow(void *block) { return realloc(block, 100000); }
#else
int main(int argc, char **argv) {
    void *part = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
    if (!part) return puts(dlerror()), 1;
    void *(*make)(void) = dlsym(part, "make"), *(*grow)(void *) = dlsym(part, "grow");
    void (*end)(void *) = dlsym(part, "end");
    for (int i = 0; i < 1000; i++) {
        char *theirs = make(), *ours = strdup("ours");
        theirs = realloc(theirs, 5000), ours = grow(ours);
        if (strcmp(theirs, "made") || strcmp(ours, "ours")) return 2;
        free(theirs), end(ours), end(malloc(3000)), free(make());
    }
    puts("fine");
    return 0;
}
#endif
