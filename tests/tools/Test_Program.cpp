#include <fcntl.h>
#include <gtest/gtest.h>
#include <Microscale_Json.hpp>
#include <Microscale_Safetensors.hpp>
#include <sys/resource.h>
#include <sys/wait.h>
#include <Test_Files.hpp>
#include <Test_Process.hpp>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <functional>
#include <optional>
#include <sstream>
#include <thread>

// The program as a user runs it: files in, files out, text and exit status.
namespace {

using namespace microscale::test;
using microscale::tools::Json;
using microscale::tools::SafetensorsFile;
namespace fs = std::filesystem;

std::string content(const SafetensorsFile& file, const std::string& name) {
  const auto* const tensor = file.find(name);
  if (tensor == nullptr) return "no tensor " + name;
  const auto bytes = file.data(*tensor);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string bf16_bytes(const std::vector<float>& values) {
  std::vector<std::uint16_t> halves;
  for (const float value : values) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    EXPECT_EQ(bits & 0xffff, 0u);
    halves.push_back(static_cast<std::uint16_t>(bits >> 16));
  }
  return bytes_of_values(halves);
}

/// Values that differ from block to block and row to row, in many binades, with zeros of both signs.
std::vector<float> some_values(std::size_t count) {
  std::vector<float> values(count);
  std::uint32_t state = 12345;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    const float mantissa = static_cast<float>(static_cast<std::int32_t>(state) >> 8) * 0x1p-23f;
    values[i] = std::ldexp(mantissa, static_cast<int>(i / 16 % 13) - 6);
    if (i % 37 == 0) values[i] = i % 2 == 0 ? 0.0f : -0.0f;
  }
  return values;
}

class ProgramTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (m_folder / name).string(); }
  std::string file(const std::string& name, const std::vector<TestTensor>& tensors,
                   const std::string& metadata = "") const {
    write_file(m_folder / name, safetensors(tensors, metadata));
    return path(name);
  }
  /// A model with one weight of 3 x 64 to be quantized, and things that are not.
  std::string model(const std::string& name = "in.safetensors") const {
    return file(name,
                {{"layer.weight", "F32", "[3, 64]", bytes_of_values(some_values(192))},
                 {"layer.bias", "F32", "[3]", bytes_of_values(some_values(3))},
                 {"embed_tokens.weight", "BF16", "[2, 32]", std::string(128, 'e')},
                 {"odd.weight", "F16", "[2, 20]", std::string(80, 'o')},
                 {"codes.weight", "I8", "[2, 32]", std::string(64, 'c')},
                 {"flags", "BOOL", "[3]", std::string(3, '\1')},
                 {"new.weight", "F8_E8M0", "[1, 32]", std::string(32, 'n')},
                 {"step", "I64", "[]", "12345678"},
                 {"none.weight", "F32", "[0, 32]", ""}},
                R"({"author":"someone"})");
  }
  std::vector<std::string> names() const {
    auto result = m_folder.names();
    std::sort(result.begin(), result.end());
    return result;
  }

  TemporaryFolder m_folder;
};

TEST_F(ProgramTest, KnownBlocksGetTheirKnownBytes) {
  std::vector<float> values(64, 1.0f);
  const std::vector<float> second{1.0f, 2.0f, 6.0f, 0.5f, -6.0f, -0.0f, -1.5f};
  std::fill(values.begin() + 32, values.end(), 0.0f);
  std::copy(second.begin(), second.end(), values.begin() + 32);
  const std::string in = file("in.safetensors", {{"w.weight", "BF16", "[1, 64]", bf16_bytes(values)}});
  run_well({"quantize", in, path("out.safetensors"), "--format", "mxfp4"});
  const SafetensorsFile out(path("out.safetensors"));
  // 32 ones are 32 times 4 (code 6) at 2^-2; the others lie at scale 1. Element 2i is in the low nibble.
  EXPECT_EQ(content(out, "w.weight_scale"), std::string("\x7d\x7f"));
  std::string packed(16, '\x66');
  packed += std::string("\x42\x17\x8f\x0b", 4) + std::string(12, '\0');
  EXPECT_EQ(content(out, "w.weight_packed"), packed);
}

TEST_F(ProgramTest, WhatIsLeftAloneIsCopiedAndListed) {
  const std::string in = model();
  const std::string said = run_well({"quantize", in, path("out.safetensors"), "--format", "mxfp4"});
  EXPECT_TRUE(contains(said, "quantized 1 of 9 tensors to mxfp4 (style compressed-tensors)")) << said;
  for (const char* line :
       {"  layer.bias: not a weight\n", "  embed_tokens.weight: embedding\n",
        "  odd.weight: K = 20 is not a multiple of the block of 32\n", "  codes.weight: dtype I8\n",
        "  flags: not a weight\n", "  new.weight: dtype F8_E8M0\n", "  step: not a weight\n", "  none.weight: empty\n"})
    EXPECT_TRUE(contains(said, line)) << said;
  const SafetensorsFile before(in), after(path("out.safetensors"));
  for (const auto& tensor : before.tensors()) {
    if (tensor.name == "layer.weight") continue;
    ASSERT_NE(after.find(tensor.name), nullptr) << tensor.name;
    EXPECT_EQ(after.find(tensor.name)->dtype, tensor.dtype);
    EXPECT_EQ(after.find(tensor.name)->shape, tensor.shape);
    EXPECT_EQ(content(after, tensor.name), content(before, tensor.name)) << tensor.name;
  }
  EXPECT_EQ(after.find("layer.weight"), nullptr);
  EXPECT_EQ(after.metadata().at("author"), "someone");
  EXPECT_EQ(after.metadata().at("format"), "pt");
}

