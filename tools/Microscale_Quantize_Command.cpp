#include <Microscale_Commands.hpp>
#include <Microscale_Errors.hpp>
#include <Microscale_Places.hpp>
#include <Microscale_Report.hpp>
#include <Microscale_Rewrite.hpp>
#include <Microscale_Rows.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace microscale::tools {
namespace {

/// Quantizes one tensor into the sink, some rows at a time, and measures the error if asked to.
struct QuantizeTensor {
  const Checkpoint& checkpoint;
  const CheckpointTensor& tensor;
  StoredTensor stored;
  FileFormat format;
  ScaleRule rule;
  ErrorSums* error;  ///< null: not asked for

  void operator()(TensorSink& sink, Progress& progress) const {
    const MatrixShape shape = matrix_shape(tensor.shape);
    const FormatTraits traits = traits_of(format);
    const auto pitch = traits.row_bytes(static_cast<std::uint64_t>(shape.cols));
    const auto scale_pitch = traits.scale_cols(static_cast<std::uint64_t>(shape.cols));
    const TensorScalePair pair = dynamic_tensor_scale(format, plain_rows(checkpoint, tensor, 0, shape.rows));
    if (stored.half != TensorScaleHalf::none) {
      const float half = stored.half == TensorScaleHalf::decode ? pair.decode : pair.encode;
      std::vector<std::byte> bytes(sizeof(half));
      std::memcpy(bytes.data(), &half, sizeof(half));
      sink.write(stored.tensor_scale.name, 0, std::move(bytes));
    }
    for_rows(shape, [&](std::int64_t first, std::int64_t count) {
      const auto rows = static_cast<std::size_t>(count);
      std::vector<std::byte> data(rows * pitch), scales(rows * scale_pitch);
      const PlainRows source = plain_rows(checkpoint, tensor, first, count);
      quantize_rows(source, format, rule, pair, data.data(), scales.data());
      if (error != nullptr)
        add_error(source, {format, data.data(), scales.data(), pair, count, shape.cols}, traits.id.block_size);
      const auto read = row_bytes(checkpoint, tensor, first, count);
      sink.write(stored.data.name, static_cast<std::uint64_t>(first) * pitch, std::move(data));
      sink.write(stored.scale.name, static_cast<std::uint64_t>(first) * scale_pitch, std::move(scales));
      progress.advance(read.size(), tensor.name);
      release_pages(read);
    });
  }

  void add_error(const PlainRows& source, const BlockRows& quantized, std::int64_t block) const {
    const auto elements = static_cast<std::size_t>(source.rows * source.cols);
    std::vector<float> values(elements);
    dequantize_rows(quantized, Dtype::F32, reinterpret_cast<std::byte*>(values.data()));
    std::vector<double> a(elements), b(values.begin(), values.end());
    values_of(source, a.data());
    *error += measure(a.data(), b.data(), source.rows, source.cols, block_limits(quantized), block);
  }
};

/// "a.b" of "a.b.weight".
std::string module_of(const std::string& tensor) {
  return tensor.substr(0, tensor.size() - std::string_view(".weight").size());
}

/// What a loader must know: the modules with a weight that it should expect plain, and those that are quantized though
/// they are no linear layers.
struct Modules {
  std::vector<std::string> ignored;
  std::vector<std::string> more_targets;
};

Modules modules_of(const Checkpoint& checkpoint, const std::vector<ReportTensor>& tensors) {
  Modules modules;
  for (const auto& tensor : tensors) {
    if (!tensor.name.ends_with(".weight")) continue;
    if (!tensor.reason && is_embedding(tensor.name)) modules.more_targets.push_back(module_of(tensor.name));
    if (tensor.reason && tensor.shape.size() >= 2) modules.ignored.push_back(module_of(tensor.name));
  }
  // A head that shares the embedding's weight is a linear layer of the model without a tensor of its own.
  const Json& config = checkpoint.config();
  if (config.is_object() && config.value("tie_word_embeddings", Json(false)) == Json(true) &&
      checkpoint.find("lm_head.weight") == nullptr)
    modules.ignored.push_back("lm_head");
  return modules;
}

void print_summary(const Report& report, const RewriteResult& result) {
  std::uint64_t before = 0, after = 0;
  std::size_t quantized = 0;
  for (const auto& tensor : report.tensors)
    if (!tensor.reason) {
      ++quantized;
      before += tensor.bytes_before;
      after += tensor.bytes_after;
    }
  std::printf("quantized %zu of %zu tensors to %s (style %s): %s -> %s, all tensors now %s\n", quantized,
              report.tensors.size(), report.format.c_str(), report.style.c_str(), human_bytes(before).c_str(),
              human_bytes(after).c_str(), human_bytes(result.tensor_bytes).c_str());
  if (quantized < report.tensors.size()) std::printf("left alone:\n");
  for (const auto& tensor : report.tensors)
    if (tensor.reason) std::printf("  %s: %s\n", printable(tensor.name).c_str(), printable(*tensor.reason).c_str());
  for (const auto& file : result.skipped_files) std::printf("not copied: %s\n", printable(file).c_str());
}

}  // namespace

