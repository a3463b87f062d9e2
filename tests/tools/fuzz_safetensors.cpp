// A libFuzzer target: cmake -DMicroscale_ENABLE_FUZZING=ON with clang, then run fuzz_safetensors on a corpus folder.

#include <Fuzz_Safetensors.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  microscale::test::read_untrusted(std::as_bytes(std::span(data, size)));
  return 0;
}
