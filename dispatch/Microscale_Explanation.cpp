#include <Microscale_Dispatch.hpp>
#include <Microscale_JsonWriter.hpp>
#include <Microscale_Names.hpp>

#include <algorithm>
#include <cstdio>

namespace microscale {
namespace {

using Impl::JsonWriter;

std::string formatted(const char* format, double value) {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

const char* source_name(ConfigSource source) {
  switch (source) {
    case ConfigSource::none:
      return "none";
    case ConfigSource::backend:
      return "backend";
    case ConfigSource::tuning:
      return "tuning";
    case ConfigSource::caller:
      return "caller";
    case ConfigSource::ignored:
      return "ignored";
  }
  return "unknown";
}

std::string describe_config(const Choice& choice) {
  switch (choice.config_source) {
    case ConfigSource::none:
      return "none (the reference has no tiles)";
    case ConfigSource::backend:
      return to_string(choice.config);
    case ConfigSource::tuning:
      return to_string(choice.config) + " (" + choice.tuning + ")";
    case ConfigSource::caller:
      return to_string(choice.config) + " (given by the caller)";
    case ConfigSource::ignored:
      return "none (the reference has no tiles; the caller's configuration is ignored)";
  }
  return {};
}

void write(JsonWriter& json, const Operand& operand) {
  json.open('{');
  json.key("rows").number(operand.rows).key("cols").number(operand.cols).key("batch").number(operand.batch);
  json.key("format").string(to_string(operand.format)).key("structure").string(structural_name(operand.format));
  json.key("row_stride").number(operand.row_stride).key("col_stride").number(operand.col_stride);
  if (operand.format.block_size != 0) json.key("scale_layout").string(to_string(operand.scale_layout));
  if (operand.prepared_by) json.key("prepared_by").string(operand.prepared_by->name());
  json.close('}');
}

}  // namespace

std::string Explanation::to_string() const {
  std::string text = microscale::to_string(problem) + "\n";
  if (choice.error.empty()) {
    text += "  backend    " + std::string(choice.name) + "\n";
    text += "  why        " + choice.why + "\n";
    text += "  config     " + describe_config(choice) + "\n";
    if (choice.config_source != ConfigSource::tuning && !choice.tuning.empty())
      text += "  tuning     " + choice.tuning + "\n";
    text += "  workspace  " + std::to_string(choice.workspace_bytes) + " bytes\n";
    if (choice.prepared_form.bytes > 0)
      text += "  prepared   " + std::to_string(choice.prepared_form.bytes) + " bytes for b\n";
  } else
    text += "  error      " + choice.error + "\n";

  std::size_t width = 0;
  for (const Candidate& c : choice.candidates) width = std::max(width, c.name.size());
  text += "  candidates, in order of preference\n";
  for (const Candidate& c : choice.candidates) {
    text += "    " + std::string(c.name) + std::string(width - c.name.size() + 2, ' ');
    if (choice.error.empty() && c.name == choice.name)
      text += "chosen";
    else
      text += c.able ? "able, not chosen" : "no: " + c.reason;
    if (c.cost >= 0) text += formatted(", %.3g s", c.cost);
    text += "\n";
  }
  return text;
}

std::string Explanation::to_json() const {
  JsonWriter json;
  json.open('{');
  json.key("operation").string(microscale::to_string(problem.operation));
  json.key("execution").string(microscale::to_string(problem.execution));
  json.key("device").number(std::int64_t{problem.device});
  json.key("concurrency").number(std::int64_t{problem.concurrency});
  json.key("m").number(problem.m).key("n").number(problem.n).key("k").number(problem.k);
  json.key("problem").string(microscale::to_string(problem));
  write(json.key("a"), problem.a);
  write(json.key("b"), problem.b);
  write(json.key("c"), problem.c);
  if (choice.error.empty()) {
    json.key("backend").string(choice.name).key("why").string(choice.why);
    Impl::write(json.key("config"), choice.config);
    json.key("config_source").string(source_name(choice.config_source));
    if (!choice.tuning.empty()) json.key("tuning").string(choice.tuning);
    json.key("workspace_bytes").number(choice.workspace_bytes);
    json.key("prepared_bytes").number(choice.prepared_form.bytes);
  } else
    json.key("error").string(choice.error);
  if (!choice.forced_by.empty()) json.key("forced_by").string(choice.forced_by);
  json.key("candidates").open('[');
  for (const Candidate& c : choice.candidates) {
    json.open('{').key("name").string(c.name).key("able").boolean(c.able);
    if (!c.reason.empty()) json.key("reason").string(c.reason);
    if (c.cost >= 0) json.key("cost").number(c.cost);
    json.close('}');
  }
  json.close(']').close('}');
  return json.text();
}

}  // namespace microscale
