#include <Microscale_Commands.hpp>
#include <Microscale_Errors.hpp>
#include <Microscale_Report.hpp>
#include <Microscale_Values.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace microscale::tools {
namespace {

struct Compared {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::string type_a;
  std::string type_b;
  bool b_has_blocks = false;
  std::optional<ErrorSums> error;  ///< of floating-point and block-scaled tensors
  bool equal = false;              ///< bytes, of others
};

ErrorSums error_between(const TensorValues& a, const TensorValues& b) {
  ErrorSums sums;
  std::vector<double> x, y;
  for_rows(a.shape(), [&](std::int64_t first, std::int64_t count) {
    a.read(first, count, x);
    b.read(first, count, y);
    sums += measure(x.data(), y.data(), count, a.shape().cols, b.limits(first, count), b.block_size());
    a.release(first, count);
    b.release(first, count);
  });
  return sums;
}

Compared compared(const TensorValues& a, const TensorValues& b) {
  const CheckpointTensor &tensor_a = a.tensor(), &tensor_b = b.tensor();
  if (tensor_a.shape != tensor_b.shape)
    throw FileError(b.checkpoint().shards()[tensor_b.shard].path(),
                    "tensor \"" + printable(tensor_b.name) + "\" is " + shape_text(tensor_b.shape) + ", but " +
                        shape_text(tensor_a.shape) + " in " +
                        printable(a.checkpoint().shards()[tensor_a.shard].path()));
  Compared result{
      tensor_a.name, tensor_a.shape, type_text(tensor_a), type_text(tensor_b), tensor_b.format.has_value(), {}, false};
  if (a.exist() && b.exist()) {
    result.error = error_between(a, b);
  } else {
    const auto x = a.checkpoint().bytes(*tensor_a.data), y = b.checkpoint().bytes(*tensor_b.data);
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
