// A plugin for prof_dump.c. Two are made of this, with the same code at the same offsets.
#include <stdlib.h>

void *volatile keep[4096];

void *plugin_grow(size_t size) {
  void *block = malloc(size);
  keep[(size_t)block / 64 % 4096] = block;
  return block;
}
