#include <Kokkos_Core.hpp>
#include <Microscale_HostCeilings.hpp>
#include <Microscale_Json.hpp>
#include <Microscale_Names.hpp>
#include <Microscale_Roofline.hpp>
#include <Microscale_RunBackend.hpp>
#include <Microscale_ShapeArguments.hpp>

#include <algorithm>
#include <cstdio>

namespace microscale::tools {
namespace {

/// A device with what the problem would take on it.
struct Estimate {
  Device device;
  Roofline roofline;
  std::optional<Waves> waves;
};

/// The scale layout that the hardware of a target reads.
ScaleLayout layout_for(const std::string& target) {
  if (target == "sm100") return ScaleLayout::tcgen;
  if (target == "cdna4") return ScaleLayout::cdna4;
  return ScaleLayout::linear;
}

/// Those that the explained problem could run on: of the target, or, without one, of backends that are available.
std::vector<Device> devices_for(const std::string& target, const Problem& problem) {
  if (problem.execution == ExecutionKind::host) return {measure_this_host(problem.concurrency)};
  std::vector<Device> result;
  for (const Device& device : devices()) {
    const bool available = std::any_of(backends().begin(), backends().end(), [&](const BackendInfo& backend) {
      return backend.name == device.target && backend.available;
    });
    if (target.empty() ? available : device.target == target) result.push_back(device);
  }
  return result;
}

std::vector<Estimate> estimates_for(const std::string& target, const Explanation& explanation) {
  std::vector<Estimate> result;
  for (const Device& device : devices_for(target, explanation.problem)) {
    result.push_back({device, roofline(explanation.problem, device), {}});
    if (explanation.choice.backend)
      result.back().waves = predicted_waves(explanation.problem, explanation.choice.config, device);
  }
  return result;
}

Json json_of(const Work& work) {
  return {{"flops", work.flops},     {"bytes", work.bytes()},   {"bytes_a", work.bytes_a},
          {"bytes_b", work.bytes_b}, {"bytes_c", work.bytes_c}, {"intensity", work.intensity()}};
}

Json json_of(const Estimate& estimate, const Work& work) {
  const auto& [device, roofline, waves] = estimate;
  Json json = {{"name", device.name},
               {"units", device.units},
               {"bytes_per_second", device.bytes_per_second},
               {"memory_seconds", roofline.memory_seconds},
               {"compute_seconds", roofline.compute_seconds},
               {"seconds", roofline.seconds()},
               {"bound", roofline.memory_bound() ? "memory" : "compute"},
               {"source", device.source}};
  if (work.flops > 0) {
    json["precision"] = to_string(roofline.precision);
    json["flops_per_second"] = device.flops_per_second[static_cast<std::size_t>(roofline.precision)];
  }
  if (waves) {
    json["tiles"] = waves->tiles;
    json["waves"] = waves->waves;
  }
  return json;
}

void print(const Work& work) {
  std::printf("  work       %.0f flops, %.0f bytes moved (a %.0f", work.flops, work.bytes(), work.bytes_a);
  if (work.bytes_b > 0) std::printf(", b %.0f", work.bytes_b);
  std::printf(", c %.0f): %.4g flops a byte\n", work.bytes_c, work.intensity());
}

void print(const Estimate& estimate, const Work& work) {
  const auto& [device, roofline, waves] = estimate;
  std::printf("  roofline   %s: %.3g s at least, bound by %s\n", device.name, roofline.seconds(),
              roofline.memory_bound() ? "memory" : "compute");
  std::printf("               memory   %.3g s at %.4g GB/s\n", roofline.memory_seconds, device.bytes_per_second / 1e9);
  if (work.flops > 0)
    std::printf("               compute  %.3g s at %.4g GFLOP/s (%s)\n", roofline.compute_seconds,
                device.flops_per_second[static_cast<std::size_t>(roofline.precision)] / 1e9,
                to_string(roofline.precision));
  if (waves)
    std::printf("               waves    %.0f: %.0f tiles on %d units\n", waves->waves, waves->tiles, device.units);
  std::printf("               from     %s\n", device.source);
}

}  // namespace

void explain_command(const ExplainArguments& arguments) {
  Shape shape = shape_from(arguments.shape);
  const std::string target = arguments.target == "auto" ? "" : arguments.target;
  if (arguments.shape.scales.empty()) shape.scale_layout = layout_for(target);

  using Exec = Kokkos::DefaultExecutionSpace;
  const Problem here = Impl::problem_on(Exec(), shape.operation);
  Problem problem = shaped_problem(shape);
  problem.execution = here.execution;
  problem.device = here.device;
  problem.concurrency = here.concurrency;
  const Explanation explanation = default_context().explain(problem, {.target = target});
  const Work work = work_of(explanation.problem);
  const std::vector<Estimate> estimates = estimates_for(target, explanation);

  if (arguments.json) {
    Json json = Json::parse(explanation.to_json());
    json["target"] = arguments.target;
    json["work"] = json_of(work);
    json["devices"] = Json::array();
    for (const Estimate& estimate : estimates) json["devices"].push_back(json_of(estimate, work));
    std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return;
  }
  std::printf("%s", explanation.to_string().c_str());
  print(work);
  for (const Estimate& estimate : estimates) print(estimate, work);
}

}  // namespace microscale::tools
