#include <Microscale_Commands.hpp>
#include <Microscale_Errors.hpp>
#include <Microscale_Report.hpp>
#include <Microscale_Rows.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace microscale::tools {
namespace {

/// One side of the comparison of a tensor.
struct Side {
  const Checkpoint& checkpoint;
  const CheckpointTensor& tensor;
  TensorScalePair pair;

  Side(const Checkpoint& from, const CheckpointTensor& which)
      : checkpoint(from), tensor(which), pair(tensor_scale_pair(from, which)) {}

  std::string type() const {
    return tensor.format ? to_string(*tensor.format) : std::string(to_string(tensor.data->dtype));
  }
  bool has_values() const { return tensor.format || is_quantizable(tensor.data->dtype); }
  void values(std::int64_t first, std::int64_t count, std::vector<double>& result) const {
    if (tensor.format)
      values_of(block_rows(checkpoint, tensor, pair, first, count), result.data());
    else
      values_of(plain_rows(checkpoint, tensor, first, count), result.data());
    release_pages(row_bytes(checkpoint, tensor, first, count));
  }
};

struct Compared {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::string type_a;
  std::string type_b;
  bool b_has_blocks = false;
  std::optional<ErrorSums> error;  ///< of floating-point and block-scaled tensors
  bool equal = false;              ///< bytes, of others
};

ErrorSums error_between(const Side& a, const Side& b) {
  const MatrixShape shape = matrix_shape(a.tensor.shape);
  ErrorSums sums;
  for_rows(shape, [&](std::int64_t first, std::int64_t count) {
    const auto elements = static_cast<std::size_t>(count * shape.cols);
    std::vector<double> x(elements), y(elements), limits;
    a.values(first, count, x);
    b.values(first, count, y);
    std::int64_t block = 1;
    if (b.tensor.format) {
      limits = block_limits(block_rows(b.checkpoint, b.tensor, b.pair, first, count));
      block = traits_of(*b.tensor.format).id.block_size;
    }
    sums += measure(x.data(), y.data(), count, shape.cols, limits, block);
  });
  return sums;
}

Compared compared(const Side& a, const Side& b) {
  if (a.tensor.shape != b.tensor.shape)
    throw FileError(b.checkpoint.shards()[b.tensor.shard].path(),
                    "tensor \"" + printable(b.tensor.name) + "\" is " + shape_text(b.tensor.shape) + ", but " +
                        shape_text(a.tensor.shape) + " in " + printable(a.checkpoint.shards()[a.tensor.shard].path()));
  Compared result{a.tensor.name, a.tensor.shape, a.type(), b.type(), b.tensor.format.has_value(), {}, false};
  if (a.has_values() && b.has_values()) {
    result.error = error_between(a, b);
  } else {
    const auto x = a.checkpoint.bytes(*a.tensor.data), y = b.checkpoint.bytes(*b.tensor.data);
    result.equal = result.type_a == result.type_b && x.size() == y.size() &&
                   (x.empty() || std::memcmp(x.data(), y.data(), x.size()) == 0);
  }
  return result;
}

std::vector<std::string> missing(const Checkpoint& from, const Checkpoint& in) {
  std::vector<std::string> names;
  for (const auto& tensor : from.tensors())
    if (in.find(tensor.name) == nullptr) names.push_back(tensor.name);
  return names;
}

/// The columns of the table after the name.
std::array<std::string, 8> cells(const Compared& tensor) {
  std::string types = tensor.type_a + " / " + tensor.type_b;
  if (!tensor.error) return {types, tensor.equal ? "equal" : "DIFFERENT", "", "", "", "", "", ""};
  const ErrorSums& e = *tensor.error;
  const auto percent = [](double share) { return number_text(100 * share, 3) + " %"; };
  char cosine[32];
  std::snprintf(cosine, sizeof(cosine), "%.8f", e.cosine());
  return {std::move(types),
          number_text(e.sqnr_db(), 5),
          number_text(e.max_abs_error, 4),
          number_text(e.mean_abs_error(), 4),
          cosine,
          tensor.b_has_blocks ? percent(e.share(e.saturated)) : "-",
          percent(e.share(e.zeroed)),
          e.non_finite == 0 ? "" : std::to_string(e.non_finite)};
}

void print_table(const std::vector<Compared>& tensors) {
  std::vector<std::array<std::string, 9>> rows;
  rows.push_back(
      {"tensor", "A / B", "SQNR dB", "max error", "mean error", "cosine", "saturated", "zeroed", "not finite"});
  for (const auto& tensor : tensors) {
    auto& row = rows.emplace_back();
    row[0] = printable(tensor.name);
    const auto rest = cells(tensor);
    std::copy(rest.begin(), rest.end(), row.begin() + 1);
  }
  std::array<std::size_t, 9> widths{};
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string space(widths[c] - row[c].size(), ' ');
      line += c < 2 ? row[c] + space : space + row[c];
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::printf("%s\n", line.c_str());
  }
}

}  // namespace

void compare_command(const std::filesystem::path& path_a, const std::filesystem::path& path_b, bool json) {
  const Checkpoint a(path_a), b(path_b);
  std::vector<Compared> tensors;
  for (const auto& tensor : a.tensors())
    if (const auto* const other = b.find(tensor.name)) tensors.push_back(compared({a, tensor}, {b, *other}));
  if (tensors.empty()) throw FileError(path_b.string(), "has no tensor in common with " + printable(path_a.string()));
  const auto only_a = missing(a, b), only_b = missing(b, a);
  Compared all{"all", {}, "", "", true, ErrorSums{}, false};
  for (const auto& tensor : tensors)
    if (tensor.error) *all.error += *tensor.error;

  if (json) {
    Json result = {{"a", path_a.string()},
                   {"b", path_b.string()},
                   {"tensors", Json::array()},
                   {"only_in_a", only_a},
                   {"only_in_b", only_b}};
    for (const auto& tensor : tensors) {
      Json entry = tensor.error ? measures_json(*tensor.error, tensor.b_has_blocks) : Json{{"equal", tensor.equal}};
      entry["name"] = tensor.name;
      entry["shape"] = tensor.shape;
      entry["a"] = tensor.type_a;
      entry["b"] = tensor.type_b;
      result["tensors"].push_back(std::move(entry));
    }
    const bool any_blocks = std::any_of(tensors.begin(), tensors.end(), [](const auto& t) { return t.b_has_blocks; });
    result["all"] = measures_json(*all.error, any_blocks);
    std::printf("%s\n", result.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return;
  }
  if (tensors.size() > 1) tensors.push_back(std::move(all));
  print_table(tensors);
  for (const auto& name : only_a) std::printf("only in A: %s\n", printable(name).c_str());
  for (const auto& name : only_b) std::printf("only in B: %s\n", printable(name).c_str());
}

}  // namespace microscale::tools
