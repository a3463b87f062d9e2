#include <gtest/gtest.h>
#include <Microscale_Cdna4_Rules.hpp>
#include <Microscale_Sm100_DenseRules.hpp>
#include <Microscale_Sm100_GroupedRules.hpp>

#include <cstdint>
#include <utility>

// Whatever the problem, what a rule returns can run. The constraints are computed here once more, by other means.
namespace microscale::Impl {
namespace {

/// xorshift64*, the same numbers everywhere.
class Random {
 public:
  std::uint64_t next() {
    m_state ^= m_state >> 12;
    m_state ^= m_state << 25;
    m_state ^= m_state >> 27;
    return m_state * 0x2545F4914F6CDD1Du;
  }
  /// 0 to most, of any magnitude alike, at times a neighbour of a multiple of 64.
  std::int64_t extent(int most_bits) {
    const std::uint64_t bits = next() % static_cast<std::uint64_t>(most_bits + 1);
    std::uint64_t x = bits == 0 ? 0 : (next() >> (64 - bits));
    if (next() % 2 == 0) x = x / 64 * 64 + next() % 3 - (x >= 64 ? 1 : 0);
    return static_cast<std::int64_t>(x);
  }
  template <class T, std::size_t n>
  T one_of(const T (&list)[n]) {
    return list[next() % n];
  }

