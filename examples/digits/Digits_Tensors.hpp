#ifndef DIGITS_TENSORS_HPP
#define DIGITS_TENSORS_HPP

#include <Kokkos_Core.hpp>
#include <Microscale.hpp>
#include <Microscale_Safetensors.hpp>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace digits {

namespace ms = microscale;

using Exec = Kokkos::DefaultExecutionSpace;
using Space = Exec::memory_space;
template <class T>
using Vector = Kokkos::View<T*, Kokkos::LayoutRight, Space>;
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Space>;
template <class T>
using Stack = Kokkos::View<T***, Kokkos::LayoutRight, Space>;

using File = ms::tools::SafetensorsFile;

/// A tensor of `file` as a View of the same rank on the device. BF16 is read as float or bf16, F32 as float, I32 as
/// std::int32_t. Throws std::runtime_error when there is no such tensor, or its rank or type is another.
template <class View>
View load(const File& file, const std::string& name) {
  using T = typename View::value_type;
  using ms::tools::Dtype;
  const auto* tensor = file.find(name);
  if (tensor == nullptr) throw std::runtime_error(file.path() + " has no tensor " + name);
  const bool is_bf16 = tensor->dtype == Dtype::BF16 && !std::is_same_v<T, std::int32_t>;
  const bool is_same = (tensor->dtype == Dtype::F32 && std::is_same_v<T, float>) ||
                       (tensor->dtype == Dtype::I32 && std::is_same_v<T, std::int32_t>);
  if (tensor->shape.size() != View::rank() || !(is_bf16 || is_same)) {
    throw std::runtime_error(file.path() + ": tensor " + name + " has an unexpected rank or type");
  }
  Kokkos::LayoutRight layout;
  for (std::size_t i = 0; i < View::rank(); ++i) layout.dimension[i] = tensor->shape[i];
  const View device(name, layout);
  const auto host = Kokkos::create_mirror_view(device);
  const std::byte* bytes = file.data(*tensor).data();
  if (is_same) {
    std::memcpy(host.data(), bytes, host.size() * sizeof(T));
  } else {
    for (std::size_t i = 0; i < host.size(); ++i) {
      std::uint16_t bits;
      std::memcpy(&bits, bytes + 2 * i, 2);
      host.data()[i] = static_cast<T>(static_cast<float>(ms::bf16::from_bits(bits)));
    }
  }
  Kokkos::deep_copy(device, host);
  return device;
}

template <class T>
Matrix<T> make_matrix(const std::string& label, std::int64_t rows, std::int64_t cols) {
  return Matrix<T>(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), rows, cols);
}

}  // namespace digits

#endif
