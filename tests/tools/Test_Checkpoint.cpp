#include <gtest/gtest.h>
#include <Microscale_Checkpoint.hpp>
#include <Microscale_Errors.hpp>
#include <Microscale_Rows.hpp>
#include <Test_Files.hpp>

namespace {

using namespace microscale::tools;
using namespace microscale::test;
using Shape = std::vector<std::uint64_t>;

/// A model folder with these files.
class Folder {
 public:
  Folder& file(const std::string& name, const std::string& bytes) {
    write_file(m_folder / name, bytes);
    return *this;
  }
  /// The one file of a model without an index.
  Folder& tensors(const std::vector<TestTensor>& tensors, const std::string& metadata = "") {
    return file("model.safetensors", safetensors(tensors, metadata));
  }
  Checkpoint open() const { return Checkpoint(m_folder.path()); }
  /// What is said when it is opened; empty if nothing.
  std::string refusal() const {
    try {
      const Checkpoint checkpoint(m_folder.path());
      return "";
    } catch (const FileError& error) {
      return error.what();
    }
  }

 private:
  TemporaryFolder m_folder;
};

void expect_refused(const Folder& folder, const std::string& reason) {
  const std::string said = folder.refusal();
  EXPECT_NE(said.find(reason), std::string::npos) << "said: \"" << said << "\", expected: \"" << reason << "\"";
}

std::string filled(std::size_t size) { return std::string(size, '\x38'); }
const std::string one_float = bytes_of_values(std::vector{4.0f});

TEST(Checkpoint, ReadsCompressedTensors) {
  Folder folder;
  folder.tensors({{"a.weight_packed", "U8", "[3, 16]", filled(48)},
                  {"a.weight_scale", "F8_E4M3", "[3, 2]", filled(6)},
                  {"a.weight_global_scale", "F32", "[1]", one_float},
                  {"b.weight_packed", "U8", "[3, 16]", filled(48)},
                  {"b.weight_scale", "U8", "[3, 1]", filled(3)},
                  {"c.weight", "F8_E4M3", "[2, 2, 64]", filled(256)},
                  {"c.weight_scale", "U8", "[2, 2, 2]", filled(8)},
                  {"d.bias", "F32", "[1]", one_float}});
  const Checkpoint checkpoint = folder.open();
  ASSERT_EQ(checkpoint.tensors().size(), 4u);
  EXPECT_TRUE(checkpoint.is_quantized());
  const auto& a = *checkpoint.find("a.weight");
  EXPECT_EQ(a.format, FileFormat::nvfp4);
  EXPECT_EQ(a.shape, (Shape{3, 32}));
  EXPECT_EQ(a.half, TensorScaleHalf::encode);
  // 4 is the encode scale, so values are multiplied by a quarter.
  EXPECT_EQ(tensor_scale_pair(checkpoint, a).decode, 0.25f);
  EXPECT_EQ(tensor_scale_pair(checkpoint, a).encode, 4.0f);
  const auto& b = *checkpoint.find("b.weight");
  EXPECT_EQ(b.format, FileFormat::mxfp4);
  EXPECT_EQ(b.shape, (Shape{3, 32}));
  EXPECT_EQ(checkpoint.find("c.weight")->format, FileFormat::mxfp8_e4m3);
  EXPECT_EQ(checkpoint.find("c.weight")->shape, (Shape{2, 2, 64}));
  EXPECT_FALSE(checkpoint.find("d.bias")->format.has_value());
  EXPECT_EQ(checkpoint.find("a.weight_scale"), nullptr);
}

TEST(Checkpoint, ReadsModelOpt) {
  Folder folder;
  folder.tensors({{"a.weight", "U8", "[3, 16]", filled(48)},
                  {"a.weight_scale", "F8_E4M3", "[3, 2]", filled(6)},
                  {"a.weight_scale_2", "F32", "[]", one_float},
                  {"a.input_scale", "F32", "[]", one_float},
                  {"b.weight", "F8_E4M3", "[1, 64]", filled(64)},
                  {"b.weight_scale", "U8", "[1, 2]", filled(2)},
                  {"c.weight", "F8_E4M3", "[1, 64]", filled(64)},
                  {"c.weight_scale", "F32", "[]", one_float}});
  const Checkpoint checkpoint = folder.open();
  const auto& a = *checkpoint.find("a.weight");
  EXPECT_EQ(a.format, FileFormat::nvfp4);
  EXPECT_EQ(a.shape, (Shape{3, 32}));
  // 4 is the decode scale here: the style decides, never the value.
  EXPECT_EQ(tensor_scale_pair(checkpoint, a).decode, 4.0f);
  EXPECT_EQ(tensor_scale_pair(checkpoint, a).encode, 0.25f);
  EXPECT_EQ(checkpoint.find("b.weight")->format, FileFormat::mxfp8_e4m3);
  EXPECT_NE(checkpoint.find("a.input_scale"), nullptr);
  // One scale for a whole tensor is no block format, but mixed files have it.
  const auto& c = *checkpoint.find("c.weight");
  EXPECT_FALSE(c.format.has_value());
  EXPECT_TRUE(c.scaled_fp8);
  EXPECT_EQ(tensor_scale_pair(checkpoint, c).decode, 4.0f);
  EXPECT_EQ(checkpoint.find("c.weight_scale"), nullptr);
}

TEST(Checkpoint, ReadsGptOss) {
  for (const std::string dot : {"_", "."}) {
    Folder folder;
    folder.tensors({{"mlp.experts.w" + dot + "blocks", "U8", "[2, 4, 3, 16]", filled(384)},
                    {"mlp.experts.w" + dot + "scales", "U8", "[2, 4, 3]", filled(24)},
                    {"mlp.experts.w_bias", "BF16", "[2]", "1234"}});
    const Checkpoint checkpoint = folder.open();
    ASSERT_EQ(checkpoint.tensors().size(), 2u);
    EXPECT_EQ(checkpoint.find("mlp.experts.w")->format, FileFormat::mxfp4);
    EXPECT_EQ(checkpoint.find("mlp.experts.w")->shape, (Shape{2, 4, 96}));
  }
}

TEST(Checkpoint, OnlyAStatementTellsTheSixBitFormatsApart) {
  const std::vector<TestTensor> tensors{{"w_packed", "U8", "[1, 24]", filled(24)}, {"w_scale", "U8", "[1, 1]", "x"}};
  Folder folder;
  folder.tensors(tensors);
  expect_refused(folder, "E2M3 or E3M2");
  const std::string compressed = R"({"quant_method":"compressed-tensors","format":"mxfp6-pack-quantized"})";
  folder.file("config.json", "{\"quantization_config\":" + compressed + "}");
  EXPECT_EQ(folder.open().find("w")->format, FileFormat::mxfp6_e2m3);
  EXPECT_EQ(folder.open().find("w")->shape, (Shape{1, 32}));
  folder.file("config.json", R"({"quantization_config":{"quant_method":"microscale","format":"mxfp6-e3m2"}})");
  EXPECT_EQ(folder.open().find("w")->format, FileFormat::mxfp6_e3m2);
  folder.file("config.json", "{}")
      .tensors(tensors, R"({"quantization_config":"{\"quant_method\":\"microscale\",\"format\":\"mxfp6-e3m2\"}"})");
  EXPECT_EQ(folder.open().find("w")->format, FileFormat::mxfp6_e3m2);
}

TEST(Checkpoint, MissingTensorScalesAreErrors) {
  const TestTensor scale{"w_scale", "F8_E4M3", "[1, 1]", "8"};
  Folder folder;
  expect_refused(folder.tensors({{"w_packed", "U8", "[1, 8]", filled(8)}, scale}),
                 "needs the tensor scale \"w_global_scale\", which is missing");
  expect_refused(folder.tensors({{"w", "U8", "[1, 8]", filled(8)}, scale}), "\"w_scale_2\", which is missing");
  // The other style's tensor scale is not taken for the missing one.
  expect_refused(
      folder.tensors({{"w_packed", "U8", "[1, 8]", filled(8)}, scale, {"w_scale_2", "F32", "[]", one_float}}),
      "\"w_global_scale\", which is missing");
  expect_refused(folder.tensors({{"w", "U8", "[1, 8]", filled(8)}, scale, {"w_scale_2", "F32", "[2]", filled(8)}}),
                 "must be one F32 value");
  expect_refused(folder.tensors({{"w", "U8", "[1, 8]", filled(8)}, scale, {"w_scale_2", "F16", "[]", "xx"}}),
                 "must be one F32 value");
  expect_refused(folder.tensors({{"w_packed", "U8", "[1, 8]", filled(8)}}), "\"w_scale\" is missing");
}

TEST(Checkpoint, TensorScalesThatMeanNothingAreErrors) {
  for (const float value :
       {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1e-39f}) {
    Folder folder;
    folder.tensors({{"w_packed", "U8", "[1, 8]", filled(8)},
                    {"w_scale", "F8_E4M3", "[1, 1]", "8"},
                    {"w_global_scale", "F32", "[1]", bytes_of_values(std::vector{value})}});
    const Checkpoint checkpoint = folder.open();
    EXPECT_THROW(tensor_scale_pair(checkpoint, *checkpoint.find("w")), FileError) << value;
  }
}

TEST(Checkpoint, ScaleShapesAreChecked) {
  Folder folder;
  // Half of the scales, as if K were the packed width.
  expect_refused(folder.tensors({{"w_packed", "U8", "[2, 32]", filled(64)},
                                 {"w_scale", "F8_E4M3", "[2, 2]", filled(4)},
                                 {"w_global_scale", "F32", "[1]", one_float}}),
                 "do not fit each other as nvfp4");
  expect_refused(folder.tensors({{"w", "F8_E4M3", "[2, 32]", filled(64)}, {"w_scale", "U8", "[1, 2]", "xx"}}), "rows");
  expect_refused(folder.tensors({{"w", "F8_E4M3", "[2, 32]", filled(64)}, {"w_scale", "U8", "[2]", "xx"}}), "rows");
  expect_refused(folder.tensors({{"w_packed", "U8", "[1, 16]", filled(16)}, {"w_scale", "U8", "[1, 9]", filled(9)}}),
                 "do not fit each other as mxfp4");
  expect_refused(folder.tensors({{"w_blocks", "U8", "[2, 3, 15]", filled(90)}, {"w_scales", "U8", "[2, 3]", "123456"}}),
                 "MXFP4 blocks");
  // A row's last block may be short.
  folder.tensors({{"w", "F8_E4M3", "[1, 33]", filled(33)}, {"w_scale", "U8", "[1, 2]", "xx"}});
  EXPECT_EQ(folder.open().find("w")->shape, (Shape{1, 33}));
}

TEST(Checkpoint, PlainAndBlockScaledOfOneNameIsAnError) {
  Folder folder;
  expect_refused(folder.tensors({{"w_packed", "U8", "[1, 16]", filled(16)},
                                 {"w_scale", "U8", "[1, 1]", "x"},
                                 {"w", "F32", "[1]", one_float}}),
                 "both plain and block-scaled");
}

TEST(Checkpoint, ReadsShardsByTheirIndex) {
  Folder folder;
  folder
      .file("s1.safetensors", safetensors({{"a", "F32", "[1]", one_float}, {"w_packed", "U8", "[1, 16]", filled(16)}}))
      .file("s2.safetensors", safetensors({{"w_scale", "U8", "[1, 1]", "x"}}))
      .file("other.safetensors", safetensors({{"a", "F32", "[1]", one_float}}));
  expect_refused(folder, "is also in");
  const auto index = [&](const std::string& map) -> Folder& {
    return folder.file("model.safetensors.index.json", "{\"weight_map\":" + map + "}");
  };
  index(R"({"a":"s1.safetensors","w_packed":"s1.safetensors","w_scale":"s2.safetensors"})");
  const Checkpoint checkpoint = folder.open();
  EXPECT_EQ(checkpoint.shards().size(), 2u);
  // Parts of one tensor may lie in different shards.
  EXPECT_EQ(checkpoint.find("w")->format, FileFormat::mxfp4);
  EXPECT_EQ(static_cast<char>(checkpoint.bytes(*checkpoint.find("w")->scale)[0]), 'x');

  expect_refused(index(R"({"a":"../s1.safetensors"})"), "no plain file name");
  expect_refused(index(R"({"a":"/etc/passwd"})"), "no plain file name");
  expect_refused(index(R"({"a":""})"), "no plain file name");
  expect_refused(index(R"({"a":1})"), "gives no file");
  expect_refused(index(R"({"a":"none.safetensors"})"), "none.safetensors: cannot open");
  expect_refused(index(R"({"a":"s2.safetensors"})"), "does not hold the tensor \"a\"");
  expect_refused(index(R"({"a":"s1.safetensors","a":"s2.safetensors"})"), "appears twice");
  expect_refused(index("[]"), "has no weight_map");
}

TEST(Checkpoint, RefusesHostileConfigs) {
  Folder folder;
  folder.tensors({{"a", "F32", "[1]", one_float}});
  EXPECT_EQ(folder.refusal(), "");
  expect_refused(folder.file("config.json", "[1]"), "not a JSON object");
  expect_refused(folder.file("config.json", "{\"a\":"), "not JSON");
  expect_refused(folder.file("config.json", "{\"a\":" + std::string(100'000, '[')), "levels deep");
  expect_refused(folder.file("config.json", "{\"a\":\"\xff\"}"), "UTF-8");
  expect_refused(folder.file("config.json", "{\"a\":1e999}"), "beyond the range");
  folder.file("config.json", R"({"quantization_config":[1,{"format":2}]})");
  EXPECT_EQ(folder.refusal(), "");
}

TEST(Checkpoint, RefusesFoldersWithoutWeights) {
  Folder folder;
  expect_refused(folder.file("config.json", "{}"), "holds no .safetensors file");
  EXPECT_THROW(Checkpoint("/no/such/place"), FileError);
}

}  // namespace
