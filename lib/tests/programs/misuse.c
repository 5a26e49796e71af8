/* Misuse that must end in a clear message and an abort. */
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    static void *blocks[4000];
    for (int i = 0; i < 4000; i++) blocks[i] = malloc(100);
    char *large = malloc(3000000);
    void *volatile p = argc > 1 && !strcmp(argv[1], "inside") ? (char *)blocks[7] + 8
                     : argc > 1 && !strcmp(argv[1], "span")   ? (void *)(large + 65536)
                                                              : blocks[7];
    free(p);
    for (int i = 0; i < 4000; i++) free(blocks[i]); /* enough of them to look into the slabs */
    for (int i = 0; i < 4000; i++) blocks[i] = malloc(100);
    for (int i = 0; i < 4000; i++) free(blocks[i]);
    return 0;
}
