#include "TestMatmulPairs.hpp"

namespace microscale::Test {

using Formats = testing::Types<MXFP6_E2M3, MXFP6_E3M2>;
INSTANTIATE_TYPED_TEST_SUITE_P(Part3, MatmulPairs, Formats);

}  // namespace microscale::Test
