#include <Digits_Models.hpp>
#include <Digits_Run.hpp>

digits::ModelResults digits::run_mlp(const Task& task) {
  return run_all<Mlp>(task, "mlp", "MLP", "64 → 256 → 128 → 10, ReLU");
}
