/* mimalloc-pprof: operator new and operator delete for a C++ program.
 *
 * Include this in exactly one source file of a program that uses the library by its mi_ names. Where the library comes
 * before the C++ runtime (preloaded, or linked as it is) it has these operators already. They are weak here, so that
 * both may be.
 */
#ifndef MIMALLOC_NEW_DELETE_H
#define MIMALLOC_NEW_DELETE_H

#if defined(__cplusplus)
#include <cstddef>
#include <new>
#include "mimalloc.h"

#if defined(__GNUC__)
#define MI_WEAK __attribute__((weak))
#else
#define MI_WEAK
#endif

MI_WEAK void* operator new(std::size_t size) { return mi_new(size); }
MI_WEAK void* operator new[](std::size_t size) { return mi_new(size); }
MI_WEAK void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return mi_new_nothrow(size); }
MI_WEAK void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return mi_new_nothrow(size); }

MI_WEAK void operator delete(void* p) noexcept { mi_free(p); }
MI_WEAK void operator delete[](void* p) noexcept { mi_free(p); }
MI_WEAK void operator delete(void* p, const std::nothrow_t&) noexcept { mi_free(p); }
MI_WEAK void operator delete[](void* p, const std::nothrow_t&) noexcept { mi_free(p); }
MI_WEAK void operator delete(void* p, std::size_t size) noexcept { mi_free_size(p, size); }
MI_WEAK void operator delete[](void* p, std::size_t size) noexcept { mi_free_size(p, size); }

#if defined(__cpp_aligned_new)
#define MI_AL static_cast<std::size_t>(alignment)
MI_WEAK void* operator new(std::size_t size, std::align_val_t alignment) { return mi_new_aligned(size, MI_AL); }
MI_WEAK void* operator new[](std::size_t size, std::align_val_t alignment) { return mi_new_aligned(size, MI_AL); }
MI_WEAK void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return mi_new_aligned_nothrow(size, MI_AL);
}
MI_WEAK void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return mi_new_aligned_nothrow(size, MI_AL);
}

MI_WEAK void operator delete(void* p, std::align_val_t alignment) noexcept { mi_free_aligned(p, MI_AL); }
MI_WEAK void operator delete[](void* p, std::align_val_t alignment) noexcept { mi_free_aligned(p, MI_AL); }
MI_WEAK void operator delete(void* p, std::size_t size, std::align_val_t alignment) noexcept {
  mi_free_size_aligned(p, size, MI_AL);
}
MI_WEAK void operator delete[](void* p, std::size_t size, std::align_val_t alignment) noexcept {
  mi_free_size_aligned(p, size, MI_AL);
}
MI_WEAK void operator delete(void* p, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  mi_free_aligned(p, MI_AL);
}
MI_WEAK void operator delete[](void* p, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  mi_free_aligned(p, MI_AL);
}
#undef MI_AL
#endif
#undef MI_WEAK
#endif

#endif
