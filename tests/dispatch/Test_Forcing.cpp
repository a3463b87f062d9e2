#include <Microscale_Forcing.hpp>
#include <Test_Dispatch.hpp>

namespace microscale::Test {
namespace {

using Impl::Forcing;
using Impl::parse_forcing;

std::string refusal(const char* text) {
  return message_of<std::invalid_argument>([&] { parse_forcing(text, "SOURCE"); });
}

TEST(Forcing, OneNameIsForEveryOperation) {
  const Forcing f = parse_forcing("avx512", "SOURCE");
  EXPECT_EQ(f[Operation::matmul], "avx512");
  EXPECT_EQ(f[Operation::quantize], "avx512");
  EXPECT_FALSE(f.empty());
}

TEST(Forcing, NamesByOperation) {
  const Forcing f = parse_forcing("matmul=sm90,grouped_quantize=reference", "SOURCE");
  EXPECT_EQ(f[Operation::matmul], "sm90");
  EXPECT_EQ(f[Operation::grouped_quantize], "reference");
  EXPECT_EQ(f[Operation::quantize], "");
}

TEST(Forcing, OperationsBeatTheNameForAll) {
  const Forcing f = parse_forcing("matmul=sm90,reference", "SOURCE");
  EXPECT_EQ(f[Operation::matmul], "sm90");
  EXPECT_EQ(f[Operation::dequantize], "reference");
}

TEST(Forcing, NothingForcesNothing) { EXPECT_TRUE(parse_forcing("", "SOURCE").empty()); }

TEST(Forcing, MalformedTextIsRefusedWithWhatIsWrong) {
  for (const char* text : {",", "avx512,", "=avx512", "matmul=", "matmul==x", "matmul=a=b", " avx512", "AVX512", "a b"})
    EXPECT_NE(refusal(text).find("SOURCE \"" + std::string(text) + "\""), std::string::npos) << text << refusal(text);
  EXPECT_NE(refusal("one,two").find("names two backends for every operation"), std::string::npos);
  EXPECT_NE(refusal("matmul=a,matmul=b").find("names two backends for matmul"), std::string::npos);
}

TEST(Forcing, UnknownOperationsAreNamedWithTheValidOnes) {
  const std::string text = refusal("multiply=avx512");
  EXPECT_NE(text.find("unknown operation \"multiply\""), std::string::npos) << text;
  EXPECT_NE(text.find("quantize, dequantize, interleave_scales, requantize, matmul, batched_matmul, grouped_quantize, "
                      "grouped_matmul"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace microscale::Test
