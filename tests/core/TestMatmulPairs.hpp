#ifndef MICROSCALE_TESTS_CORE_TESTMATMULPAIRS_HPP
#define MICROSCALE_TESTS_CORE_TESTMATMULPAIRS_HPP

#include "TestMatmul.hpp"
#include <Microscale_Matmul.hpp>

// Every format (and every plain type) of A with a format of B. The formats of B are spread over several sources.
namespace microscale::Test {

/// The largest sum of |products| in a block, in units of the smallest product, decides whether its dot product is
/// exact.
template <class A, class B>
constexpr bool has_exact_dots() {
  constexpr double terms = std::min(A::block_size, B::block_size);
  const double largest = static_cast<double>(A::element::max) * B::element::max;
  double smallest = 1.0;
  for (int i = A::element::min_exponent + B::element::min_exponent; i < 0; ++i) smallest /= 2;
  return terms * largest <= 0x1p24 * smallest;
}

/// n such that |computed - exact| <= n u / (1 - n u) * sum |a b|, u = 2^-24: what a term goes through, in the order of
/// the specification. `dot`: the fused multiply-adds of the longest block, the first of which is exact if products are.
inline double error_bound(double roundings) { return roundings * 0x1p-24 / (1 - roundings * 0x1p-24); }

template <class FormatB>
class MatmulPairs : public testing::Test {
 protected:
  static constexpr std::int64_t m = 37, n = 70, k = 132;
  template <class A>
  static void expect_bits_and_bound(const A& a, Scales kind, double dot_roundings, double blocks,
                                    const std::string& what) {
    const auto b = random_operand<FormatB>(n, k, ScaleLayout::tcgen, 2, kind);
    const Kokkos::View<float**, Space> c("c", m, n);
    poison_view(c);
    matmul(Exec(), a, b, c);
    const PlainOperand pa = plain(a), pb = plain(b);
    expect_product(pa, pb, c, what);
    if (kind == Scales::extreme) return;
    // 1 for the scale, blocks - 1 additions (the first is to zero), 1 for each tensor scale.
    const double bound = error_bound(dot_roundings + 1 + blocks - 1 + 2);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double exact = 0, magnitude = 0;
        for (std::int64_t t = 0; t < k; ++t) {
          const double term = pa.scaled(i, t) * pb.scaled(j, t) * pa.decode * pb.decode;
          exact += term;
          magnitude += std::abs(term);
        }
        ASSERT_LE(std::abs(c(i, j) - exact), (bound + k * 0x1p-53) * magnitude)
            << what << " (" << i << ", " << j << ")";
      }
  }

  template <class FormatA>
  static void check_blocks() {
    const int block = std::min(FormatA::block_size, FormatB::block_size);
    for (const Scales kind : {Scales::moderate, Scales::extreme})
      expect_bits_and_bound(random_operand<FormatA>(m, k, ScaleLayout::linear, 1, kind), kind,
                            has_exact_dots<FormatA, FormatB>() ? 0 : block - 1, (k + block - 1) / block,
                            std::string(FormatA::name) + " x " + FormatB::name);
  }

  template <class T>
  static void check_plain(const char* name) {
    for (const Scales kind : {Scales::moderate, Scales::extreme}) {
      const auto a = random_view<T>(m, k, 1);
      if (kind == Scales::extreme)  // products that underflow and overflow, and Inf and NaN
        for (std::int64_t i = 0; i < m; ++i) {
          a(i, i) = T(0x1p-130f);
          a(i, i + 1) = T(-0x1.8p127f);
          a(i, i + 2) = T(0x1.8p127f);
          if (i % 5 == 0) a(i, 0) = T(i % 2 == 0 ? std::numeric_limits<float>::infinity() : std::nanf(""));
        }
      expect_bits_and_bound(a, kind, FormatB::block_size, (k + FormatB::block_size - 1) / FormatB::block_size,
                            std::string(name) + " x " + FormatB::name);
    }
  }
};

TYPED_TEST_SUITE_P(MatmulPairs);

TYPED_TEST_P(MatmulPairs, with_every_format) {
  for_each_format([](auto format) { MatmulPairs<TypeParam>::template check_blocks<decltype(format)>(); });
}

TYPED_TEST_P(MatmulPairs, with_unquantized_activations) {
  MatmulPairs<TypeParam>::template check_plain<float>("float");
  MatmulPairs<TypeParam>::template check_plain<half>("half");
  MatmulPairs<TypeParam>::template check_plain<bf16>("bf16");
}

REGISTER_TYPED_TEST_SUITE_P(MatmulPairs, with_every_format, with_unquantized_activations);

}  // namespace microscale::Test

#endif
