#include "support/counted_heap.h"

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace fastweights::testing {
namespace {

std::atomic<int64_t> in_use = 0, peak = 0;

[[maybe_unused]] void* taken(void* block) {
  if (block == nullptr) return block;
  const auto size = static_cast<int64_t>(malloc_usable_size(block));
  const int64_t now = in_use.fetch_add(size, std::memory_order_relaxed) + size;
  int64_t highest = peak.load(std::memory_order_relaxed);
  while (now > highest && !peak.compare_exchange_weak(highest, now, std::memory_order_relaxed)) {
  }
  return block;
}

[[maybe_unused]] void given_back(void* block) {
  if (block != nullptr)
    in_use.fetch_sub(static_cast<int64_t>(malloc_usable_size(block)), std::memory_order_relaxed);
}

}  // namespace

int64_t heap_in_use() { return in_use; }
int64_t heap_peak() { return peak; }
void forget_heap_peak() { peak = in_use.load(); }

#if defined(__SANITIZE_ADDRESS__) || !defined(__GLIBC__)
bool heap_is_counted() { return false; }
#else
bool heap_is_counted() { return true; }
#endif

}  // namespace fastweights::testing

#if !defined(__SANITIZE_ADDRESS__) && defined(__GLIBC__)

// the C library lets a program replace its allocator, and keeps its own under these names
extern "C" {

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* block);

void* malloc(size_t size) { return fastweights::testing::taken(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) { return fastweights::testing::taken(__libc_calloc(count, size)); }
void* memalign(size_t alignment, size_t size) {
  return fastweights::testing::taken(__libc_memalign(alignment, size));
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

void free(void* block) {
  fastweights::testing::given_back(block);
  __libc_free(block);
}

void* realloc(void* block, size_t size) {
  fastweights::testing::given_back(block);
  void* const moved = __libc_realloc(block, size);
  // what could not grow is still held
  if (moved == nullptr && size > 0) {
    fastweights::testing::taken(block);
    return nullptr;
  }
  return fastweights::testing::taken(moved);
}

int posix_memalign(void** block, size_t alignment, size_t size) {
  void* const made = memalign(alignment, size);
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}

}  // extern "C"

#endif
