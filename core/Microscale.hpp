#ifndef MICROSCALE_HPP
#define MICROSCALE_HPP

// Block-scaled FP4, FP6 and FP8 for Kokkos applications. README.md has an example, docs/ the rules.

#include <Microscale_BatchedBlockScaledMatrix.hpp>
#include <Microscale_BatchedMatmul.hpp>
#include <Microscale_Block.hpp>
#include <Microscale_BlockScaledMatrix.hpp>
#include <Microscale_Config.hpp>
#include <Microscale_Dequantize.hpp>
#include <Microscale_Epilogue.hpp>
#include <Microscale_ExpertRouting.hpp>
#include <Microscale_GroupedMatmul.hpp>
#include <Microscale_GroupedQuantize.hpp>
#include <Microscale_Groups.hpp>
#include <Microscale_Half.hpp>
#include <Microscale_Interleave.hpp>
#include <Microscale_Matmul.hpp>
#include <Microscale_MatmulOptions.hpp>
#include <Microscale_MatrixCopy.hpp>
#include <Microscale_Prepare.hpp>
#include <Microscale_Quantize.hpp>
#include <Microscale_Requantize.hpp>
#include <Microscale_ScaleLayout.hpp>
#include <Microscale_ScaleMatrix.hpp>
#include <Microscale_TeamBlock.hpp>
#include <Microscale_TensorScale.hpp>
#include <Microscale_Validate.hpp>
#include <Microscale_WeightLayout.hpp>

#endif
