#include <Microscale_Config.hpp>
#include <Microscale_Errors.hpp>
#include <Microscale_Output.hpp>
#include <Microscale_Report.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace microscale::tools {
namespace {

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : printable(text)) switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  return result;
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

struct Totals {
  std::size_t quantized = 0;
  std::size_t left = 0;
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  ErrorSums error;
};

Totals totals_of(const Report& report) {
  Totals totals;
  for (const auto& tensor : report.tensors) {
    ++(tensor.reason ? totals.left : totals.quantized);
    totals.before += tensor.bytes_before;
    totals.after += tensor.bytes_after;
    if (tensor.error) totals.error += *tensor.error;
  }
  return totals;
}

constexpr const char* style_sheet = R"(
:root { --ink: #1d2733; --soft: #5c6b7a; --line: #dde3ea; --fill: #2f6fb0; --fill2: #b9cde2; --page: #f6f8fa; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 36px 0 8px; }
p { margin: 4px 0; color: var(--soft); } code { color: var(--ink); overflow-wrap: anywhere; }
.cards { display: flex; flex-wrap: wrap; gap: 12px; margin: 24px 0; }
.card { flex: 1 1 150px; background: #fff; border: 1px solid var(--line); border-radius: 8px; padding: 12px 16px; }
.card b { display: block; font-size: 22px; } .card span { color: var(--soft); font-size: 13px; }
.panel { background: #fff; border: 1px solid var(--line); border-radius: 8px; padding: 16px; overflow-x: auto; }
svg { display: block; width: 100%; height: auto; } svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: right; padding: 5px 8px; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; } td.name, th.name { text-align: left; white-space: normal; overflow-wrap: anywhere; }
)";

/// A horizontal axis from lo to hi with round ticks, as pairs of position (0..1) and label.
std::vector<std::pair<double, std::string>> ticks(double lo, double hi, int about) {
  const double rough = (hi - lo) / about;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {2.0, 5.0, 10.0})
    if (step < rough) step = factor * power;
  std::vector<std::pair<double, std::string>> result;
  for (double tick = std::ceil(lo / step) * step; tick <= hi + 1e-9 * step; tick += step)
    result.emplace_back((tick - lo) / (hi - lo), number_text(tick, 4));
  return result;
}

/// How many quantized tensors have which SQNR.
std::string sqnr_histogram(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  double lo = std::floor(*least), hi = std::ceil(*most);
  if (hi - lo < 1) hi = lo + 1;
  constexpr int bins = 24;
  std::vector<int> counts(bins);
  for (const double value : values)
    ++counts[static_cast<std::size_t>(std::min(bins - 1, static_cast<int>((value - lo) / (hi - lo) * bins)))];
  const int highest = *std::max_element(counts.begin(), counts.end());
  constexpr double left = 40, width = 940, top = 10, height = 150;
  std::string svg = "<svg viewBox=\"0 0 1000 200\" role=\"img\" aria-label=\"Histogram of SQNR\">";
  for (int b = 0; b < bins; ++b) {
    const int count = counts[static_cast<std::size_t>(b)];
    const double h = height * count / highest;
    svg += "<rect x=\"" + fixed(left + width * b / bins + 1, 1) + "\" y=\"" + fixed(top + height - h, 1) +
           "\" width=\"" + fixed(width / bins - 2, 1) + "\" height=\"" + fixed(h, 1) +
           "\" fill=\"var(--fill)\"><title>" + std::to_string(count) + " tensors</title></rect>";
  }
  svg += "<line x1=\"40\" x2=\"980\" y1=\"160\" y2=\"160\" stroke=\"var(--line)\"/>";
  for (const auto& [at, label] : ticks(lo, hi, 8))
    svg += "<text x=\"" + fixed(left + width * at, 1) + "\" y=\"176\" text-anchor=\"middle\">" + label + "</text>";
  svg += "<text x=\"510\" y=\"196\" text-anchor=\"middle\">SQNR in dB (higher is better)</text>";
  svg += "<text x=\"32\" y=\"18\" text-anchor=\"end\">" + std::to_string(highest) + "</text>";
  return svg + "</svg>";
}

