#include "TestData.hpp"
#include <Microscale_TeamBlock.hpp>

#include <cmath>

namespace {

using namespace microscale;
using namespace microscale::Test;

template <class Exec>
class TeamBlock : public testing::Test {};
TYPED_TEST_SUITE(TeamBlock, Spaces);

/// A user's kernel: one team a row and one thread a block.
template <class Format, class Exec>
struct RowByTeam {
  template <class T>
  using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Space>;
  Matrix<float> values;
  Matrix<std::uint8_t> codes, scales;
  Matrix<float> back;
  BlockScaling scaling;

  KOKKOS_FUNCTION void operator()(const typename Kokkos::TeamPolicy<Exec>::member_type& team) const {
    const int r = team.league_rank(), cols = values.extent_int(1);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, scales.extent_int(1)), [&](int b) {
      const int begin = b * Format::block_size;
      const int count = cols - begin < Format::block_size ? cols - begin : Format::block_size;
      std::uint8_t* out = &codes(r, packed_bytes<Format>(begin));
      const std::uint8_t scale = quantize_block<Format>(
          team, [&](int i) { return values(r, begin + i); }, count, out, scaling);
      Kokkos::single(Kokkos::PerThread(team), [&] { scales(r, b) = scale; });
      dequantize_block<Format>(
          team, out, count, scale, [&](int i, float x) { back(r, begin + i) = x; }, scaling.tensor_scale.decode);
    });
  }
};

// Against the one-thread form.
TYPED_TEST(TeamBlock, gives_the_bytes_and_values_of_the_one_thread_form) {
  using Policy = Kokkos::TeamPolicy<TypeParam>;
  const std::int64_t rows = 23;
  for_each_format([&](auto format) {
    using Format = decltype(format);
    for (const std::int64_t cols : {1, 7, 8, 9, 31, 32, 33, 100})
      for (const NonFinite policy : {NonFinite::strict, NonFinite::saturate}) {
        const auto values = hostile_values(rows, cols, static_cast<std::uint64_t>(cols), true);
        const BlockScaling scaling{ScaleRule::rceil, policy, dynamic_pair<Format>(values)};
        const Plain plain = quantize_plainly<Format>(values, rows, cols, scaling);
        const std::int64_t bytes = packed_bytes<Format>(cols), blocks = block_count<Format>(cols);
        const Kokkos::View<std::uint8_t**, Kokkos::LayoutRight, Space> codes("codes", rows, bytes + 1),
            scales("scales", rows, blocks);
        const Kokkos::View<float**, Kokkos::LayoutRight, Space> back("back", rows, cols);
        Kokkos::deep_copy(codes, std::uint8_t{0xaa});
        const auto view = view_of<float, Kokkos::LayoutRight>(values, rows, cols);
        Kokkos::parallel_for("team", Policy(TypeParam(), static_cast<int>(rows), Kokkos::AUTO),
                             RowByTeam<Format, TypeParam>{view, codes, scales, back, scaling});
        Kokkos::fence();
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t j = 0; j < bytes; ++j)
            ASSERT_EQ(codes(r, j), plain.codes[static_cast<std::size_t>(r * bytes + j)]) << Format::name << " " << cols;
          ASSERT_EQ(codes(r, bytes), 0xaa) << "nothing beyond the last block is written";
          for (std::int64_t b = 0; b < blocks; ++b) {
            ASSERT_EQ(scales(r, b), plain.scales[static_cast<std::size_t>(r * blocks + b)])
                << Format::name << " " << cols;
            float expected[Format::block_size];
            const int count =
                static_cast<int>(std::min<std::int64_t>(Format::block_size, cols - b * Format::block_size));
            dequantize_block<Format>(&codes(r, packed_bytes<Format>(b * Format::block_size)), count, scales(r, b),
                                     expected, scaling.tensor_scale.decode);
            for (int i = 0; i < count; ++i) {
              const float x = back(r, b * Format::block_size + i);
              ASSERT_TRUE(std::isnan(expected[i]) ? std::isnan(x)
                                                  : Bits::from_float(x) == Bits::from_float(expected[i]));
            }
          }
        }
      }
  });
}

}  // namespace
