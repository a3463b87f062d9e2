#ifndef MICROSCALE_TOOLS_SHAPEARGUMENTS_HPP
#define MICROSCALE_TOOLS_SHAPEARGUMENTS_HPP

#include <Microscale_Commands.hpp>
#include <Microscale_Shape.hpp>

#include <string>

namespace microscale::tools {

/// Throws UsageError for unknown formats, for extents beyond 1 to 2^31 - 1, and for what the operation does not take or
/// lacks. C is bf16 if nothing is said.
Shape shape_from(const ShapeArguments& arguments);

/// "matmul mxfp4 x mxfp4 -> bf16, m 1, n 2, k 3".
std::string to_string(const Shape& shape);

}  // namespace microscale::tools

#endif