/// One bar per quantized tensor, in the order of the file.
std::string sqnr_bars(const std::vector<const ReportTensor*>& tensors) {
  double most = 1;
  for (const auto* tensor : tensors)
    if (std::isfinite(tensor->error->sqnr_db())) most = std::max(most, tensor->error->sqnr_db());
  constexpr double left = 40, width = 940, top = 10, height = 180;
  std::string svg = "<svg viewBox=\"0 0 1000 220\" role=\"img\" aria-label=\"SQNR of each tensor\">";
  for (const auto& [at, label] : ticks(0, most, 5)) {
    const std::string y = fixed(top + height * (1 - at), 1);
    svg += "<line x1=\"40\" x2=\"980\" y1=\"" + y + "\" y2=\"" + y + "\" stroke=\"var(--line)\"/><text x=\"34\" y=\"" +
           fixed(top + height * (1 - at) + 4, 1) + "\" text-anchor=\"end\">" + label + "</text>";
  }
  const double step = width / static_cast<double>(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const double value = tensors[i]->error->sqnr_db();
    const double h = height * std::clamp(std::isfinite(value) ? value / most : 1.0, 0.0, 1.0);
    svg += "<rect x=\"" + fixed(left + step * (static_cast<double>(i) + 0.1), 2) + "\" y=\"" +
           fixed(top + height - h, 2) + "\" width=\"" + fixed(std::min(step * 0.8, 40.0), 2) + "\" height=\"" +
           fixed(h, 2) + "\" fill=\"var(--fill)\"><title>" + escaped(tensors[i]->name) + ": " + number_text(value, 4) +
           " dB</title></rect>";
  }
  svg +=
      "<text x=\"510\" y=\"212\" text-anchor=\"middle\">quantized tensors in the order of the file (names on "
      "hover), SQNR in dB</text>";
  return svg + "</svg>";
}

std::string size_bars(const Totals& totals) {
  const double most = static_cast<double>(std::max<std::uint64_t>({totals.before, totals.after, 1}));
  std::string svg = "<svg viewBox=\"0 0 1000 80\" role=\"img\" aria-label=\"Size before and after\">";
  double y = 6;
  for (const auto& [label, bytes, fill] :
       {std::tuple{"before", totals.before, "var(--fill2)"}, std::tuple{"after", totals.after, "var(--fill)"}}) {
    const double width = 800 * static_cast<double>(bytes) / most;
    svg += "<text x=\"60\" y=\"" + fixed(y + 19, 1) + "\" text-anchor=\"end\">" + label + "</text><rect x=\"70\" y=\"" +
           fixed(y, 1) + "\" height=\"28\" rx=\"3\" width=\"" + fixed(width, 1) + "\" fill=\"" + fill +
           "\"/><text x=\"" + fixed(78 + width, 1) + "\" y=\"" + fixed(y + 19, 1) + "\">" + human_bytes(bytes) +
           "</text>";
    y += 36;
  }
  return svg + "</svg>";
}

std::string card(const std::string& value, const std::string& label) {
  return "<div class=\"card\"><b>" + value + "</b><span>" + label + "</span></div>";
}

}  // namespace

std::string human_bytes(std::uint64_t bytes) {
  static constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(units); ++unit) value /= 1000;
  return (unit == 0 ? std::to_string(bytes) : number_text(value, 3)) + " " + units[unit];
}

std::string number_text(double value, int digits) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[64];
  std::snprintf(text, sizeof(text), "%.*g", digits, value);
  return text;
}

Json measures_json(const ErrorSums& sums, bool has_blocks) {
  return {{"sqnr_db", finite(sums.sqnr_db())},
          {"max_abs_error", finite(sums.max_abs_error)},
          {"mean_abs_error", finite(sums.mean_abs_error())},
          {"cosine", finite(sums.cosine())},
          {"share_saturated", has_blocks ? Json(sums.share(sums.saturated)) : Json(nullptr)},
          {"share_zeroed", sums.share(sums.zeroed)},
          {"non_finite", sums.non_finite}};
}

Json report_json(const Report& report) {
  const Totals totals = totals_of(report);
  Json tensors = Json::array();
  for (const auto& tensor : report.tensors) {
    Json entry = {{"name", tensor.name},
                  {"shape", tensor.shape},
                  {"dtype", to_string(tensor.dtype)},
                  {"bytes_before", tensor.bytes_before},
                  {"bytes_after", tensor.bytes_after},
                  {"quantized", !tensor.reason.has_value()}};
    if (tensor.reason) entry["reason"] = *tensor.reason;
    if (tensor.error) entry["error"] = measures_json(*tensor.error, true);
    tensors.push_back(std::move(entry));
  }
  Json result = {{"microscale", MICROSCALE_VERSION_STRING},
                 {"input", report.input},
                 {"output", report.output},
                 {"format", report.format},
                 {"style", report.style},
                 {"quantized", totals.quantized},
                 {"left_alone", totals.left},
                 {"bytes_before", totals.before},
                 {"bytes_after", totals.after},
                 {"error", measures_json(totals.error, true)},
                 {"tensors", std::move(tensors)}};
  result["scale_rule"] = report.scale_rule.empty() ? Json(nullptr) : Json(report.scale_rule);
  return result;
}

