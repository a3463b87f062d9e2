#include <gtest/gtest.h>
#include <Intrinsics_Cases.hpp>
#include <Microscale_Avx512_Model.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

// The model of AVX-512 against values worked out by hand, and, where the processor has AVX-512, against the processor.
namespace microscale::avx512_model {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::uint16_t bf16(float x) { return static_cast<std::uint16_t>(bits_of(x) >> 16); }

/// One lane of VDPBF16PS.
float dot(float acc, float a0, float b0, float a1, float b1) {
  __m128bh a{}, b{};
  a.lanes[0] = bf16(a0);
  a.lanes[1] = bf16(a1);
  b.lanes[0] = bf16(b0);
  b.lanes[1] = bf16(b1);
  return _mm_dpbf16_ps(_mm_set_ss(acc), a, b).lanes[0];
}

TEST(Model, DotsOfBf16AreTwoFusedSteps) {
  EXPECT_EQ(dot(1, 2, 3, 4, 5), 27.0f);
  // The upper pair is added first: 2^24 + 1 rounds to 2^24 before the lower pair takes it away.
  EXPECT_EQ(dot(0x1p24f, -0x1p12f, 0x1p12f, 1, 1), 0.0f);
  EXPECT_EQ(dot(0x1p24f, 1, 1, -0x1p12f, 0x1p12f), 1.0f);
  // 129^2 = 2^14 + 257.
  EXPECT_EQ(dot(-0x1p14f, 0, 0, 129, 129), 257.0f);
  EXPECT_TRUE(std::isnan(dot(0, infinity, 0, 1, 1)));
  EXPECT_EQ(dot(0, infinity, 1, 1, 1), infinity);
}

TEST(Model, DotsOfBf16FlushSubnormals) {
  EXPECT_EQ(dot(0x1p-127f, 0, 0, 0, 0), 0.0f);                         // in the accumulator
  EXPECT_EQ(dot(0, float_of(0x00400000), 0x1p100f, 0, 0), 0.0f);       // in an operand
  EXPECT_EQ(dot(0, 0x1p-64f, 0x1p-64f, 0, 0), 0.0f);                   // in the result
  EXPECT_EQ(dot(0, 0x1p-63f, 0x1p-63f, 0, 0), 0x1p-126f);              // the smallest that stays
  EXPECT_EQ(bits_of(dot(0, -0x1p-64f, 0x1p-64f, 0, 0)), 0x80000000u);  // sign kept
  // 2^-126 (1 - 2^-24) has 24 bits and is flushed, though as a subnormal it would round up to 2^-126, where anything
  // nearer ends with 24 bits too.
  EXPECT_EQ(dot(0x1p-126f, -0x1p-75f, 0x1p-75f, 0, 0), 0.0f);
  EXPECT_EQ(dot(0x1p-126f, -0x1p-75f, 0x1p-76f, 0, 0), 0x1p-126f);
  EXPECT_EQ(dot(0x1p-126f, -0x1p-75f, 0x1p-74f, 0, 0), 0.0f);
  EXPECT_EQ(dot(0x1p-126f, -0x1p-100f, 0x1p-100f, 0, 0), 0x1p-126f);
}

TEST(Model, DotsOfBytesAreUnsignedBySigned) {
  const __m128i acc = _mm_setr_epi32(10, 0x7fffffff, -0x7fffffff - 1, 0);
  const __m128i a = _mm_setr_epi32(-1, -1, -1, 0x04030201);  // 255 four times
  const __m128i b = _mm_setr_epi32(static_cast<int>(0x80808080), 0x7f7f7f7f, -1, 0x01ff02fe);
  const Lanes<__m128i, std::int32_t> wrapped(_mm_dpbusd_epi32(acc, a, b)), saturated(_mm_dpbusds_epi32(acc, a, b));
  EXPECT_EQ(wrapped[0], 10 - 4 * 255 * 128);
  EXPECT_EQ(wrapped[1], static_cast<std::int32_t>(0x7fffffffu + 4 * 255 * 127));
  EXPECT_EQ(wrapped[2], static_cast<std::int32_t>(0x80000000u - 4 * 255));
  EXPECT_EQ(wrapped[3], 1 * -2 + 2 * 2 + 3 * -1 + 4 * 1);
  EXPECT_EQ(saturated[0], 10 - 4 * 255 * 128);
  EXPECT_EQ(saturated[1], 0x7fffffff);
  EXPECT_EQ(saturated[2], -0x7fffffff - 1);
  EXPECT_EQ(saturated[3], 3);
}

float scalef(float a, float b) { return _mm_scalef_ps(_mm_set_ss(a), _mm_set_ss(b)).lanes[0]; }

TEST(Model, ScalefRoundsOnceAndTakesTheFloor) {
  EXPECT_EQ(scalef(3, 4), 48.0f);
  EXPECT_EQ(scalef(3, 4.9f), 48.0f);
  EXPECT_EQ(scalef(3, -0.5f), 1.5f);
  EXPECT_EQ(scalef(0x1.000002p0f, -149), 0x1p-149f);
  EXPECT_EQ(scalef(0x1.8p0f, -149), 0x1p-148f);  // a tie, to even
  EXPECT_EQ(scalef(0x1p-149f, 276), 0x1p127f);
  EXPECT_EQ(scalef(0x1p127f, -276), 0x1p-149f);
  EXPECT_EQ(scalef(-1, 1e30f), -infinity);
  EXPECT_EQ(bits_of(scalef(-1, -1e30f)), 0x80000000u);
  EXPECT_EQ(scalef(2, infinity), infinity);
  EXPECT_TRUE(std::isnan(scalef(0, infinity)));
  EXPECT_TRUE(std::isnan(scalef(infinity, -infinity)));
  EXPECT_EQ(scalef(nan, infinity), infinity);  // as documented
  EXPECT_EQ(scalef(nan, -infinity), 0.0f);
  EXPECT_TRUE(std::isnan(scalef(1, nan)));
}

TEST(Model, ConvertsToBf16AndHalf) {
  const auto to_bits = [](float x) { return _mm512_cvtneps_pbh(_mm512_set1_ps(x)).lanes[0]; };
  EXPECT_EQ(to_bits(1.0f), 0x3f80);
  EXPECT_EQ(to_bits(float_of(0x3f808000)), 0x3f80);  // ties to even
  EXPECT_EQ(to_bits(float_of(0x3f818000)), 0x3f82);
  EXPECT_EQ(to_bits(float_of(0x7f7fffff)), 0x7f80);
  EXPECT_EQ(to_bits(float_of(0x7f800001)), 0x7fc0);  // quiet
  EXPECT_EQ(to_bits(float_of(0x807fffff)), 0x8000);  // a subnormal counts as zero
  const auto to_half_bits = [](float x) { return _mm512_cvtps_ph(_mm512_set1_ps(x), 0).bits[0] & 0xffff; };
  EXPECT_EQ(to_half_bits(1.0f), 0x3c00u);
  EXPECT_EQ(to_half_bits(65504.0f), 0x7bffu);
  EXPECT_EQ(to_half_bits(65519.996f), 0x7bffu);
  EXPECT_EQ(to_half_bits(65520.0f), 0x7c00u);
  EXPECT_EQ(to_half_bits(0x1p-24f), 0x0001u);
  EXPECT_EQ(to_half_bits(0x1p-25f), 0x0000u);
  EXPECT_EQ(to_half_bits(-0x1.8p-24f), 0x8002u);
  EXPECT_EQ(to_half_bits(0x1.ff8p-15f), 0x03ffu);
  EXPECT_EQ(to_half_bits(0x1.ffcp-15f), 0x0400u);  // a tie, up into the normal numbers
  EXPECT_EQ(to_half_bits(float_of(0x7f800001)), 0x7e00u);
}

TEST(Model, ConvertsToIntegers) {
  const auto to_int32 = [](float x) { return Lanes<__m512i, std::int32_t>(_mm512_cvtps_epi32(_mm512_set1_ps(x)))[0]; };
  EXPECT_EQ(to_int32(2.5f), 2);
  EXPECT_EQ(to_int32(3.5f), 4);
  EXPECT_EQ(to_int32(-2.5f), -2);
  EXPECT_EQ(to_int32(-0x1p31f), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(to_int32(0x1p31f), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(to_int32(nan), std::numeric_limits<std::int32_t>::min());
}

TEST(Model, MaximumIsTheSecondOperandInDoubt) {
  const auto max = [](float a, float b) { return bits_of(_mm_max_ps(_mm_set_ss(a), _mm_set_ss(b)).lanes[0]); };
  EXPECT_EQ(max(nan, 1), bits_of(1));
  EXPECT_EQ(max(1, nan), bits_of(nan));
  EXPECT_EQ(max(0.0f, -0.0f), 0x80000000u);
  EXPECT_EQ(max(-0.0f, 0.0f), 0u);
}

TEST(Model, MaskedLoadsTouchNothingElse) {
  // Under an address sanitizer this fails if they do.
  const std::vector<float> three = {1, 2, 3};
  const __m512 v = _mm512_maskz_loadu_ps(7, three.data());
  EXPECT_EQ(v.lanes[2], 3.0f);
  EXPECT_EQ(v.lanes[3], 0.0f);
  std::vector<std::uint8_t> bytes(5, 9);
  _mm512_mask_storeu_epi8(bytes.data(), 0x0b, _mm512_set1_epi8(1));
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{1, 1, 9, 1, 9}));
}

TEST(Model, PermutesAcrossTheWholeVector) {
  alignas(64) std::uint8_t table[128], index[64];
  for (int i = 0; i < 128; ++i) table[i] = static_cast<std::uint8_t>(3 * i + 1);
  for (int i = 0; i < 64; ++i) index[i] = static_cast<std::uint8_t>(37 * i + 5);
  const Lanes<__m512i, std::uint8_t> one(_mm512_permutexvar_epi8(_mm512_loadu_si512(index), _mm512_loadu_si512(table)));
  const Lanes<__m512i, std::uint8_t> two(
      _mm512_permutex2var_epi8(_mm512_loadu_si512(table), _mm512_loadu_si512(index), _mm512_loadu_si512(table + 64)));
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(one[i], table[index[i] % 64]);
    EXPECT_EQ(two[i], table[index[i] % 128]);
  }
}