TEST_F(ProgramTest, EveryFormatAndStyleReadsBack) {
  const std::string in = model();
  const struct {
    const char* format;
    std::vector<const char*> styles;
    double least_sqnr;
  } cases[] = {{"nvfp4", {"compressed-tensors", "modelopt", "microscale"}, 15},
               {"mxfp4", {"compressed-tensors", "microscale"}, 12},
               {"mxfp8-e4m3", {"compressed-tensors", "modelopt", "microscale"}, 25},
               {"mxfp8-e5m2", {"microscale"}, 18},
               {"mxfp6-e2m3", {"compressed-tensors", "microscale"}, 20},
               {"mxfp6-e3m2", {"microscale"}, 18}};
  for (const auto& [format, styles, least_sqnr] : cases) {
    std::string first;
    for (const char* style : styles) {
      SCOPED_TRACE(std::string(format) + " " + style);
      const std::string quantized = path("q.safetensors"), plain = path("p.safetensors");
      run_well({"quantize", in, quantized, "--format", format, "--style", style, "--force"});
      run_well({"dequantize", quantized, plain, "--dtype", "f32", "--force"});
      const SafetensorsFile result(plain);
      const std::string values = content(result, "layer.weight");
      EXPECT_EQ(values.size(), 192u * 4);
      // A style is a way to write the same numbers.
      if (first.empty()) first = values;
      EXPECT_EQ(values, first);
      EXPECT_EQ(result.tensors().size(), 9u);
      EXPECT_EQ(result.metadata().count("quantization_config"), 0u);

      const Json compared = Json::parse(run_well({"compare", in, quantized, "--json"}));
      const Json against_plain = Json::parse(run_well({"compare", plain, quantized, "--json"}));
      for (const auto& tensor : compared["tensors"])
        if (tensor["name"] == "layer.weight") {
          EXPECT_EQ(tensor["b"], format);
          EXPECT_GT(tensor["sqnr_db"], least_sqnr);
        }
      for (const auto& tensor : against_plain["tensors"])
        if (tensor["name"] == "layer.weight") {
          EXPECT_EQ(tensor["max_abs_error"], 0.0);
        }
    }
  }
}

TEST_F(ProgramTest, ReadsWhatOtherToolsWrote) {
  const fs::path golden = MICROSCALE_TEST_TOOLS_GOLDEN_DIR;
  for (const char* format : {"nvfp4", "mxfp4", "mxfp8-e4m3", "mxfp6-e2m3"})
    for (const char* style : {"compressed-tensors", "modelopt"}) {
      const fs::path in = golden / (std::string(style) + "-" + format + ".safetensors");
      if (!fs::exists(in)) continue;
      SCOPED_TRACE(in.string());
      run_well({"dequantize", in.string(), path("out.safetensors"), "--dtype", "f32", "--force"});
      const SafetensorsFile expected((golden / ("expected-" + std::string(format) + ".safetensors")).string());
      EXPECT_EQ(content(SafetensorsFile(path("out.safetensors")), "layer.weight"), content(expected, "layer.weight"));
    }
}

TEST_F(ProgramTest, ReadsTensorsThatAreNotAligned) {
  const auto values = some_values(64);
  const std::string data = bytes_of_values(values);
  const std::string odd = file("odd.safetensors", {{"a", "U8", "[1]", "x"}, {"w.weight", "F32", "[2, 32]", data}});
  const std::string even = file("even.safetensors", {{"w.weight", "F32", "[2, 32]", data}, {"a", "U8", "[1]", "x"}});
  run_well({"quantize", odd, path("odd-out.safetensors"), "--format", "nvfp4"});
  run_well({"quantize", even, path("even-out.safetensors"), "--format", "nvfp4"});
  EXPECT_EQ(read_file(path("odd-out.safetensors")), read_file(path("even-out.safetensors")));
}

TEST_F(ProgramTest, ExpertsKeepTheirShape) {
  const std::string in =
      file("in.safetensors", {{"experts.weight", "F32", "[2, 3, 32]", bytes_of_values(some_values(192))}});
  run_well({"quantize", in, path("q.safetensors"), "--format", "nvfp4"});
  const SafetensorsFile q(path("q.safetensors"));
  EXPECT_EQ(q.find("experts.weight_packed")->shape, (std::vector<std::uint64_t>{2, 3, 16}));
  EXPECT_EQ(q.find("experts.weight_scale")->shape, (std::vector<std::uint64_t>{2, 3, 2}));
  run_well({"dequantize", path("q.safetensors"), path("p.safetensors")});
  const SafetensorsFile plain(path("p.safetensors"));
  EXPECT_EQ(plain.find("experts.weight")->shape, (std::vector<std::uint64_t>{2, 3, 32}));
  EXPECT_EQ(plain.find("experts.weight")->dtype, microscale::tools::Dtype::BF16);
}

TEST_F(ProgramTest, GptOssBlocksAreRead) {
  // Code 2 is 1.0 and code 4 is 2.0, low nibble first, at 2^1 and 2^-1.
  const std::string in = file("in.safetensors", {{"experts.w_blocks", "U8", "[1, 1, 2, 16]", std::string(32, '\x42')},
                                                 {"experts.w_scales", "U8", "[1, 1, 2]", "\x80\x7e"}});
  run_well({"dequantize", in, path("p.safetensors"), "--dtype", "f32"});
  const SafetensorsFile plain(path("p.safetensors"));
  EXPECT_EQ(plain.find("experts.w")->shape, (std::vector<std::uint64_t>{1, 1, 64}));
  std::vector<float> expected;
  for (int i = 0; i < 64; ++i) expected.push_back((i % 2 == 0 ? 1.0f : 2.0f) * (i < 32 ? 2.0f : 0.5f));
  EXPECT_EQ(content(plain, "experts.w"), bytes_of_values(expected));
}