 private:
  std::uint64_t m_state = 88172645463325252u;
};

constexpr Sm100Kind kinds[] = {Sm100Kind::mxf4nvf4, Sm100Kind::mxf4, Sm100Kind::mxf8f6f4};
constexpr std::int64_t weights[] = {256,  512,  2048,  3072,  4096,  5376,  6144,
                                    7168, 8192, 16384, 18432, 21504, 36864, 43008};

/// Of the formats: scales of a row in 128 bytes of K.
int scales_of_a_row(Sm100Kind kind) { return kind == Sm100Kind::mxf4nvf4 ? 16 : (kind == Sm100Kind::mxf4 ? 8 : 4); }

/// The hardware's limits, said once more.
bool fits_blackwell(const Sm100Config& c, Sm100Kind kind) {
  const int sf_rows_n = c.mma_n <= 128 ? 128 : 256;
  const int sf = scales_of_a_row(kind);
  const int shared = c.stages * (128 * 128 + c.mma_n / c.cta_group * 128 + 128 * sf + sf_rows_n * sf);
  const int columns = c.accumulator_stages * c.mma_n + c.stages * (128 + sf_rows_n) / 128 * sf;
  const bool shape = c.cta_group == 1 ? c.mma_m == 128 && c.mma_n % 8 == 0 : c.mma_m == 256 && c.mma_n % 16 == 0;
  return shape && c.mma_n >= 8 && c.mma_n <= 256 && c.stages >= 1 && shared <= 232448 && columns <= 512 &&
         c.stages % c.k_group == 0;
}

TEST(RulesHold, Sm100) {
  Random random;
  for (int i = 0; i < 1000000; ++i) {
    const Sm100Kind kind = random.one_of(kinds);
    const bool usual = i % 4 == 0;
    const std::int64_t n = usual ? random.one_of(weights) : random.extent(i % 64 == 1 ? 62 : 18);
    const std::int64_t k = usual ? random.one_of(weights) : random.extent(18);
    const std::int64_t m = random.extent(i % 64 == 2 ? 62 : 16);
    const Sm100Config dense = sm100_dense_config(kind, m, n, k);
    const char* words = violated_rule(dense, {kind, k, false});
    ASSERT_EQ(words, nullptr) << words << ": " << to_string(dense) << "; m " << m << ", n " << n << ", k " << k;
    ASSERT_TRUE(fits_blackwell(dense, kind)) << to_string(dense);
    ASSERT_EQ((k / sm100_tile_k(kind) + (k % sm100_tile_k(kind) != 0)) % dense.k_group, 0);

    const Sm100GroupedChoice choice = sm100_grouped_choice(kind, n, k, m, random.extent(9));
    const Sm100Config grouped = sm100_grouped_config(kind, choice);
    words = violated_rule(grouped, {kind, k, true});
    ASSERT_EQ(words, nullptr) << words << ": " << to_string(grouped) << "; n " << n << ", k " << k;
    ASSERT_TRUE(fits_blackwell(grouped, kind)) << to_string(grouped);
    // What explain() shows, given back as an override, is the same configuration.
    for (const auto& [config, is_grouped] : {std::pair(dense, false), std::pair(grouped, true)}) {
      Sm100Config back = overridden(config, to_config(config, kind), {kind, k, is_grouped});
      if (config.block_swizzle <= 1) back.block_swizzle = config.block_swizzle;  // both are none
      ASSERT_EQ(back, config) << to_string(config);
    }
  }
}

TEST(RulesHold, Sm100Overrides) {
  // An override is refused, or what it means fits.
  Random random;
  constexpr std::int32_t any[] = {-2147483647 - 1, -1, 0, 0, 1, 2, 3, 4, 8, 16, 24, 64, 96, 128, 192, 256, 320,
                                  2147483647};
  int runs = 0;
  for (int i = 0; i < 200000; ++i) {
    const Sm100Problem problem{random.one_of(kinds), random.one_of(weights), i % 2 == 0};
    const Sm100Config own =
        problem.grouped ? sm100_grouped_config(
                              problem.kind, sm100_grouped_choice(problem.kind, 4096, problem.k, random.extent(12), 8))
                        : sm100_dense_config(problem.kind, random.extent(12), 4096, problem.k);
    Config config;
    config.swap_ab = random.next() % 2 == 0;
    std::int32_t* const members[] = {
        &config.tile_m,           &config.tile_n,       &config.cta_group, &config.stages,
        &config.cluster,          &config.cluster_n,    &config.k_group,   &config.accumulator_stages,
        &config.scheduler_stages, &config.block_swizzle};
    for (int j = 0; j < 3; ++j) *random.one_of(members) = random.one_of(any);
    const Sm100Config meant = overridden(own, config, problem);
    if (violated_rule(meant, problem)) continue;
    ++runs;
    ASSERT_TRUE(fits_blackwell(meant, problem.kind)) << to_string(meant);
    if (config.stages > 0) {
      ASSERT_EQ(meant.stages, config.stages);
    }
    if (config.tile_n != 0) {
      ASSERT_EQ(meant.mma_n, config.tile_n);
    }
    if (config.cta_group != 0) {
      ASSERT_EQ(meant.cta_group, config.cta_group);
    }
    if (config.tile_n != 0 || config.cta_group != 0) {
      ASSERT_EQ(meant.swap_ab, config.swap_ab);
    }
  }
  EXPECT_GT(runs, 5000);
}

TEST(RulesHold, Cdna4) {
  Random random;
  constexpr int bits[] = {4, 6, 8};
  for (int i = 0; i < 1000000; ++i) {
    Cdna4Problem p;
    p.bits_a = random.one_of(bits);
    p.bits_b = random.one_of(bits);
    p.n = i % 4 == 0 ? random.one_of(weights) : random.extent(18);
    p.k = i % 4 == 0 ? random.one_of(weights) : random.extent(11) * 128;
    p.m = random.extent(i % 64 == 2 ? 62 : 16);
    for (const bool grouped : {false, true}) {
      p.grouped = grouped;
      const Cdna4Config c = grouped ? cdna4_grouped_config(p, p.m, random.extent(10)) : cdna4_dense_config(p);
      const char* words = violated_rule(c, p);
      ASSERT_EQ(words, nullptr) << words << ": " << to_string(c) << "; m " << p.m << ", n " << p.n << ", k " << p.k;
      ASSERT_EQ(p.k % c.bk, 0);
      ASSERT_EQ(c.bm % c.wm + c.bn % c.wn + c.wm % 16 + c.wn % 16, 0);
      ASSERT_LE((c.bm * p.bits_a + (c.direct_b ? 0 : c.bn * p.bits_b)) * c.bk / 8, 163840);
      ASSERT_EQ(p.k / c.bk % c.split_k, 0);
      if (c.split_k > 1) {
        ASSERT_LE(c.split_k * p.m * p.n * 4, 134217728);
      }
      ASSERT_EQ(overridden(c, to_config(c)), c) << to_string(c);
    }
  }
}

}  // namespace
}  // namespace microscale::Impl