void quantize_command(const QuantizeArguments& arguments) {
  const FormatTraits traits = traits_of(arguments.format);
  const std::string format_name = to_string(arguments.format);
  if (!arguments.scale_rule.empty() && traits.id.scale != ScaleType::e8m0)
    throw UsageError("--scale-rule is for formats with E8M0 scales, and " + format_name + " has none");
  const Style style = arguments.style.value_or(default_style(arguments.format));
  if (!holds(style, arguments.format))
    throw UsageError("--style " + std::string(to_string(style)) + " has no " + format_name);
  if (!arguments.report.empty()) report_kind(arguments.report);
  const std::string rule_name = arguments.scale_rule.empty() ? "rceil" : arguments.scale_rule;
  const ScaleRule rule = scale_rule_names.at(rule_name);

  const Checkpoint checkpoint(arguments.input);
  if (checkpoint.is_quantized() || !checkpoint.quantization_config().is_null())
    throw FileError(arguments.input.string(), "is quantized already");
  check_places(arguments.input, arguments.output, arguments.report);
  std::optional<AtomicOutput> report_output;
  if (!arguments.report.empty()) report_output.emplace(arguments.report, AtomicOutput::Kind::file, arguments.force);

  Report report;
  report.input = arguments.input.string();
  report.output = arguments.output.string();
  report.format = format_name;
  report.style = to_string(style);
  if (traits.id.scale == ScaleType::e8m0) report.scale_rule = rule_name;
  report.tensors.resize(checkpoint.tensors().size());

  RewritePlan plan;
  plan.verb = "quantize";
  for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i) {
    const CheckpointTensor& tensor = checkpoint.tensors()[i];
    ReportTensor& entry = report.tensors[i];
    entry.name = tensor.name;
    entry.shape = tensor.shape;
    entry.dtype = tensor.data->dtype;
    entry.bytes_before = entry.bytes_after = tensor.data->bytes();
    entry.reason = reason_to_leave(*tensor.data, arguments.format, arguments.selection);
    if (entry.reason) continue;
    const StoredTensor stored = stored_tensor(style, arguments.format, tensor.name, tensor.shape);
    Rewritten& rewritten = plan.tensors[i];
    rewritten.parts = {stored.data, stored.scale};
    if (stored.half != TensorScaleHalf::none) rewritten.parts.push_back(stored.tensor_scale);
    entry.bytes_after = 0;
    for (const auto& part : rewritten.parts) entry.bytes_after += *bytes_of(part.dtype, part.shape);
    ErrorSums* const error = arguments.report.empty() ? nullptr : &entry.error.emplace();
    rewritten.convert = QuantizeTensor{checkpoint, tensor, stored, arguments.format, rule, error};
  }
  if (!plan.tensors.empty()) {
    const Modules modules = modules_of(checkpoint, report.tensors);
    plan.quantization_config =
        quantization_config(style, arguments.format, report.scale_rule, modules.ignored, modules.more_targets);
    if (style == Style::modelopt) plan.modelopt_config = modelopt_config(arguments.format, modules.ignored);
  }

  // Neither gets its name before both are written.
  if (report_output)
    plan.before_commit = [&] {
      report_output->fill([&](const std::filesystem::path& path) { write_report(report, path); });
    };
  const RewriteResult result = rewrite(checkpoint, plan, arguments.output, arguments.force);
  if (report_output) report_output->commit();
  print_summary(report, result);
}

}  // namespace microscale::tools