TEST_F(ProgramTest, MixedFilesOfModelOptAreRead) {
  // E4M3 38 is 1, 41 is 2.25 and E5M2 3e is 1.5.
  const std::string in = file("in.safetensors", {{"a.weight", "F8_E4M3", "[1, 2]", "\x38\x41"},
                                                 {"a.weight_scale", "F32", "[]", bytes_of_values<float>({0.5f})},
                                                 {"b.weight", "F8_E5M2", "[1]", "\x3e"},
                                                 {"b.weight_scale", "F32", "[1]", bytes_of_values<float>({3.0f})},
                                                 {"b.bias", "F32", "[1]", bytes_of_values<float>({1.0f})}});
  run_well({"dequantize", in, path("p.safetensors"), "--dtype", "f32"});
  const SafetensorsFile plain(path("p.safetensors"));
  EXPECT_EQ(plain.tensors().size(), 3u);
  EXPECT_EQ(content(plain, "a.weight"), bytes_of_values<float>({0.5f, 1.125f}));
  EXPECT_EQ(content(plain, "b.weight"), bytes_of_values<float>({4.5f}));
  EXPECT_TRUE(contains(run_well({"inspect", in}), "F8_E4M3 scaled"));
  const Json compared = Json::parse(run_well({"compare", path("p.safetensors"), in, "--json"}));
  EXPECT_EQ(compared["all"]["max_abs_error"], 0.0);
}

TEST_F(ProgramTest, UnknownQuantizationIsNotTakenForValues) {
  const std::vector<TestTensor> known{{"w_blocks", "U8", "[1, 16]", std::string(16, 'x')},
                                      {"w_scales", "U8", "[1]", "x"}};
  for (const TestTensor& other :
       {TestTensor{"q.weight", "F8_E4M3", "[1, 4]", "1234"}, TestTensor{"q.weight_packed", "I32", "[1, 1]", "1234"},
        TestTensor{"q.weight", "I8", "[1, 4]", "1234"}}) {
    std::vector<TestTensor> tensors = known;
    tensors.push_back(other);
    tensors.push_back({"q.weight_scale", "BF16", "[1, 1]", "12"});
    const Result result = run({"dequantize", file("in.safetensors", tensors), path("p.safetensors")});
    EXPECT_EQ(result.status, 1);
    EXPECT_TRUE(contains(result.err, "\"" + other.name + "\"")) << result.err;
    EXPECT_TRUE(contains(result.err, "does not read")) << result.err;
  }
}

TEST_F(ProgramTest, ScaleRulesDiffer) {
  // amax 7.5: FLOOR clips to 6 at scale 1, the others take scale 2.
  std::vector<float> values(32, 0.0f);
  values[0] = 7.5f;
  const std::string in = file("in.safetensors", {{"w.weight", "F32", "[1, 32]", bytes_of_values(values)}});
  const std::pair<const char*, char> rules[] = {
      {"floor", '\x7f'}, {"rceil", '\x80'}, {"ceil", '\x80'}, {"even", '\x80'}};
  for (const auto& [rule, byte] : rules) {
    run_well({"quantize", in, path("q.safetensors"), "--format", "mxfp4", "--scale-rule", rule, "--force"});
    EXPECT_EQ(content(SafetensorsFile(path("q.safetensors")), "w.weight_scale"), std::string(1, byte)) << rule;
  }
  const Json compared = Json::parse(run_well({"compare", in, path("q.safetensors"), "--json"}));
  EXPECT_EQ(compared["tensors"][0]["share_saturated"], 0.0);
  run_well({"quantize", in, path("f.safetensors"), "--format", "mxfp4", "--scale-rule", "floor"});
  const Json clipped = Json::parse(run_well({"compare", in, path("f.safetensors"), "--json"}));
  EXPECT_EQ(clipped["tensors"][0]["share_saturated"], 1.0 / 32);
  EXPECT_EQ(clipped["tensors"][0]["max_abs_error"], 1.5);
}

TEST_F(ProgramTest, IncludeAndExclude) {
  const std::string in = file("in.safetensors", {{"a.weight", "F32", "[1, 32]", bytes_of_values(some_values(32))},
                                                 {"b.weight", "F32", "[1, 32]", bytes_of_values(some_values(32))},
                                                 {"embed.weight", "F32", "[1, 32]", bytes_of_values(some_values(32))}});
  const auto quantized = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"quantize", in, path("q.safetensors"), "--format", "mxfp4", "--force"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    run_well(arguments);
    std::string names;
    const SafetensorsFile result(path("q.safetensors"));
    for (const auto& tensor : result.tensors())
      if (tensor.name.ends_with("_packed")) names += tensor.name.substr(0, 1);
    std::sort(names.begin(), names.end());
    return names;
  };
  EXPECT_EQ(quantized({}), "ab");
  EXPECT_EQ(quantized({"--exclude", "^b"}), "a");
  EXPECT_EQ(quantized({"--include", "embed|a"}), "ae");
  EXPECT_EQ(quantized({"--include", "embed|a", "--exclude", "a"}), "e");
}

