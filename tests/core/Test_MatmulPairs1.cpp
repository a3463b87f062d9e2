#include "TestMatmulPairs.hpp"

namespace microscale::Test {

using Formats = testing::Types<NVFP4, MXFP4>;
INSTANTIATE_TYPED_TEST_SUITE_P(Part1, MatmulPairs, Formats);

}  // namespace microscale::Test
