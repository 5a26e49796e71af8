/* Starts the profiler with a dump at exit: its name, and 1 if this counts more than the environment. */
#include <mimalloc/profile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments) {
    char name[4096];
    strcpy(name, arguments[1]);
    mi_prof_stop(); /* in case the environment has started it */
    mi_prof_config_t_decl(config);
    config.sample_interval = 1, config.dump_at_exit = name, config.mode = arguments[2][0] == '1' ? MI_PROF_CONFIG_OVERRIDE : MI_PROF_CONFIG_FALLBACK;
    if (!mi_prof_start_ex(&config)) puts("not started");
    memset(name, 'x', sizeof name - 1); /* it was copied */
    if (chdir("/")) puts("no root");
    return mi_malloc(12345) == NULL;
}