TEST_F(ProgramTest, FoldersKeepShardsIndexConfigAndOtherFiles) {
  const fs::path in = m_folder / "model";
  fs::create_directories(in / "1_Pooling");
  fs::create_directories(in / ".cache");
  const std::string row = bytes_of_values(some_values(64));
  write_file(in / "model-00001-of-00002.safetensors", safetensors({{"a.weight", "F32", "[2, 32]", row}}));
  write_file(in / "model-00002-of-00002.safetensors",
             safetensors({{"b.weight", "F32", "[1, 64]", row}, {"lm_head.weight", "F32", "[1, 64]", row}}));
  write_file(
      in / "model.safetensors.index.json",
      R"({"metadata":{"total_size":768,"more":"kept"},"weight_map":{"a.weight":"model-00001-of-00002.safetensors",)"
      R"("b.weight":"model-00002-of-00002.safetensors","lm_head.weight":"model-00002-of-00002.safetensors"}})");
  write_file(in / "config.json", R"({"model_type":"test","tie_word_embeddings":false})");
  write_file(in / "tokenizer.json", "{}");
  write_file(in / "1_Pooling" / "config.json", "pooling");
  write_file(in / ".cache" / "x", "x");
  write_file(in / "pytorch_model.bin", "old");
  fs::create_directory_symlink("1_Pooling", in / "linked");

  const std::string said = run_well({"quantize", in.string(), path("q"), "--format", "nvfp4", "--style", "modelopt"});
  EXPECT_TRUE(contains(said, "not copied: .cache/\nnot copied: linked/\nnot copied: pytorch_model.bin\n")) << said;
  const fs::path q = m_folder / "q";
  EXPECT_EQ(read_file(q / "tokenizer.json"), "{}");
  EXPECT_EQ(read_file(q / "1_Pooling" / "config.json"), "pooling");
  EXPECT_FALSE(fs::exists(q / "pytorch_model.bin"));
  EXPECT_FALSE(fs::exists(q / ".cache"));
  const Json index = Json::parse(read_file(q / "model.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["more"], "kept");
  // 64 values take 32 bytes of codes, 4 of scales, 4 of tensor scale; lm_head stays at 256.
  EXPECT_EQ(index["metadata"]["total_size"], 2 * (32 + 4 + 4) + 256);
  EXPECT_EQ(index["weight_map"].size(), 7u);
  EXPECT_EQ(index["weight_map"]["a.weight_scale_2"], "model-00001-of-00002.safetensors");
  const Json config = Json::parse(read_file(q / "config.json"));
  EXPECT_EQ(config["model_type"], "test");
  EXPECT_EQ(config["quantization_config"]["quant_algo"], "NVFP4");
  EXPECT_EQ(config["quantization_config"]["ignore"], Json{"lm_head"});
  EXPECT_EQ(Json::parse(read_file(q / "hf_quant_config.json"))["quantization"]["exclude_modules"], Json{"lm_head"});

  run_well({"dequantize", q.string(), path("p"), "--dtype", "f16"});
  EXPECT_FALSE(fs::exists(m_folder / "p" / "hf_quant_config.json"));
  EXPECT_EQ(Json::parse(read_file(m_folder / "p" / "config.json")), Json::parse(read_file(in / "config.json")));
  EXPECT_EQ(Json::parse(read_file(m_folder / "p" / "model.safetensors.index.json"))["weight_map"],
            Json::parse(read_file(in / "model.safetensors.index.json"))["weight_map"]);
  EXPECT_TRUE(contains(run_well({"compare", in.string(), path("p")}), "F32 / F16"));
}

TEST_F(ProgramTest, TheConfigIsKeptToTheLetter) {
  fs::create_directory(m_folder / "model");
  fs::rename(model(), m_folder / "model" / "model.safetensors");
  // What Python's json writes and a JSON library would lose: the order, infinities, large integers, digits.
  const std::string first =
      "{\n  \"z\": [0.0, Infinity, -Infinity, NaN],\n  \"torch_dtype\": \"float32\",\n  \"big\": "
      "123456789012345678901234567890,\n  \"a\": {\"quantization_config\": [1.50, \"}\\\", NaN ,{\"]}";
  const std::string last = ",\n  \"text\": \"Infinity\"\n}\n";
  write_file(m_folder / "model" / "config.json", first + last);
  run_well({"quantize", path("model"), path("q"), "--format", "mxfp4"});
  const std::string quantized = read_file(m_folder / "q" / "config.json");
  EXPECT_EQ(quantized.substr(0, (first + last).size() - 3), (first + last).substr(0, (first + last).size() - 3));
  EXPECT_TRUE(contains(quantized, "\n  \"quantization_config\": {\n    \"")) << quantized;
  run_well({"dequantize", path("q"), path("p"), "--dtype", "f16"});
  std::string expected = first + last;
  expected.replace(expected.find("float32"), 7, "float16");
  EXPECT_EQ(read_file(m_folder / "p" / "config.json"), expected);
  for (const char* bad : {"{\"a\": Inf}", "{\"a\": nan}", "{\"a\": -NaN}", "{\"a\": 1NaN}", "{NaN: 1}", "NaN",
                          "{\"a\": Infinity1}", "{\"a\": --Infinity}", "{\"a\": [NaN"}) {
    write_file(m_folder / "model" / "config.json", bad);
    const Result result = run({"quantize", path("model"), path("no"), "--format", "mxfp4"});
    EXPECT_EQ(result.status, 1) << bad;
    EXPECT_TRUE(contains(result.err, "config.json: not ")) << result.err;
  }
}

TEST_F(ProgramTest, ExistingOutputsAreRefusedUnlessForced) {
  const std::string in = model(), out = path("out.safetensors");
  write_file(out, "precious");
  const Result refused = run({"quantize", in, out, "--format", "mxfp4"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(contains(refused.err, "out.safetensors: exists already")) << refused.err;
  EXPECT_EQ(read_file(out), "precious");
  run_well({"quantize", in, out, "--format", "mxfp4", "--force"});
  EXPECT_NE(read_file(out), "precious");

  fs::create_directory(m_folder / "model");
  fs::copy(in, m_folder / "model" / "model.safetensors");
  fs::create_directory(m_folder / "precious");
  write_file(m_folder / "precious" / "letter", "dear");
  const Result folder = run({"quantize", path("model"), path("precious"), "--format", "mxfp4", "--force"});
  EXPECT_EQ(folder.status, 1);
  EXPECT_EQ(read_file(m_folder / "precious" / "letter"), "dear");
  run_well({"quantize", path("model"), path("q"), "--format", "mxfp4"});
  EXPECT_EQ(run({"quantize", path("model"), path("q"), "--format", "mxfp4"}).status, 1);
  EXPECT_FALSE(contains(run_well({"inspect", path("q")}), "mxfp8"));
  run_well({"quantize", path("model"), path("q"), "--format", "mxfp8-e4m3", "--force"});
  EXPECT_TRUE(contains(run_well({"inspect", path("q")}), "mxfp8"));
  fs::create_directory(m_folder / "empty");
  run_well({"quantize", path("model"), path("empty"), "--format", "mxfp4", "--force"});
  EXPECT_EQ(names(),
            (std::vector<std::string>{"empty", "in.safetensors", "model", "out.safetensors", "precious", "q"}));
  EXPECT_EQ(run({"quantize", in, path("no/such/folder.safetensors"), "--format", "mxfp4"}).status, 1);
}

TEST_F(ProgramTest, ForceReplacesNoFolderThatHoldsMoreThanAModel) {
  fs::create_directory(m_folder / "model");
  fs::rename(model(), m_folder / "model" / "model.safetensors");
  write_file(m_folder / "model" / "tokenizer.json", "{}");
  run_well({"quantize", path("model"), path("q"), "--format", "mxfp8-e4m3", "--style", "modelopt"});
  const fs::path q = m_folder / "q";
  const std::pair<const char*, std::function<void(const fs::path&)>> guests[] = {
      {"letter", [](const fs::path& at) { write_file(at, "dear"); }},
      {"old.safetensors", [](const fs::path& at) { write_file(at, "dear"); }},
      {".git", [](const fs::path& at) { fs::create_directory(at); }},
      {"link", [](const fs::path& at) { fs::create_symlink("config.json", at); }},
      {"tokenizer.json", [](const fs::path& at) { fs::create_directory(at); }}};
  for (const auto& [name, make] : guests) {
    fs::remove(q / name);
    make(q / name);
    const Result result = run({"quantize", path("model"), path("q"), "--format", "mxfp4", "--force"});
    EXPECT_EQ(result.status, 1) << name;
    EXPECT_TRUE(contains(result.err, "q: is not replaced: it holds \"" + std::string(name) + "\"")) << result.err;
    EXPECT_TRUE(fs::exists(fs::symlink_status(q / name))) << name;
    EXPECT_TRUE(fs::exists(q / "hf_quant_config.json"));
    fs::remove(q / name);
  }
  // What another run with the same input made is replaced, down to files that this run does not make.
  run_well({"quantize", path("model"), path("q"), "--format", "mxfp4", "--force"});
  EXPECT_FALSE(fs::exists(q / "hf_quant_config.json"));
  EXPECT_EQ(names(), (std::vector<std::string>{"model", "q"}));
}

TEST_F(ProgramTest, InputOutputAndReportMustLieApart) {
  fs::create_directories(m_folder / "m" / "in");
  fs::create_directory(m_folder / "m" / "away");
  const std::string file_in = model();
  const std::string bytes = read_file(file_in);
  write_file(m_folder / "m" / "away" / "blob.json", bytes);
  fs::create_symlink("../away/blob.json", m_folder / "m" / "in" / "model.safetensors");
  write_file(m_folder / "m" / "in" / "config.json", "{}");
  fs::create_directory_symlink("m", m_folder / "link");
  fs::create_symlink("in.safetensors", m_folder / "link.safetensors");
  fs::create_hard_link(file_in, m_folder / "hard.safetensors");
  fs::create_hard_link(file_in, m_folder / "hard.json");
  const std::string folder_in = path("m/in");
  struct Case {
    std::string input, output, report, relation;
  };
  const Case cases[] = {
      {folder_in, path("m/in"), "", "is the input"},
      {folder_in, path("m/in/"), "", "is the input"},
      {folder_in, path("link/in"), "", "is the input"},
      {folder_in, path("m/away/../in"), "", "is the input"},
      {folder_in, path("m/in/out"), "", "lies in the input"},
      {folder_in, path("link/in/out"), "", "lies in the input"},
      {folder_in, path("m"), "", "holds the input"},
      {folder_in, path("link"), "", "holds the input"},
      {path("link/in"), path("m"), "", "holds the input"},
      {folder_in, m_folder.path().string(), "", "holds the input"},
      {folder_in, path("m/away"), "", "holds the input's file"},
      {file_in, file_in, "", "is the input"},
      {file_in, path("link.safetensors"), "", "is the input"},
      {path("link.safetensors"), file_in, "", "is the input"},
      {path("link.safetensors"), path("link.safetensors"), "", "is the input"},
      {file_in, path("hard.safetensors"), "", "is the input"},
      {file_in, path("out.safetensors"), path("hard.json"), "is the input"},
      {folder_in, path("out"), path("m/in/config.json"), "lies in the input"},
      {folder_in, path("out"), path("m/in/new.json"), "lies in the input"},
      {folder_in, path("out"), path("link/in/new.json"), "lies in the input"},
      {folder_in, path("out"), path("m/away/blob.json"), "is the input's file"},
      {folder_in, path("out"), path("out/r.json"), "lies in the output"},
      {folder_in, path("out.json"), path("out.json"), "is the output"},
      {file_in, path("out.json"), path("out.json"), "is the output"},
      {file_in, path("out.json"), path("m/../out.json"), "is the output"},
  };
  const auto everything = [&] {
    std::vector<std::string> paths;
    for (const auto& entry : fs::recursive_directory_iterator(m_folder.path())) paths.push_back(entry.path().string());
    std::sort(paths.begin(), paths.end());
    return paths;
  };
  const auto before = everything();
  for (const auto& [input, output, report, relation] : cases) {
    SCOPED_TRACE(input + " " + output + " " + report);
    std::vector<std::string> arguments{"quantize", input, output, "--format", "mxfp4", "--force"};
    if (!report.empty()) arguments.insert(arguments.end(), {"--report", report});
    const Result result = run(arguments);
    EXPECT_EQ(result.status, 1);
    EXPECT_TRUE(contains(result.err, ": " + relation + " ")) << result.err;
    EXPECT_EQ(everything(), before);
    EXPECT_EQ(read_file(file_in), bytes);
    EXPECT_EQ(read_file(m_folder / "m" / "away" / "blob.json"), bytes);
  }
  run_well({"quantize", folder_in, path("q"), "--format", "mxfp4"});
  const Result result = run({"dequantize", path("q"), path("q/p")});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "lies in the input")) << result.err;
  // Neighbours whose names begin alike are apart.
  run_well({"quantize", folder_in, path("m/in2"), "--format", "mxfp4", "--report", path("m/in.json")});
}

TEST_F(ProgramTest, NamesThatWouldClashAreRefused) {
  const std::string row = bytes_of_values(some_values(32));
  const TestTensor weight{"l.weight", "F32", "[1, 32]", row};
  const struct {
    TestTensor other;
    const char* format;
    const char* style;
  } cases[] = {{{"l.weight_scale", "F32", "[1]", "1234"}, "mxfp4", "microscale"},
               {{"l.weight_packed", "F32", "[1]", "1234"}, "mxfp4", "microscale"},
               {{"l.weight_scale", "F32", "[1]", "1234"}, "mxfp8-e4m3", "microscale"},
               {{"l.weight_global_scale", "F32", "[1]", "1234"}, "nvfp4", "microscale"},
               {{"l.weight_scale_2", "F32", "[1]", "1234"}, "nvfp4", "modelopt"}};
  for (const auto& [other, format, style] : cases)
    for (const bool sharded : {false, true}) {
      SCOPED_TRACE(other.name + " " + format + (sharded ? " sharded" : ""));
      std::string in;
      fs::remove_all(m_folder / "in");
      if (sharded) {
        fs::create_directory(m_folder / "in");
        in = path("in");
        file("in/s1.safetensors", {weight});
        file("in/s2.safetensors", {other});
      } else {
        in = file("in", {weight, other});
      }
      const Result result = run({"quantize", in, path("q"), "--format", format, "--style", style});
      EXPECT_EQ(result.status, 1) << result.out;
      EXPECT_TRUE(contains(result.err, "\"" + other.name + "\"")) << result.err;
      EXPECT_EQ(names(), std::vector<std::string>{"in"});
      // Without the part of that name, there is no clash.
      if (other.name == "l.weight_scale_2") run_well({"quantize", in, path("q"), "--format", "mxfp4"});
      fs::remove_all(m_folder / "q");
    }
}

TEST_F(ProgramTest, NamesThatWouldGrowTooLongAreRefused) {
  const std::string row = bytes_of_values(some_values(32));
  const auto in = [&](std::size_t length) {
    return file("in", {{"l." + std::string(length - 9, 'x') + ".weight", "F32", "[1, 32]", row}});
  };
  // The longest suffixes are _packed and _global_scale.
  const std::pair<const char*, std::size_t> longest[] = {{"mxfp4", 1024 - 7}, {"nvfp4", 1024 - 13}};
  for (const auto& [format, length] : longest) {
    run_well({"quantize", in(length), path("q"), "--format", format});
    run_well({"inspect", path("q")});
    fs::remove(path("q"));
    const Result result = run({"quantize", in(length + 1), path("q"), "--format", format});
    EXPECT_EQ(result.status, 1);
    EXPECT_TRUE(contains(result.err, "more than 1024 bytes")) << result.err;
    EXPECT_EQ(names(), std::vector<std::string>{"in"});
  }
}

TEST_F(ProgramTest, WrongArgumentsAreSaidAndLeaveNothing) {
  const std::string in = model(), out = path("out.safetensors");
  const std::vector<std::pair<std::vector<std::string>, const char*>> cases{
      {{}, "subcommand"},
      {{"quantize", in, out}, "--format"},
      {{"quantize", in, out, "--format", "fp3"}, "fp3"},
      {{"quantize", in, out, "--format", "nvfp4", "--scale-rule", "floor"}, "--scale-rule"},
      {{"quantize", in, out, "--format", "nvfp4", "--scale-rule", "rceil"}, "--scale-rule"},
      {{"quantize", in, out, "--format", "mxfp4", "--style", "modelopt"}, "--style modelopt has no mxfp4"},
      {{"quantize", in, out, "--format", "mxfp8-e5m2", "--style", "compressed-tensors"}, "has no mxfp8-e5m2"},
      {{"quantize", in, out, "--format", "mxfp4", "--style", "gpt-oss"}, "gpt-oss"},
      {{"quantize", in, out, "--format", "mxfp4", "--include", "("}, "no regular expression"},
      {{"quantize", in, out, "--format", "mxfp4", "--report", path("r.txt")}, "must end in .json or .html"},
      {{"dequantize", in, out, "--dtype", "i8"}, "i8"}};
  for (const auto& [arguments, reason] : cases) {
    const Result result = run(arguments);
    EXPECT_EQ(result.status, 2) << reason;
    EXPECT_TRUE(contains(result.err, reason)) << result.err;
  }
  EXPECT_EQ(names(), std::vector<std::string>{"in.safetensors"});
}

TEST_F(ProgramTest, BadFilesAreSaidAndLeaveNothing) {
  const std::string in = model(), out = path("out.safetensors");
  const std::string whole = read_file(in);
  write_file(m_folder / "cut.safetensors", whole.substr(0, whole.size() - 1));
  write_file(m_folder / "junk.safetensors", "this is no safetensors file");
  write_file(m_folder / "empty.safetensors", "");
  for (const char* name : {"cut", "junk", "empty", "missing"}) {
    const std::string bad = path(std::string(name) + ".safetensors");
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"quantize", bad, out, "--format", "mxfp4"},
          {"dequantize", bad, out},
          {"inspect", bad},
          {"compare", in, bad},
          {"compare", bad, in}}) {
      const Result result = run(arguments);
      EXPECT_EQ(result.status, 1) << arguments[0] << " " << name;
      EXPECT_TRUE(contains(result.err, "microscale: " + bad + ": ")) << result.err;
      EXPECT_EQ(result.out, "");
    }
  }
  const Result plain = run({"dequantize", in, out});
  EXPECT_EQ(plain.status, 1);
  EXPECT_TRUE(contains(plain.err, "no block-scaled tensor"));
  run_well({"quantize", in, path("q.safetensors"), "--format", "mxfp4"});
  const Result twice = run({"quantize", path("q.safetensors"), out, "--format", "mxfp4"});
  EXPECT_EQ(twice.status, 1);
  EXPECT_TRUE(contains(twice.err, "quantized already"));
  EXPECT_FALSE(fs::exists(out));
  const std::string other = file("other.safetensors", {{"layer.weight", "F32", "[64, 3]", std::string(768, '\0')}});
  const Result shapes = run({"compare", in, other});
  EXPECT_EQ(shapes.status, 1);
  EXPECT_TRUE(contains(shapes.err, "layer.weight")) << shapes.err;
}

