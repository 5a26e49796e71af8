// Dumps of the profiler, by call. Usage: prof_dump calls|limit|plugins FOLDER
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <mimalloc/profile.h>

#define CHECK(what) do { if (!(what)) { printf("line %d: %s (errno %d)\n", __LINE__, #what, errno); exit(1); } } while (0)

static char folder[2000];
static char path_buffer[4000];
static const char *in(const char *name) {
  snprintf(path_buffer, sizeof path_buffer, "%s/%s", folder, name);
  return path_buffer;
}

void *volatile kept[4096];
static size_t kept_count;

__attribute__((noinline)) static void keep(size_t size, int blocks) {
  for (int i = 0; i < blocks; i++) kept[kept_count++] = malloc(size);
}

typedef struct { char *bytes; size_t length; int again; bool stops; } text_t;

// Allocates, and tries to begin another dump.
static void collect(void *arg, const char *bytes, size_t length) {
  text_t *text = arg;
  text->bytes = realloc(text->bytes, text->length + length + 1);
  memcpy(text->bytes + text->length, bytes, length);
  text->length += length;
  text->bytes[text->length] = 0;
  errno = 0;
  if (!mi_prof_dump_writer(collect, arg) && errno == EDEADLK && !mi_prof_dump(in("again"))) text->again++;
}

typedef struct { int modules, own, libc; uintptr_t last; bool stop; } modules_t;

static bool look(const mi_prof_module_info_t *module, void *arg) {
  modules_t *seen = arg;
  free(malloc(100));
  CHECK(module->size > 0 && module->base >= seen->last);
  seen->last = module->base + module->size;
  seen->modules++;
  uintptr_t here = (uintptr_t)&look, there = (uintptr_t)dlsym(RTLD_NEXT, "strlen");
  if (here - module->base < module->size) seen->own += strstr(module->path, "prof_dump.c") != NULL;
  if (there - module->base < module->size) seen->libc += strstr(module->path, "libc.so.6") != NULL;
  return !seen->stop;
}

static void *other(void *unused) {
  (void)unused;
  pthread_setname_np(pthread_self(), "another one");
  keep(3000, 20);
  return NULL;
}

static void calls(void) {
  keep(1000, 100);
  keep(50000, 10);
  for (int i = 0; i < 50; i++) { free((void *)kept[i]); kept[i] = NULL; }
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, other, NULL) == 0 && pthread_join(thread, NULL) == 0);
  CHECK(mi_prof_dump(in("a.prof")) && mi_prof_dump_proto(in("a.pb")));
  text_t text = {0}, proto = {0};
  CHECK(mi_prof_dump_writer(collect, &text) && text.again > 0 && strncmp(text.bytes, "heap profile: ", 14) == 0);
  CHECK(strstr(text.bytes, " @ heap_v2/") && strstr(text.bytes, "\nMAPPED_LIBRARIES:\n"));
  CHECK(mi_prof_dump_proto_writer(collect, &proto) && proto.again > 0 && proto.bytes[0] == 0x0a);
  CHECK(access(in("again"), F_OK) != 0);

  CHECK(!mi_prof_dump(NULL) && errno == EINVAL && !mi_prof_dump_proto(NULL));
  CHECK(!mi_prof_dump_writer(NULL, NULL) && !mi_prof_dump_proto_writer(NULL, NULL) && !mi_prof_modules_visit(NULL, NULL));
  CHECK(!mi_prof_dump(in("no/such/folder")) && errno == ENOENT);
  CHECK(!mi_prof_dump("/proc/version/x") && errno == ENOTDIR);
  char *longer = calloc(1, 5000);
  memset(longer, 'a', 4990);
  CHECK(!mi_prof_dump(longer) && errno == ENAMETOOLONG);
  CHECK(mi_prof_dump(in("made/b.prof")));

  modules_t seen = {0};
  CHECK(mi_prof_modules_visit(look, &seen) && seen.own == 1 && seen.libc == 1 && seen.modules >= 4);
  modules_t one = {.stop = true};
  CHECK(!mi_prof_modules_visit(look, &one) && one.modules == 1);

  mi_prof_stop();
  text_t nothing = {0};
  CHECK(mi_prof_dump_writer(collect, &nothing) && strstr(nothing.bytes, "     0:        0 [     0:        0] @ heap_v2/1\n"));
  CHECK(mi_prof_dump_proto(in("stopped.pb")));
}

// Files that become larger than they may be end with an error and not with a signal.
static void limit(void) {
  keep(1000, 100);
  struct rlimit small = {2000, 2000};
  CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
  CHECK(!mi_prof_dump(in("limited.prof")) && errno == EFBIG);
  CHECK(access(in("limited.prof"), F_OK) != 0);
  sigset_t pending;
  CHECK(sigpending(&pending) == 0 && !sigismember(&pending, SIGXFSZ));
  sigset_t mask;
  CHECK(sigprocmask(SIG_BLOCK, NULL, &mask) == 0 && !sigismember(&mask, SIGXFSZ));
}

static uintptr_t use_plugin(const char *name, size_t size, int blocks, bool close) {
  void *plugin = dlopen(in(name), RTLD_NOW | RTLD_LOCAL);
  CHECK(plugin);
  void *(*grow)(size_t) = (void *(*)(size_t))dlsym(plugin, "plugin_grow");
  for (int i = 0; i < blocks; i++) kept[kept_count++] = grow(size);
  uintptr_t base = ((struct link_map *)plugin)->l_addr;
  if (close) CHECK(dlclose(plugin) == 0);
  return base;
}

static void plugins(void) {
  uintptr_t first = use_plugin("first.so", 1000, 40, true);
  CHECK(use_plugin("second.so", 1000, 30, true) == first);
  CHECK(use_plugin("first.so", 1000, 20, true) == first);
  for (int i = 0; i < 50; i++) CHECK(use_plugin("cycle.so", 1000, 2, true) == first);
  CHECK(use_plugin("second.so", 1000, 10, false) == first);
  // Replaced while it is there.
  char other[4000];
  strcpy(other, in("other.so"));
  CHECK(rename(other, in("second.so")) == 0);
  CHECK(mi_prof_dump(in("p.prof")) && mi_prof_dump_proto(in("p.pb")));
}

int main(int count, char **args) {
  CHECK(count == 3);
  snprintf(folder, sizeof folder, "%s", args[2]);
  if (strcmp(args[1], "calls") == 0) calls();
  else if (strcmp(args[1], "limit") == 0) limit();
  else plugins();
  return 0;
}
