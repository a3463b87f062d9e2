// The command-line program `microscale`.

#include <CLI/CLI.hpp>
#include <Microscale_Commands.hpp>
#include <Microscale_Config.hpp>
#include <Microscale_Convert.hpp>
#include <Microscale_Errors.hpp>
#include <Microscale_Output.hpp>

#include <cstdio>
#include <map>

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

int run(int argc, char** argv) {
  CLI::App app{"Quantizes safetensors checkpoints to block-scaled formats, and looks at the result.", "microscale"};
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
  }
  if (std::fflush(stdout) != 0) throw FileError("standard output", "cannot be written");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  clean_up_on_signals();
  try {
    return run(argc, argv);
  } catch (const UsageError& error) {
    std::fprintf(stderr, "microscale: %s\n", error.what());
    return exit_usage;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "microscale: out of memory\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "microscale: %s\n", error.what());
  }
  return exit_failure;
}
