#ifndef MICROSCALE_SHAPE_HPP
#define MICROSCALE_SHAPE_HPP

#include <Microscale_Interface.hpp>

#include <cstdint>

// Problems from nothing but formats and extents, for those who plan before there are matrices.
namespace microscale {

/// What a user says of an operation: quantize (a to c, m x k), matmul or grouped_matmul.
struct Shape {
  Operation operation = Operation::matmul;
  FormatId a{};
  FormatId b{};
  FormatId c{};
  std::int64_t m = 0;  ///< grouped: all rows
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t groups = 0;  ///< grouped: experts, and slots
  Hints hints{};
  ScaleLayout scale_layout = ScaleLayout::linear;  ///< of all block formats
};

/// An operand as a matrix that the library allocates has it: without gaps. Its pointers are no addresses: they only say
/// that there is memory, aligned to 256 bytes.
Operand shaped_operand(FormatId format, std::int64_t rows, std::int64_t cols, std::int64_t batch = 1,
                       ScaleLayout layout = ScaleLayout::linear);

/// The problem of that shape on the host with one thread, without an epilogue.
Problem shaped_problem(const Shape& shape);

}  // namespace microscale

#endif
