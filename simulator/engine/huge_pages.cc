// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/engine/huge_pages.h"

#include <cstddef>
#include <cstdint>
#include <malloc.h>
#include <memory>
#include <sys/mman.h>

namespace railyard {

void PreferHugePages() {
  constexpr size_t kHeapBytes = size_t{1} << 30;  // of addresses; memory is used as it is touched
  constexpr size_t kHugePageBytes = 2 << 20;
  // One heap in one range of addresses, which is never given back.
  if (mallopt(M_MMAP_MAX, 0) == 0 || mallopt(M_TRIM_THRESHOLD, INT32_MAX) == 0) return;
  void* const range = malloc(kHeapBytes);
  if (range == nullptr) {
    mallopt(M_MMAP_MAX, 65'536);  // glibc's default
    return;
  }
  void* start = range;
  size_t bytes = kHeapBytes;
  if (std::align(kHugePageBytes, kHugePageBytes, start, bytes) != nullptr) {
    madvise(start, bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
  }
  free(range);
}

}  // namespace railyard
