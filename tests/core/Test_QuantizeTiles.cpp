#include "TestMatmul.hpp"
#include <Microscale_Dequantize.hpp>
#include <Microscale_Quantize.hpp>

// The quantization kernels of devices at the edges of their tiles; on a host-only Kokkos they run with teams of one
// thread. They must give the bytes that the kernels of the host give.
namespace {

using namespace microscale;
using namespace microscale::Test;

constexpr const char* label = "microscale::test";
using Host = Kokkos::DefaultHostExecutionSpace;

/// pitch_extra: if not 0, rows of the result that begin at no particular address.
template <class Format, class Layout, class T>
void check_quantize(std::int64_t rows, std::int64_t cols, ScaleLayout layout, std::int64_t pitch_extra,
                    const QuantizeOptions& options) {
  const auto what = std::string(Format::name) + " " + std::to_string(rows) + " x " + std::to_string(cols) + " " +
                    name(layout) + ", pitch + " + std::to_string(pitch_extra);
  const auto values = hostile_values(rows, cols, static_cast<std::uint64_t>(rows * 1000 + cols), true);
  const auto view = view_of<T, Layout>(values, rows, cols);
  const BlockScaledMatrix<Format, Space> expected("expected", rows, cols, layout), made("made", rows, cols, layout);
  poison(expected, 0x55);
  poison(made, 0xaa);
  reference::quantize(Host(), view, expected, options);
  Kokkos::fence();

  const std::int64_t bytes = packed_bytes<Format>(cols), first_byte = pitch_extra == 0 ? 0 : 1;
  auto target = made.handle();
  target.row_pitch = bytes + pitch_extra;
  const Kokkos::View<std::uint8_t*, Space> codes("codes",
                                                 static_cast<std::size_t>(rows * target.row_pitch + first_byte));
  for (std::size_t i = 0; i < codes.extent(0); ++i) codes(i) = 0xaa;
  target.data = codes.data() + first_byte;
  const Impl::ViewSource source(Impl::source_of(view, Axis::rows));
  if constexpr (Format::tensor_scale) {
    made.tensor_scale()() = {0.0f, 0.0f};
    Impl::find_amax_by_tiles(label, Exec(), source, &made.tensor_scale()().encode);
    Kokkos::fence();
    made.tensor_scale()() = pair_from_amax<Format>(made.tensor_scale()().encode);
  }
  Impl::quantize_by_tiles<Format>(label, Exec(), source, target, Impl::quantize_data(options));
  Kokkos::fence();
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < target.row_pitch; ++i) {
      ASSERT_EQ(target.row(r)[i], i < bytes ? expected.data()(r, i) : 0xaa) << what << ": row " << r << ", byte " << i;
      if (i < bytes) made.data()(r, i) = target.row(r)[i];
    }
  ASSERT_EQ(raw_bytes(made), raw_bytes(expected)) << what;

  const Kokkos::View<T**, Layout, Space> by_host("by host", rows, cols), by_tiles("by tiles", rows, cols);
  poison_view(by_tiles);
  reference::dequantize(Host(), expected, by_host);
  Impl::dequantize_by_tiles(label, Exec(), target, Impl::strided(by_tiles));
  Kokkos::fence();
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c)
      ASSERT_TRUE(same_bits(static_cast<float>(by_tiles(r, c)), static_cast<float>(by_host(r, c))))
          << what << ": back at " << r << ", " << c;
}

TEST(QuantizeTiles, give_the_bytes_of_the_host_at_the_edges_of_tiles) {
  int n = 0;
  for_each_format([&](auto format) {
    using Format = decltype(format);
    for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                                     {63, 127},
                                     {64, 128},
                                     {65, 129},
                                     {3, 300},
                                     {130, 24},
                                     {129, 257}})
      for (const ScaleLayout layout : all_layouts) {
        ++n;
        QuantizeOptions options;
        options.non_finite = n % 3 == 0 ? NonFinite::saturate : NonFinite::strict;
        if (Format::scale::type == ScaleType::e8m0) options.scale_rule = static_cast<ScaleRule>(n % 4);
        check_quantize<Format, Kokkos::LayoutRight, bf16>(rows, cols, layout, n % 5, options);
        check_quantize<Format, Kokkos::LayoutLeft, float>(rows, cols, layout, n % 3, options);
      }
  });
}

TEST(QuantizeTiles, read_views_of_any_address_and_stride) {
  const std::int64_t rows = 128, cols = 256;
  const auto values = hostile_values(rows, cols, 3, true);
  const BlockScaledMatrix<MXFP4, Space> expected("expected", rows, cols, ScaleLayout::tcgen);
  reference::quantize(Host(), view_of<half, Kokkos::LayoutRight>(values, rows, cols), expected);
  for (const std::int64_t offset : {0, 1, 2, 4})
    for (const std::int64_t pitch : {257, 258, 260, 520})
      for (const std::int64_t stride : {1, 2}) {
        if (stride * (cols - 1) >= pitch) continue;
        for (const bool rows_fastest : {false, true}) {
          const Kokkos::View<half*, Space> memory("memory", static_cast<std::size_t>(offset + pitch * cols * stride));
          const std::int64_t row_stride = rows_fastest ? stride : pitch, col_stride = rows_fastest ? pitch : stride;
          const Impl::StridedMatrix<half> matrix{memory.data() + offset, rows, cols, row_stride, col_stride};
          for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < cols; ++c) matrix(r, c) = half(values[static_cast<std::size_t>(r * cols + c)]);
          const BlockScaledMatrix<MXFP4, Space> made("made", rows, cols, ScaleLayout::tcgen);
          poison(made, 0xaa);
          Impl::quantize_by_tiles<MXFP4>(
              label, Exec(),
              Impl::ViewSource(Impl::StridedMatrix<const half>{matrix.data, rows, cols, row_stride, col_stride}),
              made.handle(), {});
          Kokkos::fence();
          ASSERT_EQ(raw_bytes(made), raw_bytes(expected)) << offset << " " << pitch << " " << stride << rows_fastest;
          const Kokkos::View<half**, Space> back("back", rows, cols);
          reference::dequantize(Host(), expected, back);
          Impl::dequantize_by_tiles(label, Exec(), made.handle(), matrix);
          Kokkos::fence();
          for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < cols; ++c)
              ASSERT_TRUE(same_bits(static_cast<float>(matrix(r, c)), static_cast<float>(back(r, c))));
        }
      }
}

TEST(QuantizeTiles, amax_is_that_of_finite_values_wherever_it_lies) {
  for (const std::int64_t rows : {1, 64, 150})
    for (const std::int64_t cols : {1, 128, 300}) {
      auto values = hostile_values(rows, cols, 5, true);
      for (float& x : values) x = std::abs(x) <= float_max ? x * 0x1p-20f : x;
      for (const std::size_t at : {std::size_t{0}, values.size() / 2, values.size() - 1}) {
        auto with_peak = values;
        with_peak[at] = -0x1.8p125f;
        const auto check = [&](auto view) {
          const Kokkos::View<float, Space> amax("amax");
          Impl::find_amax_by_tiles(label, Exec(), Impl::ViewSource(Impl::source_of(view, Axis::rows)), amax.data());
          Kokkos::fence();
          EXPECT_EQ(amax(), 0x1.8p125f) << rows << " x " << cols << ", at " << at;
        };
        check(view_of<float, Kokkos::LayoutRight>(with_peak, rows, cols));
        check(view_of<float, Kokkos::LayoutLeft>(with_peak, rows, cols));
      }
    }
}

}  // namespace
