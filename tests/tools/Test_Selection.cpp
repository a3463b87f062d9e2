#include <gtest/gtest.h>
#include <Microscale_Errors.hpp>
#include <Microscale_Selection.hpp>
#include <Microscale_Style.hpp>

namespace {

using namespace microscale::tools;

TensorInfo tensor(const std::string& name, std::vector<std::uint64_t> shape = {64, 64}, Dtype dtype = Dtype::BF16) {
  return {name, dtype, std::move(shape), 0, 0};
}

std::string reason(const TensorInfo& info, const Selection& selection = {}, FileFormat format = FileFormat::mxfp4) {
  return reason_to_leave(info, format, selection).value_or("quantized");
}

TEST(Selection, QuantizesLinearLayers) {
  for (const char* name :
       {"model.layers.0.self_attn.q_proj.weight", "model.layers.0.mlp.gate_proj.weight",
        "model.layers.0.mlp.experts.3.w1.weight", "encoder.layer.0.attention.output.dense.weight",
        "pooler.dense.weight", "weight", "h.0.mlp.c_fc.weight", "model.layers.1.mlp.gate_up_proj.weight"})
    EXPECT_EQ(reason(tensor(name)), "quantized") << name;
  EXPECT_EQ(reason(tensor("experts.w.weight", {8, 64, 64})), "quantized");
}

TEST(Selection, LeavesTheUsualPartsAlone) {
  const std::pair<const char*, const char*> cases[] = {{"model.embed_tokens.weight", "embedding"},
                                                       {"embeddings.word_embeddings.weight", "embedding"},
                                                       {"transformer.wte.weight", "embedding"},
                                                       {"model.norm.weight", "norm"},
                                                       {"model.layers.0.input_layernorm.weight", "norm"},
                                                       {"embeddings.LayerNorm.weight", "norm"},
                                                       {"h.0.ln_1.weight", "norm"},
                                                       {"model.layers.0.mlp.gate.weight", "router"},
                                                       {"model.layers.0.mlp.router.weight", "router"},
                                                       {"mlp.router.proj.weight", "router"},
                                                       {"mlp.shared_expert_gate.weight", "router"},
                                                       {"lm_head.weight", "lm_head"},
                                                       {"output.weight", "lm_head"},
                                                       {"a.bias", "not a weight"},
                                                       {"a.weight_scale", "not a weight"}};
  for (const auto& [name, expected] : cases) EXPECT_EQ(reason(tensor(name)), expected) << name;
}

TEST(Selection, LeavesWhatHasNoBlocks) {
  EXPECT_EQ(reason(tensor("a.weight", {64})), "rank 1");
  EXPECT_EQ(reason(tensor("a.weight", {})), "rank 0");
  EXPECT_EQ(reason(tensor("a.weight", {2, 2, 2, 64})), "rank 4");
  EXPECT_EQ(reason(tensor("a.weight", {0, 64})), "empty");
  EXPECT_EQ(reason(tensor("a.weight", {64, 0})), "empty");
  EXPECT_EQ(reason(tensor("a.weight", {64, 48})), "K = 48 is not a multiple of the block of 32");
  EXPECT_EQ(reason(tensor("a.weight", {64, 48}), {}, FileFormat::nvfp4), "quantized");
  EXPECT_EQ(reason(tensor("a.weight", {64, 8}), {}, FileFormat::nvfp4), "K = 8 is not a multiple of the block of 16");
  for (const Dtype dtype : {Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16})
    EXPECT_EQ(reason(tensor("a.weight", {64, 64}, dtype)), "quantized");
  EXPECT_EQ(reason(tensor("a.weight", {64, 64}, Dtype::I8)), "dtype I8");
  EXPECT_EQ(reason(tensor("a.weight", {64, 64}, Dtype::F8_E4M3)), "dtype F8_E4M3");
}

TEST(Selection, IncludeReplacesTheNamesAndExcludeHasTheLastWord) {
  Selection selection;
  selection.include = regular_expression("--include", "embed|q_proj");
  EXPECT_EQ(reason(tensor("model.embed_tokens.weight"), selection), "quantized");
  EXPECT_EQ(reason(tensor("a.q_proj.weight"), selection), "quantized");
  EXPECT_EQ(reason(tensor("a.k_proj.weight"), selection), "not included");
  EXPECT_EQ(reason(tensor("experts.q_proj", {8, 64, 64}), selection), "quantized");
  EXPECT_EQ(reason(tensor("a.q_proj.bias", {64}), selection), "rank 1");
  selection.exclude = regular_expression("--exclude", "^a\\.");
  EXPECT_EQ(reason(tensor("a.q_proj.weight"), selection), "excluded");
  EXPECT_EQ(reason(tensor("b.q_proj.weight"), selection), "quantized");
  EXPECT_THROW(regular_expression("--include", "("), UsageError);
  EXPECT_THROW(regular_expression("--include", "(a)\\1"), UsageError);
  EXPECT_THROW(regular_expression("--include", std::string(1001, 'a')), UsageError);
  EXPECT_NO_THROW(regular_expression("--include", std::string(1000, 'a')));
  EXPECT_EQ(reason(tensor(std::string(1024, 'a')), {.include = regular_expression("", "(a|b)*c"), .exclude = {}}),
            "not included");
  // Each of these takes a backtracking matcher longer than anyone waits.
  for (const char* hazard : {"(a+)+b", "(a|a)*b", "(a*)*(a*)*b", "(a|aa)+b"})
    EXPECT_EQ(reason(tensor(std::string(1024, 'a')), {.include = regular_expression("", hazard), .exclude = {}}),
              "not included");
}

TEST(Style, DefaultsAndWhatEachHolds) {
  using enum FileFormat;
  EXPECT_EQ(default_style(nvfp4), Style::compressed_tensors);
  EXPECT_EQ(default_style(mxfp4), Style::compressed_tensors);
  EXPECT_EQ(default_style(mxfp8_e4m3), Style::compressed_tensors);
  EXPECT_EQ(default_style(mxfp6_e2m3), Style::compressed_tensors);
  EXPECT_EQ(default_style(mxfp8_e5m2), Style::microscale);
  EXPECT_EQ(default_style(mxfp6_e3m2), Style::microscale);
  EXPECT_TRUE(holds(Style::modelopt, nvfp4));
  EXPECT_TRUE(holds(Style::modelopt, mxfp8_e4m3));
  EXPECT_FALSE(holds(Style::modelopt, mxfp4));
  EXPECT_FALSE(holds(Style::compressed_tensors, mxfp8_e5m2));
  for (std::size_t i = 0; i < file_format_count; ++i) EXPECT_TRUE(holds(Style::microscale, static_cast<FileFormat>(i)));
}

/// "name dtype shape" of the parts.
std::string stored(Style style, FileFormat format) {
  const StoredTensor parts = stored_tensor(style, format, "m.weight", {6, 64});
  std::string text;
  for (const auto& part : {parts.data, parts.scale, parts.tensor_scale})
    if (!part.name.empty())
      text += part.name + " " + std::string(to_string(part.dtype)) + " " + shape_text(part.shape) + "; ";
  return text;
}

TEST(Style, NamesAndTypesAreThoseOfTheStyle) {
  using enum FileFormat;
  const auto ct = Style::compressed_tensors;
  EXPECT_EQ(stored(ct, nvfp4),
            "m.weight_packed U8 [6, 32]; m.weight_scale F8_E4M3 [6, 4]; m.weight_global_scale F32 [1]; ");
  EXPECT_EQ(stored(ct, mxfp4), "m.weight_packed U8 [6, 32]; m.weight_scale U8 [6, 2]; ");
  EXPECT_EQ(stored(ct, mxfp8_e4m3), "m.weight F8_E4M3 [6, 64]; m.weight_scale U8 [6, 2]; ");
  EXPECT_EQ(stored(ct, mxfp6_e2m3), "m.weight_packed U8 [6, 48]; m.weight_scale U8 [6, 2]; ");
  EXPECT_EQ(stored(Style::modelopt, nvfp4),
            "m.weight U8 [6, 32]; m.weight_scale F8_E4M3 [6, 4]; m.weight_scale_2 F32 []; ");
  EXPECT_EQ(stored(Style::modelopt, mxfp8_e4m3), "m.weight F8_E4M3 [6, 64]; m.weight_scale U8 [6, 2]; ");
  EXPECT_EQ(stored(Style::microscale, mxfp8_e5m2), "m.weight F8_E5M2 [6, 64]; m.weight_scale U8 [6, 2]; ");
  EXPECT_EQ(stored(Style::microscale, mxfp6_e3m2), "m.weight_packed U8 [6, 48]; m.weight_scale U8 [6, 2]; ");
  EXPECT_EQ(stored_tensor(ct, nvfp4, "w", {2, 3, 32}).scale.shape, (std::vector<std::uint64_t>{2, 3, 2}));
}

TEST(Style, ConfigsAreReadAsTheyAreWritten) {
  for (std::size_t i = 0; i < file_format_count; ++i)
    for (const Style style : {Style::compressed_tensors, Style::microscale}) {
      const auto format = static_cast<FileFormat>(i);
      if (!holds(style, format)) continue;
      EXPECT_EQ(stated_format(quantization_config(style, format, "", {}, {})), format);
    }
}

TEST(Style, CompressedTensorsConfig) {
  const Json config = quantization_config(Style::compressed_tensors, FileFormat::nvfp4, "", {"lm_head"}, {});
  const Json expected = Json::parse(R"({
    "quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "quantization_status": "compressed",
    "ignore": ["lm_head"],
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": {
      "num_bits": 4, "type": "float", "symmetric": true, "group_size": 16, "strategy": "tensor_group",
      "dynamic": false, "scale_dtype": "torch.float8_e4m3fn"}}}})");
  EXPECT_EQ(config, expected);
  const Json mx = quantization_config(Style::compressed_tensors, FileFormat::mxfp8_e4m3, "", {}, {"embed"});
  const Json& weights = mx["config_groups"]["group_0"]["weights"];
  EXPECT_EQ(mx["format"], "mxfp8-quantized");
  EXPECT_EQ(weights["num_bits"], 8);
  EXPECT_EQ(weights["group_size"], 32);
  EXPECT_EQ(weights["strategy"], "group");
  EXPECT_EQ(weights["scale_dtype"], "torch.uint8");
  EXPECT_EQ(mx["config_groups"]["group_0"]["targets"], (Json{"Linear", "embed"}));
}

TEST(Style, ModelOptConfig) {
  const Json config = modelopt_config(FileFormat::nvfp4, {"lm_head"});
  EXPECT_EQ(config["producer"]["name"], "modelopt");
  EXPECT_EQ(config["quantization"]["quant_algo"], "NVFP4");
  EXPECT_EQ(config["quantization"]["group_size"], 16);
  EXPECT_EQ(config["quantization"]["exclude_modules"], Json{"lm_head"});
  EXPECT_EQ(modelopt_config(FileFormat::mxfp8_e4m3, {})["quantization"]["quant_algo"], "MXFP8");
  const Json flat = quantization_config(Style::modelopt, FileFormat::nvfp4, "", {"lm_head"}, {});
  EXPECT_EQ(flat["quant_method"], "modelopt");
  EXPECT_EQ(flat["quant_algo"], "NVFP4");
  EXPECT_EQ(flat["ignore"], Json{"lm_head"});
}

}  // namespace