#if defined(MICROSCALE_TEST_AVX512_COMPILER)
bool processor_has_avx512() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni") &&
         __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("bmi2");
}

std::uint32_t hostile_float(std::mt19937_64& random) {
  const std::uint32_t special[] = {0,          1,          0x007fffff, 0x00800000, 0x00800001, 0x3f800000, 0x3f000000,
                                   0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00001, 0x4b000000, 0x4effffff, 0x4f000000,
                                   0x33000000, 0x38800000, 0x387fffff, 0x477fe000, 0x477ff000, 0x00400000, 0x1f800000};
  const auto bits = static_cast<std::uint32_t>(random());
  switch (bits % 5) {
    case 0:
      return special[bits / 5 % std::size(special)] | (bits & 0x80000000u);
    case 1:  // near 2^-63 with few bits, whose products are near the smallest normal
      return (bits & 0x80070000u) | ((62 + bits / 32 % 5) << 23);
    case 2:  // the smallest normals
      return (bits & 0x8000000fu) | ((bits / 32 % 3) << 23);
    case 3:
      return (bits & 0x807fffffu) | ((100 + bits / 8 % 56) << 23);
  }
  return bits;
}

void fill(std::uint8_t* bytes, int kind, std::mt19937_64& random) {
  const std::uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe, 0x40, 0x0f};
  for (int i = 0; i < 64; i += 4) {
    std::uint32_t word = kind == 0 ? static_cast<std::uint32_t>(random()) : hostile_float(random);
    if (kind == 1)
      for (int j = 0; j < 4; ++j) word = word << 8 | edges[random() % std::size(edges)];
    std::memcpy(bytes + i, &word, 4);
  }
}

