#include <Digits_Models.hpp>
#include <Digits_Run.hpp>

digits::ModelResults digits::run_moe(const Task& task) {
  return run_all<Moe>(task, "moe", "MoE",
                      "64 → 128, a residual top-2 mixture of 8 SwiGLU experts (128 → 64 → 128), → 10");
}
