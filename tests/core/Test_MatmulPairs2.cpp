#include "TestMatmulPairs.hpp"

namespace microscale::Test {

using Formats = testing::Types<MXFP8_E4M3, MXFP8_E5M2>;
INSTANTIATE_TYPED_TEST_SUITE_P(Part2, MatmulPairs, Formats);

}  // namespace microscale::Test