bool same(Compared compared, const std::uint8_t* a, const std::uint8_t* b) {
  if (compared == Compared::bytes) return std::memcmp(a, b, 64) == 0;
  for (int i = 0; i < 64; i += 4) {
    float x, y;
    std::memcpy(&x, a + i, 4);
    std::memcpy(&y, b + i, 4);
    if (!(std::isnan(x) && std::isnan(y)) && bits_of(x) != bits_of(y)) return false;
  }
  return true;
}

std::string words(const std::uint8_t* bytes) {
  std::string result;
  for (int i = 0; i < 64; i += 4) {
    char text[10];
    std::uint32_t word;
    std::memcpy(&word, bytes + i, 4);
    std::snprintf(text, sizeof text, "%08x ", word);
    result += text;
  }
  return result;
}

TEST(Model, GivesWhatTheProcessorGives) {
  if (!processor_has_avx512()) GTEST_SKIP() << "this processor has no AVX-512";
  const IntrinsicsCases model = backend_avx512_model::intrinsics_cases(), real = backend_avx512::intrinsics_cases();
  ASSERT_EQ(model.count, real.count);
  std::mt19937_64 random(1);
  for (std::size_t n = 0; n < model.count; ++n) {
    int failures = 0;
    for (int round = 0; round < 3000 && failures < 2; ++round) {
      IntrinsicsInput in;
      fill(in.a, round % 3, random);
      fill(in.b, round / 3 % 3, random);
      fill(in.c, round / 9 % 3, random);
      in.mask = random();
      alignas(64) std::uint8_t expected[64] = {}, given[64] = {};
      real.cases[n].run(in, expected);
      model.cases[n].run(in, given);
      if (same(model.cases[n].compared, expected, given)) continue;
      ++failures;
      ADD_FAILURE() << model.cases[n].name << "\n a " << words(in.a) << "\n b " << words(in.b) << "\n c " << words(in.c)
                    << "\n processor " << words(expected) << "\n model     " << words(given);
    }
  }
}
#endif

}  // namespace
}  // namespace microscale::avx512_model
