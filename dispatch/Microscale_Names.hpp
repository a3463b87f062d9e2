#ifndef MICROSCALE_NAMES_HPP
#define MICROSCALE_NAMES_HPP

#include <Microscale_Interface.hpp>

#include <optional>
#include <string>
#include <string_view>

// Descriptors as text, for messages and explain(). All functions are pure and may be called by any thread.
namespace microscale {

/// "matmul", "grouped_quantize", …: the names that MICROSCALE_FORCE_BACKEND takes.
const char* to_string(Operation operation);
inline constexpr int operation_count = static_cast<int>(Operation::grouped_matmul) + 1;

const char* to_string(ExecutionKind kind);
const char* to_string(ScaleLayout layout);
const char* to_string(ScaleType type);
const char* to_string(Activation activation);
const char* to_string(Gate gate);

/// "float", "half" and "bf16", else "e2m1" and the like. An element whose special codes are not those that its bits
/// have in OCP MX or IEEE 754 says so: "e4m3(ieee)".
std::string to_string(ElementId element);

/// What the format is: element, block length, scale type, then "+tensor" for a tensor scale and "+bytes" for one code a
/// byte: "e2m1/16/ue4m3+tensor". Plain formats are their element.
std::string structural_name(FormatId format);

/// The well-known name ("nvfp4", "mxfp8_e4m3") where there is one, else the structural name.
std::string to_string(FormatId format);

/// The format that a name stands for: all that to_string() and structural_name() say, and "f32", "fp32", "float32",
/// "f16", "fp16", "float16", "bfloat16". Capital letters are like small ones, and '-' like '_'. Nothing for other text.
std::optional<FormatId> format_named(std::string_view name);

/// "tile_m 64, tile_n 128, stages 4", with what is 0 left out; "automatic" if all of it is.
std::string to_string(const Config& config);

/// "128 x 256 nvfp4, tcgen scales": extents, format and layout of an operand; "prepared by <backend>" where it is.
std::string to_string(const Operand& operand);

/// The whole call in one line: operation, place, operands, epilogue.
std::string to_string(const Problem& problem);

}  // namespace microscale

#endif
