// The command-line program `microscale`.

#include <CLI/CLI.hpp>
#include <Microscale_Commands.hpp>
#include <Microscale_Config.hpp>
#include <Microscale_Convert.hpp>
#include <Microscale_Dispatch.hpp>
#include <Microscale_Errors.hpp>
#include <Microscale_Output.hpp>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace microscale::tools;

constexpr int exit_failure = 1;
constexpr int exit_usage = 2;

std::map<std::string, FileFormat> formats() {
  std::map<std::string, FileFormat> names;
  for (std::size_t i = 0; i < file_format_count; ++i)
    names.emplace(to_string(static_cast<FileFormat>(i)), static_cast<FileFormat>(i));
  return names;
}

const std::map<std::string, Style> styles{{"compressed-tensors", Style::compressed_tensors},
                                          {"modelopt", Style::modelopt},
                                          {"microscale", Style::microscale}};
const std::map<std::string, Dtype> dtypes{{"bf16", Dtype::BF16}, {"f16", Dtype::F16}, {"f32", Dtype::F32}};

/// An option whose value is one of a map's names.
template <class Value>
CLI::Option* add_choice(CLI::App& command, const std::string& name, const std::map<std::string, Value>& choices,
                        std::string& text, const std::string& description) {
  std::vector<std::string> names;
  for (const auto& choice : choices) names.push_back(choice.first);
  return command.add_option(name, text, description)->check(CLI::IsMember(names))->type_name("");
}

/// What `explain` and `tune` have in common.
void add_shape(CLI::App& command, ShapeArguments& shape, std::vector<std::string> operations) {
  command.add_option("OPERATION", shape.operation, "what is to be done")
      ->required()
      ->check(CLI::IsMember(std::move(operations)))
      ->type_name("");
  command.add_option("--a", shape.a, "format of A: f32, f16, bf16, nvfp4, mxfp4, mxfp6_e2m3, mxfp8_e4m3 ...");
  command.add_option("--b", shape.b, "format of B");
  command.add_option("--c", shape.c, "format of C (default bf16)");
  command.add_option("-m", shape.m, "rows of A and C");
  command.add_option("-n", shape.n, "rows of B, columns of C");
  command.add_option("-k", shape.k, "columns of A and B");
  command.add_option("--groups", shape.groups, "grouped: experts");
  command.add_option("--estimated-total-m", shape.estimated_total_m, "grouped: the hint; rows of all groups together");
  command.add_option("--active-experts", shape.active_experts, "grouped: the hint (default: all)");
  command.add_option("--scales", shape.scales, "scale layout: linear, tcgen, cdna4 or tile_8x4")->type_name("");
}

/// The backends that can say how they would run something, here or not.
std::vector<std::string> targets() {
  std::vector<std::string> names{"auto"};
  for (const microscale::BackendInfo& backend : microscale::backends())
    if (!backend.description.empty() && backend.name != microscale::reference_name) names.emplace_back(backend.name);
  return names;
}

