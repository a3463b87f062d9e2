#include <Digits_Report.hpp>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace digits {
namespace {

__attribute__((format(printf, 1, 2))) std::string text(const char* format, ...) {
  char buffer[1024];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

std::string decibels(double db) { return std::isinf(db) ? "exact" : text("%.1f", db); }
double kilobytes(std::size_t bytes) { return static_cast<double>(bytes) / 1000.0; }

const char* colour_class(const Result& r) {
  if (r.precision == "float" || r.precision == "bf16") return "plain";
  return r.weight_only ? "weights" : "both";
}

constexpr const char* page_head = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Microscale: digits</title>
<style>
:root { --page: #f6f7f9; --card: #fff; --ink: #1c2430; --soft: #667085; --line: #e3e7ed;
        --both: #2f6fde; --weights: #e08a1e; --plain: #8a94a6; --minus: #2f6fde; --plus: #d9483b; }
@media (prefers-color-scheme: dark) {
  :root { --page: #12161c; --card: #1b212a; --ink: #e6eaf0; --soft: #98a3b3; --line: #2e3743;
          --both: #6c9cf2; --weights: #f0a64a; --plain: #8a94a6; --minus: #6c9cf2; --plus: #f0766a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 32px 20px 48px; }
h1 { margin: 0 0 4px; font-size: 28px; } h2 { margin: 36px 0 2px; font-size: 21px; } h3 { margin: 0 0 8px; font-size: 15px; }
p { margin: 4px 0 14px; color: var(--soft); max-width: 84ch; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(320px, 1fr)); gap: 16px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 16px; overflow-x: auto; }
.card + .card.wide, .cards + .card.wide { margin-top: 16px; }
svg { display: block; width: 100%; height: auto; font: 12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
svg text { fill: var(--ink); } svg .soft { fill: var(--soft); }
svg .grid { stroke: var(--line); } svg .lead { stroke: var(--soft); stroke-width: .6; }
.both { fill: var(--both); background: var(--both); } .weights { fill: var(--weights); background: var(--weights); }
.plain { fill: var(--plain); background: var(--plain); } .minus { fill: var(--minus); } .plus { fill: var(--plus); }
.legend { display: flex; flex-wrap: wrap; gap: 6px 20px; margin: 0 0 14px; color: var(--soft); font-size: 13px; }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 7px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 12px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; } th { color: var(--soft); font-weight: 600; }
tr:last-child td { border-bottom: 0; }
.digits { display: grid; grid-template-columns: repeat(auto-fit, minmax(112px, 1fr)); gap: 16px; }
figure { margin: 0; } figcaption { margin-top: 5px; font-size: 13px; } figcaption span { color: var(--soft); display: block; }
figure svg + svg { margin-top: 5px; }
</style>
</head>
<body><main>
)html";

constexpr const char* legend =
    "<div class=\"legend\"><span><i class=\"plain\"></i>no block scaling</span>"
    "<span><i class=\"both\"></i>weights and activations in the format</span>"
    "<span><i class=\"weights\"></i>weights only, bf16 activations</span></div>\n";

/// A step of 1, 2 or 5 times a power of ten that cuts `range` into at most `ticks` parts.
double nice_step(double range, int ticks) {
  const double power = std::pow(10.0, std::floor(std::log10(range / ticks)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (range / (factor * power) <= ticks) return factor * power;
  }
  return 10.0 * power;
}

/// A straight axis from values to coordinates; its ends lie on ticks.
struct Axis {
  double low, high, step, from, to;

  Axis(double smallest, double largest, int ticks, double first, double last) : from(first), to(last) {
    step = nice_step(std::max(largest - smallest, 1e-9), ticks);
    low = std::floor(smallest / step) * step;
    high = std::ceil(largest / step) * step;
  }
  double at(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

std::string axis_label(double value, double step) { return text(step < 1 ? "%.1f" : "%.0f", value); }

/// Horizontal bars, one per result that `value` keeps (not infinite).
template <class Value>
std::string bar_chart(const ModelResults& model, double smallest, const char* unit, Value value) {
  std::vector<const Result*> kept;
  double largest = smallest;
  for (const Result& r : model.results) {
    if (std::isinf(value(r))) continue;
    kept.push_back(&r);
    largest = std::max(largest, value(r));
  }
  constexpr double row = 19, left = 108, width = 460;
  const double bottom = row * static_cast<double>(kept.size()) + 4;
  const Axis x(smallest, largest, 6, left, width - 52);
  std::string svg = text("<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n", width, bottom + 20);
  for (double tick = x.low; tick <= x.high + x.step / 2; tick += x.step) {
    svg += text("<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%.0f\"/>", x.at(tick), x.at(tick), bottom);
    svg += text("<text class=\"soft\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.0f\">%s</text>\n", x.at(tick),
                bottom + 15, axis_label(tick, x.step).c_str());
  }
  double y = 0;
  const std::string* previous = nullptr;
  for (const Result* r : kept) {
    const double v = value(*r);
    if (previous == nullptr || *previous != r->precision) {
      svg += text("<text text-anchor=\"end\" x=\"%.0f\" y=\"%.1f\">%s</text>", left - 8, y + 14, r->precision.c_str());
    }
    previous = &r->precision;
    svg += text("<rect class=\"%s\" rx=\"2\" x=\"%.0f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\"/>", colour_class(*r),
                left, y + 3, std::max(x.at(v) - left, 1.0), row - 5);
    svg += text("<text x=\"%.1f\" y=\"%.1f\">%.1f%s</text>\n", x.at(v) + 5, y + 14, v, unit);
    y += row;
  }
  return svg + "</svg>\n";
}

/// Weight bytes against accuracy. Labels, one for each precision at its weights-and-activations point, stand to the
/// right and move up or down to where nothing else is.
std::string scatter_chart(const ModelResults& model) {
  constexpr double width = 460, height = 300, left = 44, bottom = height - 40;
  double least = 100, most_bytes = 0;
  for (const Result& r : model.results) {
    least = std::min(least, model.accuracy(r));
    most_bytes = std::max(most_bytes, kilobytes(r.weight_bytes));
  }
  const Axis x(0, most_bytes, 6, left, width - 44);
  const Axis y(std::min(least, 99.0), 100, 5, bottom, 12);
  std::string svg = text("<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n", width, height);
  for (double tick = x.low; tick <= x.high + x.step / 2; tick += x.step) {
    svg += text("<text class=\"soft\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.0f\">%s</text>", x.at(tick), bottom + 17,
                axis_label(tick, x.step).c_str());
  }
  for (double tick = y.low; tick <= y.high + y.step / 2; tick += y.step) {
    svg += text("<line class=\"grid\" x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/>", left, width - 8, y.at(tick),
                y.at(tick));
    svg += text("<text class=\"soft\" text-anchor=\"end\" x=\"%.0f\" y=\"%.1f\">%s</text>\n", left - 6, y.at(tick) + 4,
                axis_label(tick, y.step).c_str());
  }
  svg += text("<text class=\"soft\" text-anchor=\"end\" x=\"%.0f\" y=\"%.0f\">weights, kB</text>\n", width - 8,
              height - 4);

  struct Box {
    double left, right, centre, half_height;
  };
  std::vector<Box> taken;
  for (const Result& r : model.results) {
    const double px = x.at(kilobytes(r.weight_bytes)), py = y.at(model.accuracy(r));
    taken.push_back({px - 5, px + 5, py, 4});
    svg +=
        text("<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\" fill-opacity=\".8\"/>\n", colour_class(r), px, py);
  }
  for (const Result& r : model.results) {
    if (r.weight_only) continue;
    const double px = x.at(kilobytes(r.weight_bytes)), py = y.at(model.accuracy(r));
    Box label{px + 16, px + 18 + 6.6 * static_cast<double>(r.precision.size()), py, 6.5};
    const auto free = [&] {
      return label.centre > 6 && label.centre < bottom - 6 &&
             std::none_of(taken.begin(), taken.end(), [&](const Box& b) {
               return b.left < label.right && label.left < b.right &&
                      std::abs(b.centre - label.centre) < b.half_height + label.half_height;
             });
    };
    for (int step = 0; step < 40 && !free(); ++step)
      label.centre = py + (step % 2 == 0 ? 1 : -1) * 7.0 * (step / 2 + 1);
    taken.push_back(label);
    svg += text("<line class=\"lead\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", px + 5, py, label.left - 2,
                label.centre);
    svg += text("<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", label.left, label.centre + 4, r.precision.c_str());
  }
  return svg + "</svg>\n";
}

std::string results_table(const ModelResults& model) {
  std::string html =
      "<table><tr><th>weights</th><th>activations</th><th>right</th><th>accuracy, %</th>"
      "<th>logits' SQNR, dB</th><th>weights, kB</th><th>time, ms</th></tr>\n";
  for (const Result& r : model.results) {
    html +=
        text("<tr><td>%s</td><td>%s</td><td>%zu of %zu</td><td>%.2f</td><td>%s</td><td>%.1f</td><td>%.2f</td></tr>\n",
             r.precision.c_str(), r.activations.c_str(), r.correct, model.images, model.accuracy(r),
             decibels(r.sqnr_db).c_str(), kilobytes(r.weight_bytes), r.milliseconds);
  }
  return html + "</table>\n";
}

/// An 8 x 8 picture: grey from 0 to 1, or signed error with full colour at 1/8.
std::string pixels_svg(const std::array<float, 64>& pixels, bool error) {
  std::string svg = "<svg viewBox=\"0 0 8 8\" shape-rendering=\"crispEdges\"><rect width=\"8\" height=\"8\" fill=\"";
  svg += error ? "#8a94a622\"/>" : "#000\"/>";
  for (int i = 0; i < 64; ++i) {
    const auto v = static_cast<double>(pixels[static_cast<std::size_t>(i)]);
    if (v == 0) continue;
    const char* fill = !error ? "fill=\"#fff\"" : v < 0 ? "class=\"minus\"" : "class=\"plus\"";
    svg += text("<rect x=\"%d\" y=\"%d\" width=\"1\" height=\"1\" %s fill-opacity=\"%.3f\"/>", i % 8, i / 8, fill,
                std::min(std::abs(v) * (error ? 8 : 1), 1.0));
  }
  return svg + "</svg>";
}

std::string picture_row(const std::vector<Picture>& pictures) {
  std::string html = "<div class=\"digits\">\n";
  for (const Picture& p : pictures) {
    std::array<float, 64> error{};
    float largest = 0;
    for (std::size_t i = 0; i < error.size(); ++i) {
      error[i] = p.pixels[i] - pictures.front().pixels[i];
      largest = std::max(largest, std::abs(error[i]));
    }
    const std::string note = &p == &pictures.front() ? "&nbsp;"
                             : largest == 0          ? "exact"
                                                     : text("error up to %.3f", static_cast<double>(largest));
    html += "<figure>" + pixels_svg(p.pixels, false) + pixels_svg(error, true) + "<figcaption>" + p.precision +
            "<span>" + note + "</span></figcaption></figure>\n";
  }
  return html + "</div>\n";
}

}  // namespace

void print_table(const ModelResults& model) {
  std::printf("\n%s: %s\n", model.name.c_str(), model.description.c_str());
  std::printf("  %-12s %-12s %9s %9s %10s %12s %9s\n", "weights", "activations", "right", "accuracy", "SQNR dB",
              "weight bytes", "time ms");
  for (const Result& r : model.results) {
    std::printf("  %-12s %-12s %3zu / %3zu %7.2f %% %10s %12zu %9.2f\n", r.precision.c_str(), r.activations.c_str(),
                r.correct, model.images, model.accuracy(r), decibels(r.sqnr_db).c_str(), r.weight_bytes,
                r.milliseconds);
  }
}

void write_report(const std::filesystem::path& path, const std::vector<ModelResults>& models,
                  const std::vector<Picture>& pictures, const Environment& environment) {
  std::string html = page_head;
  html += "<h1>Handwritten digits in block-scaled formats</h1>\n";
  html += text(
      "<p>Two trained classifiers, run on %zu held-out images with their weights, and then their activations too, in "
      "each of Microscale's formats. Times are the best pass over all images on Kokkos %s (%s, concurrency %d); float "
      "and "
      "bf16 are plain loops, to compare results with and not speed.</p>\n",
      models.empty() ? std::size_t{0} : models.front().images, environment.kokkos_version.c_str(),
      environment.execution_space.c_str(), environment.concurrency);
  html += legend;
  for (const ModelResults& model : models) {
    double least = 99;
    for (const Result& r : model.results) least = std::min(least, model.accuracy(r));
    const double start = std::max(0.0, std::floor(least) - 1);
    html += "<h2>" + model.name + "</h2><p>" + model.description + "</p>\n<div class=\"cards\">\n";
    html += text("<div class=\"card\"><h3>Accuracy, %% (bars start at %.0f)</h3>", start) +
            bar_chart(model, start, "", [&](const Result& r) { return model.accuracy(r); }) + "</div>\n";
    html += "<div class=\"card\"><h3>SQNR of the logits against float, dB</h3>" +
            bar_chart(model, 0, "", [](const Result& r) { return r.sqnr_db; }) + "</div>\n";
    html += "<div class=\"card\"><h3>Accuracy, %, against size</h3>" + scatter_chart(model) + "</div>\n</div>\n";
    html += "<div class=\"card wide\">" + results_table(model) + "</div>\n";
  }
  if (!pictures.empty()) {
    html +=
        "<h2>One digit, as each format keeps it</h2><p>Above: the 64 pixels, quantized as one row and dequantized. "
        "Below: "
        "the error, full colour at 1/8 of the brightest pixel; blue too dark, red too bright.</p>\n<div "
        "class=\"card\">" +
        picture_row(pictures) + "</div>\n";
  }
  html += "</main></body>\n</html>\n";

  std::ofstream file(path, std::ios::binary);
  file << html;
  file.close();
  if (!file) throw std::runtime_error("digits: cannot write " + path.string());
}

}  // namespace digits