std::string report_html(const Report& report) {
  const Totals totals = totals_of(report);
  std::vector<const ReportTensor*> quantized;
  std::vector<double> sqnrs;
  for (const auto& tensor : report.tensors)
    if (tensor.error) {
      quantized.push_back(&tensor);
      if (std::isfinite(tensor.error->sqnr_db())) sqnrs.push_back(tensor.error->sqnr_db());
    }

  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>Microscale: " +
      escaped(report.format) + "</title><style>" + style_sheet + "</style></head><body><main>\n";
  html += "<h1>Quantized to " + escaped(report.format) + "</h1><p><code>" + escaped(report.input) +
          "</code> &rarr; <code>" + escaped(report.output) + "</code></p><p>style " + escaped(report.style) +
          (report.scale_rule.empty() ? "" : ", scale rule " + escaped(report.scale_rule)) +
          ", Microscale " MICROSCALE_VERSION_STRING "</p>\n<div class=\"cards\">";
  html += card(std::to_string(totals.quantized), "tensors quantized");
  html += card(std::to_string(totals.left), "tensors left alone");
  html += card(human_bytes(totals.after), "instead of " + human_bytes(totals.before));
  if (!quantized.empty()) {
    html += card(number_text(totals.error.sqnr_db(), 4) + " dB", "SQNR over all quantized values");
    html += card(number_text(100 * totals.error.share(totals.error.zeroed), 3) + " %", "of them became zero");
    html += card(number_text(100 * totals.error.share(totals.error.saturated), 3) + " %", "of them saturated");
  }
  html += "</div>\n<h2>Size</h2><div class=\"panel\">" + size_bars(totals) + "</div>\n";
  if (!quantized.empty()) {
    html += "<h2>Error of each tensor</h2><div class=\"panel\">" + sqnr_bars(quantized) + "</div>\n";
    if (!sqnrs.empty())
      html += "<h2>How the errors are spread</h2><div class=\"panel\">" + sqnr_histogram(sqnrs) + "</div>\n";
    html +=
        "<h2>Quantized</h2><div class=\"panel\"><table><tr><th class=\"name\">tensor</th><th>shape</th><th>from</th>"
        "<th>bytes</th><th>SQNR dB</th><th>max error</th><th>mean error</th><th>cosine</th><th>saturated</th>"
        "<th>zeroed</th></tr>\n";
    for (const auto* tensor : quantized) {
      const ErrorSums& error = *tensor->error;
      html += "<tr><td class=\"name\">" + escaped(tensor->name) + "</td><td>" + shape_text(tensor->shape) +
              "</td><td>" + std::string(to_string(tensor->dtype)) + "</td><td>" + human_bytes(tensor->bytes_after) +
              "</td><td>" + number_text(error.sqnr_db(), 4) + "</td><td>" + number_text(error.max_abs_error, 3) +
              "</td><td>" + number_text(error.mean_abs_error(), 3) + "</td><td>" + fixed(error.cosine(), 6) +
              "</td><td>" + number_text(100 * error.share(error.saturated), 2) + " %</td><td>" +
              number_text(100 * error.share(error.zeroed), 2) + " %</td></tr>\n";
    }
    html += "</table></div>\n";
  }
  if (totals.left > 0) {
    html +=
        "<h2>Left alone</h2><div class=\"panel\"><table><tr><th class=\"name\">tensor</th><th>shape</th>"
        "<th>type</th><th>bytes</th><th class=\"name\">reason</th></tr>\n";
    for (const auto& tensor : report.tensors)
      if (tensor.reason)
        html += "<tr><td class=\"name\">" + escaped(tensor.name) + "</td><td>" + shape_text(tensor.shape) +
                "</td><td>" + std::string(to_string(tensor.dtype)) + "</td><td>" + human_bytes(tensor.bytes_after) +
                "</td><td class=\"name\">" + escaped(*tensor.reason) + "</td></tr>\n";
    html += "</table></div>\n";
  }
  return html + "</main></body></html>\n";
}

ReportKind report_kind(const std::filesystem::path& path) {
  if (path.extension() == ".json") return ReportKind::json;
  if (path.extension() == ".html") return ReportKind::html;
  throw UsageError("--report " + printable(path.string()) + ": the file must end in .json or .html");
}

void write_report(const Report& report, const std::filesystem::path& path) {
  if (report_kind(path) == ReportKind::json)
    write_json(path, report_json(report));
  else
    write_text(path, report_html(report));
}

}  // namespace microscale::tools