/// A model of `bytes` zeros that take no room on the disk.
std::string big_model(const fs::path& path, std::uint64_t rows, unsigned tensors = 1) {
  std::ostringstream header;
  for (unsigned t = 0; t < tensors; ++t)
    header << (t == 0 ? "{" : ",") << "\"w" << t << ".weight\":{\"dtype\":\"F32\",\"shape\":[" << rows
           << ",1024],\"data_offsets\":[" << t * rows * 4096 << "," << (t + 1) * rows * 4096 << "]}";
  const std::string start = safetensors(header.str() + "}");
  write_file(path, start);
  fs::resize_file(path, start.size() + tensors * rows * 4096);
  return path.string();
}

TEST_F(ProgramTest, FullDisksLeaveNothing) {
  const std::string in = big_model(m_folder / "in.safetensors", 1024);
  const Result result = run({"quantize", in, path("out.safetensors"), "--format", "mxfp4"}, 100'000);
  EXPECT_EQ(result.status, 1);
  // Messages name the output, never the temporary file.
  EXPECT_TRUE(contains(result.err, "microscale: " + path("out.safetensors") + ": ")) << result.err;
  fs::create_directory(m_folder / "model");
  fs::rename(in, m_folder / "model" / "model.safetensors");
  const Result folder = run({"quantize", path("model"), path("q"), "--format", "mxfp4"}, 100'000);
  EXPECT_EQ(folder.status, 1);
  EXPECT_TRUE(contains(folder.err, "microscale: " + path("q/model.safetensors") + ": ")) << folder.err;
  EXPECT_EQ(names(), std::vector<std::string>{"model"});
}

TEST_F(ProgramTest, SignalsLeaveNothing) {
  const std::string in = big_model(m_folder / "in.safetensors", std::uint64_t{1} << 18);
  fs::create_directory(m_folder / "model");
  fs::create_hard_link(in, m_folder / "model" / "model.safetensors");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    for (const bool folder : {false, true}) {
      const auto before = names();
      Program program({"quantize", folder ? path("model") : in, path("out"), "--format", "mxfp8-e4m3"});
      while (names() == before && program.running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ASSERT_EQ(names().size(), before.size() + 1) << "no temporary output was seen";
      EXPECT_FALSE(fs::exists(path("out")));
      ::kill(program.pid(), signal);
      EXPECT_EQ(program.wait().status, 128 + signal);
      EXPECT_EQ(names(), before);
    }
}

TEST_F(ProgramTest, AnInputThatShrinksIsAnError) {
  const std::string in = big_model(m_folder / "in.safetensors", std::uint64_t{1} << 18);
  Program program({"quantize", in, path("out"), "--format", "mxfp8-e4m3"});
  while (names().size() == 1 && program.running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  fs::resize_file(in, 1000);
  const Result result = program.wait();
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "became shorter")) << result.err;
  EXPECT_EQ(names(), std::vector<std::string>{"in.safetensors"});
}

TEST_F(ProgramTest, MemoryStaysNearTheLargestTensor) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer has memory of its own";
#endif
  // 12 tensors of 64 MiB; the program's own buffers are about as large as one.
  const std::string in = big_model(m_folder / "in.safetensors", std::uint64_t{1} << 14, 12);
  for (const char* format : {"nvfp4", "mxfp8-e4m3"}) {
    const Result result = run({"quantize", in, path("out"), "--format", format, "--force"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_LT(result.max_rss_kb, 256 * 1024) << format;
  }
}

TEST_F(ProgramTest, CompareMeasures) {
  // a = 3, 4, 0, 1, NaN and b = 3, 2, 0, 0, 1 (and an integer tensor that differs).
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string a = file("a.safetensors", {{"x", "F32", "[5]", bytes_of_values<float>({3, 4, 0, 1, nan})},
                                               {"i", "I8", "[1]", "1"},
                                               {"same", "F32", "[1]", bytes_of_values<float>({2})},
                                               {"only a", "I8", "[1]", "1"}});
  const std::string b = file("b.safetensors", {{"x", "F64", "[5]", bytes_of_values<double>({3, 2, 0, 0, 1})},
                                               {"i", "I8", "[1]", "2"},
                                               {"same", "F32", "[1]", bytes_of_values<float>({2})},
                                               {"only b", "I8", "[1]", "1"}});
  const Json result = Json::parse(run_well({"compare", a, b, "--json"}));
  const Json& x = result["tensors"][0];
  EXPECT_EQ(x["name"], "x");
  EXPECT_EQ(x["a"], "F32");
  EXPECT_EQ(x["b"], "F64");
  EXPECT_DOUBLE_EQ(x["sqnr_db"], 10 * std::log10(26.0 / 5.0));
  EXPECT_EQ(x["max_abs_error"], 2.0);
  EXPECT_EQ(x["mean_abs_error"], 0.75);
  EXPECT_DOUBLE_EQ(x["cosine"], 17.0 / std::sqrt(26.0 * 13.0));
  EXPECT_EQ(x["share_zeroed"], 0.2);
  EXPECT_TRUE(x["share_saturated"].is_null());
  EXPECT_EQ(x["non_finite"], 1);
  EXPECT_EQ(result["tensors"][1]["equal"], false);
  EXPECT_TRUE(result["tensors"][2]["sqnr_db"].is_null());
  EXPECT_EQ(result["tensors"][2]["cosine"], 1.0);
  EXPECT_EQ(result["only_in_a"], Json{"only a"});
  EXPECT_EQ(result["only_in_b"], Json{"only b"});
  const std::string table = run_well({"compare", a, b});
  EXPECT_TRUE(contains(table, "DIFFERENT")) << table;
  EXPECT_TRUE(contains(table, "only in A: only a\nonly in B: only b\n")) << table;
}

TEST_F(ProgramTest, InspectLists) {
  const std::string in = model();
  run_well({"quantize", in, path("q.safetensors"), "--format", "nvfp4"});
  const std::string table = run_well({"inspect", path("q.safetensors")});
  EXPECT_TRUE(contains(table, "layer.weight")) << table;
  EXPECT_TRUE(contains(table, "9 tensors in 1 file")) << table;
  const Json listed = Json::parse(run_well({"inspect", path("q.safetensors"), "--json"}));
  EXPECT_EQ(listed["tensors"].size(), 9u);
  EXPECT_EQ(listed["quantization_config"]["format"], "nvfp4-pack-quantized");
  for (const auto& tensor : listed["tensors"])
    if (tensor["name"] == "layer.weight") {
      EXPECT_EQ(tensor["type"], "nvfp4");
      EXPECT_EQ(tensor["shape"], (Json{3, 64}));
      EXPECT_EQ(tensor["bytes"], 96 + 12 + 4);
      EXPECT_EQ(tensor["tensor_scale"]["kind"], "encode");
      EXPECT_EQ(tensor["stored_as"], (Json{"layer.weight_packed", "layer.weight_scale", "layer.weight_global_scale"}));
    }
}

TEST_F(ProgramTest, ReportsAreWritten) {
  const std::string in =
      file("in.safetensors", {{"<script>.weight", "F32", "[3, 64]", bytes_of_values(some_values(192))},
                              {"b.bias", "F32", "[1]", bytes_of_values(some_values(1))}});
  run_well({"quantize", in, path("q.safetensors"), "--format", "mxfp4", "--report", path("r.json")});
  const Json report = Json::parse(read_file(path("r.json")));
  EXPECT_EQ(report["quantized"], 1);
  EXPECT_EQ(report["left_alone"], 1);
  EXPECT_EQ(report["scale_rule"], "rceil");
  const Json compared = Json::parse(run_well({"compare", in, path("q.safetensors"), "--json"}));
  Json expected = compared["tensors"][0];
  for (const char* key : {"name", "shape", "a", "b"}) expected.erase(key);
  EXPECT_EQ(report["tensors"][0]["error"], expected);
  EXPECT_EQ(report["tensors"][1]["reason"], "not a weight");

  run_well({"quantize", in, path("h.safetensors"), "--format", "mxfp4", "--report", path("r.html")});
  const std::string html = read_file(path("r.html"));
  EXPECT_TRUE(contains(html, "<svg"));
  EXPECT_TRUE(contains(html, "&lt;script&gt;"));
  for (const char* outside : {"<script", "http:", "https:", "src=", "url(", "<link", "nan"})
    EXPECT_FALSE(contains(html, outside)) << outside;
  // The report is an output too.
  EXPECT_EQ(run({"quantize", in, path("n.safetensors"), "--format", "mxfp4", "--report", path("r.html")}).status, 1);
  EXPECT_FALSE(fs::exists(path("n.safetensors")));
}

TEST_F(ProgramTest, ReportsThatCannotBeWrittenLeaveNoOutput) {
  const std::string in = file("in", {{"w.weight", "F32", "[1, 32]", bytes_of_values(some_values(32))}});
  write_file(path("plain"), "");
  fs::create_directory(path("folder.json"));
  for (const char* report : {"missing/r.json", "plain/r.json", "folder.json"}) {
    const Result result = run({"quantize", in, path("q"), "--format", "mxfp4", "--force", "--report", path(report)});
    EXPECT_EQ(result.status, 1);
    EXPECT_TRUE(contains(result.err, "microscale: " + m_folder.path().string())) << result.err;
    EXPECT_EQ(names(), (std::vector<std::string>{"folder.json", "in", "plain"})) << report;
  }
  // The disk is full when the report is written, after the output: files may have 4000 bytes, and a page has more.
  const Result full = run({"quantize", in, path("q"), "--format", "mxfp4", "--report", path("r.html")}, 4000);
  EXPECT_EQ(full.status, 1);
  EXPECT_TRUE(contains(full.err, path("r.html") + ": ")) << full.err;
  EXPECT_EQ(names(), (std::vector<std::string>{"folder.json", "in", "plain"}));
}

TEST_F(ProgramTest, ModelsWithNothingToQuantizeAreCopied) {
  const std::string in = file("in.safetensors", {{"w.weight", "F32", "[2, 20]", bytes_of_values(some_values(40))}});
  const std::string said =
      run_well({"quantize", in, path("out.safetensors"), "--format", "mxfp4", "--report", path("r.html")});
  EXPECT_TRUE(contains(said, "quantized 0 of 1 tensors")) << said;
  EXPECT_TRUE(contains(said, "w.weight: K = 20 is not a multiple of the block of 32")) << said;
  EXPECT_EQ(content(SafetensorsFile(path("out.safetensors")), "w.weight"), bytes_of_values(some_values(40)));
  EXPECT_EQ(SafetensorsFile(path("out.safetensors")).metadata().count("quantization_config"), 0u);
}

TEST_F(ProgramTest, BlocksWithNaNStayNaN) {
  std::vector<float> values(64, 1.0f);
  values[5] = std::numeric_limits<float>::quiet_NaN();
  const std::string in = file("in.safetensors", {{"w.weight", "F32", "[1, 64]", bytes_of_values(values)}});
  run_well({"quantize", in, path("q.safetensors"), "--format", "mxfp4"});
  EXPECT_EQ(content(SafetensorsFile(path("q.safetensors")), "w.weight_scale"), std::string("\xff\x7d"));
  const Json compared = Json::parse(run_well({"compare", in, path("q.safetensors"), "--json"}));
  EXPECT_EQ(compared["tensors"][0]["non_finite"], 32);
  EXPECT_EQ(compared["tensors"][0]["max_abs_error"], 0.0);
}

TEST_F(ProgramTest, BackendsAndVersion) {
  EXPECT_TRUE(contains(run_well({"backends"}), "reference: available"));
  EXPECT_FALSE(run_well({"--version"}).empty());
  EXPECT_TRUE(contains(run_well({"quantize", "--help"}), "--scale-rule"));
}

}  // namespace
