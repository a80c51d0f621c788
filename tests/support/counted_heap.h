#pragma once

#include <cstdint>

/// Every byte that a program holds on the heap. A program that links counted_heap.cpp uses the C library's
/// allocator through functions that add up what is in use, so its peak is exact: it does not depend on pages
/// that were touched before, on what the allocator keeps, or on how the system counts resident memory.
namespace fastweights::testing {

// false under sanitizers, which bring an allocator of their own
bool heap_is_counted();

int64_t heap_in_use();

// the most that was in use since the last forget_heap_peak()
int64_t heap_peak();

void forget_heap_peak();

}  // namespace fastweights::testing
