/* Threads with the smallest stacks, blocks handed over, key destructors that allocate after ours has run. */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_key_t keys[4];
static void late(void *p) {
    /* 4 rounds of destructors: allocate again, also in the last */
    free(p);
    for (int i = 0; i < 4; i++)
        if (!pthread_getspecific(keys[i])) pthread_setspecific(keys[i], malloc(200));
}
static void *work(void *given) {
    void *blocks[300];
    for (int i = 0; i < 300; i++) memset(blocks[i] = malloc(i * 100 + 1), 1, i * 100 + 1);
    for (int i = 0; i < 300; i += 2) free(blocks[i]);
    for (int i = 1; i < 300; i += 2) free(blocks[i]);
    free(given);
    for (int i = 0; i < 4; i++) pthread_setspecific(keys[i], malloc(100));
    return malloc(500);
}
int main(void) {
    for (int i = 0; i < 4; i++) pthread_key_create(&keys[i], late);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 24 * 1024);
    for (int round = 0; round < 300; round++) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            if (pthread_create(&threads[i], &attr, work, malloc(50))) return 1;
        for (int i = 0; i < 4; i++) {
            void *result;
            pthread_join(threads[i], &result);
            free(result);
        }
    }
    puts("fine");
    return 0;
}