int run(int argc, char** argv) {
  CLI::App app{"Quantizes safetensors checkpoints to block-scaled formats, and explains and tunes operations.",
               "microscale"};
  app.set_version_flag("--version", MICROSCALE_VERSION_STRING);
  app.require_subcommand(1);
  const std::string in_text = "a .safetensors file, or a model folder";

  auto& quantize = *app.add_subcommand("quantize", "Quantize the weights of a model");
  QuantizeArguments quantize_arguments;
  std::string format, include, exclude, style;
  quantize.add_option("IN", quantize_arguments.input, in_text)->required();
  quantize.add_option("OUT", quantize_arguments.output, "the new file or folder")->required();
  add_choice(quantize, "--format", formats(), format, "the block format")->required();
  add_choice(quantize, "--scale-rule", scale_rule_names, quantize_arguments.scale_rule,
             "how E8M0 scales are chosen (default rceil)");
  quantize.add_option("--include", include,
                      "regular expression: quantize the tensors whose names it matches, instead of all weights but "
                      "embeddings, norms, routers and lm_head");
  quantize.add_option("--exclude", exclude, "regular expression: leave the tensors alone whose names it matches");
  add_choice(quantize, "--style", styles, style,
             "whose names to use in the file (default compressed-tensors where it has the format, else microscale)");
  quantize.add_option("--report", quantize_arguments.report, "write errors and sizes to FILE.json or FILE.html")
      ->type_name("FILE");
  quantize.add_flag("--force", quantize_arguments.force, "replace OUT and the report if they exist");

  auto& dequantize = *app.add_subcommand("dequantize", "Turn block-scaled tensors into plain ones");
  DequantizeArguments dequantize_arguments;
  std::string dtype;
  dequantize.add_option("IN", dequantize_arguments.input, in_text)->required();
  dequantize.add_option("OUT", dequantize_arguments.output, "the new file or folder")->required();
  add_choice(dequantize, "--dtype", dtypes, dtype, "type of the result (default bf16)");
  dequantize.add_flag("--force", dequantize_arguments.force, "replace OUT if it exists");

  auto& inspect = *app.add_subcommand("inspect", "List the tensors of a model");
  std::string input, other;
  bool json = false;
  inspect.add_option("IN", input, in_text)->required();
  inspect.add_flag("--json", json, "as JSON");

  auto& compare = *app.add_subcommand("compare", "Measure how far B's tensors are from A's, one by one");
  compare.add_option("A", input, in_text)->required();
  compare.add_option("B", other, in_text)->required();
  compare.add_flag("--json", json, "as JSON");

  auto& backends = *app.add_subcommand("backends", "List the library's backends and what each can do here");

  auto& explain = *app.add_subcommand("explain", "Say who would run an operation and how, here or on other hardware");
  ExplainArguments explain_arguments;
  explain_arguments.target = "auto";
  add_shape(explain, explain_arguments.shape, {"matmul", "grouped", "quantize"});
  explain.add_option("--target", explain_arguments.target, "a backend: as if its hardware were here (default auto)")
      ->check(CLI::IsMember(targets()))
      ->type_name("");
  explain.add_flag("--json", explain_arguments.json, "as JSON");

  auto& tune = *app.add_subcommand("tune", "Measure configurations on this machine and write a tuning file");
  TuneArguments tune_arguments;
  tune_arguments.repeat = 9;
  add_shape(tune, tune_arguments.shape, {"matmul", "grouped"});
  tune.add_option("--list", tune_arguments.list, "file with lines `M N K`, for several shapes")->type_name("FILE");
  tune.add_option("--backend", tune_arguments.backend, "this one only (default: all that can)")->type_name("NAME");
  tune.add_option("--repeat", tune_arguments.repeat, "measurements of each configuration (default 9)")
      ->check(CLI::Range(1, 10000))
      ->type_name("");
  tune.add_option("-o,--output", tune_arguments.output, "tuning file to write, or to add to if it exists")
      ->type_name("FILE");
  tune.add_flag("--json", tune_arguments.json, "as JSON");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_usage;
  }

  if (quantize.parsed()) {
    quantize_arguments.format = formats().at(format);
    if (!style.empty()) quantize_arguments.style = styles.at(style);
    if (quantize.count("--include") > 0)
      quantize_arguments.selection.include = regular_expression("--include", include);
    if (quantize.count("--exclude") > 0)
      quantize_arguments.selection.exclude = regular_expression("--exclude", exclude);
    const KokkosSession kokkos;
    quantize_command(quantize_arguments);
  } else if (dequantize.parsed()) {
    if (!dtype.empty()) dequantize_arguments.dtype = dtypes.at(dtype);
    const KokkosSession kokkos;
    dequantize_command(dequantize_arguments);
  } else if (inspect.parsed()) {
    inspect_command(input, json);
  } else if (compare.parsed()) {
    const KokkosSession kokkos;
    compare_command(input, other, json);
  } else if (backends.parsed()) {
    backends_command();
  } else if (explain.parsed()) {
    const KokkosSession kokkos;
    explain_command(explain_arguments);
  } else if (tune.parsed()) {
    const KokkosSession kokkos;
    tune_command(tune_arguments);
  }
  if (std::fflush(stdout) != 0) throw FileError("standard output", "cannot be written");
  return 0;
}

/// The library's own messages begin with its name already.
void report(const std::string& message) {
  const bool named = message.rfind("microscale:", 0) == 0;
  std::fprintf(stderr, "%s%s\n", named ? "" : "microscale: ", message.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  clean_up_on_signals();
  try {
    return run(argc, argv);
  } catch (const UsageError& error) {
    report(error.what());
    return exit_usage;
  } catch (const std::bad_alloc&) {
    report("out of memory");
  } catch (const std::exception& error) {
    report(error.what());
  }
  return exit_failure;
}
