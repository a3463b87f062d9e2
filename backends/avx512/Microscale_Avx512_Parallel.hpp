#ifndef MICROSCALE_AVX512_PARALLEL_HPP
#define MICROSCALE_AVX512_PARALLEL_HPP

#include <Microscale_Avx512_Kernels.hpp>
#include <stdint.h>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {

/// task(i) for i in [0, n) on the caller's threads; returns when all are done.
template <class Task>
void parallel_for(const Native& native, int64_t n, const Task& task) {
  if (n <= 0) return;
  native.parallel_for(
      native.context, n, [](void* argument, int64_t i) { (*static_cast<const Task*>(argument))(i); },
      const_cast<Task*>(&task));
}

/// A type as a value.
template <class T>
struct Tag {
  using type = T;
};

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/// How a matrix of `rows` rows and `blocks` blocks a row is cut into tasks: each has some rows and, of very long rows,
/// a part of the blocks.
struct BlockTasks {
  static constexpr int64_t chunk = 512;  // blocks, a multiple of those that are encoded at once
  int64_t rows, blocks, rows_a_task, chunks;

  BlockTasks(int64_t row_count, int64_t block_count, int concurrency)
      : rows(row_count), blocks(block_count), chunks(larger((block_count + chunk - 1) / chunk, 1)) {
    // As many rows as leave each thread some tasks, between 8 KiB and 2 MiB of codes. A multiple of 16 if possible.
    const int64_t blocks_a_row = larger(smaller(block_count, chunk), 1);
    const int64_t most = larger(65536 / blocks_a_row, 1), least = larger(512 / blocks_a_row, 1);
    const int64_t even = rows * chunks / (larger(concurrency, 1) * 4);
    rows_a_task = larger(smaller(even, most), least);
    if (rows_a_task > 16) rows_a_task -= rows_a_task % 16;
  }
  int64_t count() const { return (rows + rows_a_task - 1) / rows_a_task * chunks; }

  struct Part {
    int64_t row_begin, row_end, block_begin, block_end;
  };
  Part operator[](int64_t task) const {
    const int64_t row = task / chunks * rows_a_task, block = task % chunks * chunk;
    return {row, smaller(row + rows_a_task, rows), block, smaller(block + chunk, blocks)};
  }
};

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
