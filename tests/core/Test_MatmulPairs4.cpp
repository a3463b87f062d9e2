#include "TestMatmulPairs.hpp"

namespace microscale::Test {

using Formats = testing::Types<MXFP6_E2M3_Bytes, MXFP6_E3M2_Bytes>;
INSTANTIATE_TYPED_TEST_SUITE_P(Part4, MatmulPairs, Formats);

}  // namespace microscale::Test
