// Surroundings that mean no good: what the library does in them must not harm the program, nor what it writes.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

extern _Bool mi_prof_dump(const char *path) __attribute__((weak));

#define HOLDS(c) do { if (!(c)) { static const char text[] = "fails: " #c "\n"; write(told, text, sizeof text - 1); _exit(99); } } while (0)
static int told = 2;
static volatile int stop;
static void *volatile kept[20000];

static long long now_ms(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000ll + t.tv_nsec / 1000000; }

static void *churn(void *arg) {
  unsigned seed = (unsigned)(size_t)arg + 1;
  void *own[64] = {0};
  while (!stop) {
    int k = rand_r(&seed) % 64;
    errno = 1234;
    free(own[k]);
    HOLDS(errno == 1234);
    own[k] = malloc(rand_r(&seed) % (rand_r(&seed) % 20 ? 3000 : 300000));
  }
  for (int k = 0; k < 64; k++) free(own[k]);
  return NULL;
}

static void work(int ms) {
  for (long long end = now_ms() + ms; now_ms() < end;)
    for (int i = 0; i < 300; i++) free(malloc(i * 7));
}

static void *writes(void *arg) {
  while (!stop) write(1, "from the program\n", 17);
  return NULL;
}

static const char *dump_path;
static volatile int dumps;
static void on_signal(int signal) {
  int before = errno;
  free(malloc(300));
  mi_prof_dump(dump_path);
  dumps++;
  errno = before;
}
static void *storm(void *arg) {
  struct timespec pause = {0, 20 * 1000 * 1000};
  while (!stop) { kill(getpid(), SIGUSR1); nanosleep(&pause, NULL); }
  return NULL;
}

int main(int argc, char **argv) {
  const char *what = argv[1], *path = argv[2];
  pthread_t threads[5];
  for (int i = 0; i < 50; i++) kept[i] = malloc(10000);
  if (!strcmp(what, "own_files")) {
    /* Files of the program's get the numbers of the standard descriptors. `close`: those were open at the start. */
    if (argc > 3) { close(0); close(1); close(2); }
    told = -1;
    char name[4096];
    for (int i = 0; i < 3; i++) {
      snprintf(name, sizeof name, "%s/own.%d", path, i);
      if (open(name, O_RDWR | O_CREAT | O_EXCL, 0600) != i) return 98;
      write(i, "own\n", 4);
    }
    work(50);
  } else if (!strcmp(what, "writes_on")) {
    /* Nothing is open, and a thread writes and writes while the process ends. */
    close(1);
    pthread_create(&threads[0], NULL, writes, NULL);
    work(20);
  } else if (!strcmp(what, "dump_in_handler")) {
    dump_path = path;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    for (size_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, churn, (void *)i);
    pthread_create(&threads[4], NULL, storm, NULL);
    for (long long end = now_ms() + 8000; now_ms() < end && dumps < 60;) work(10);
    HOLDS(dumps > 0);
    stop = 1;
    for (int i = 4; i >= 0; i--) pthread_join(threads[i], NULL);
  } else if (!strcmp(what, "ends_at_once")) {
    /* While other threads allocate, and files are being written. */
    for (size_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, churn, (void *)i);
    work(atoi(argv[4]));
    if (!strcmp(argv[3], "quick_exit")) quick_exit(5);
    _exit(5);
  } else {
    work(20);
  }
  return 0;
}
