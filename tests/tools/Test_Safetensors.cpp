#include <Fuzz_Safetensors.hpp>
#include <gtest/gtest.h>
#include <Microscale_Errors.hpp>
#include <Microscale_Safetensors.hpp>
#include <Test_Files.hpp>

#include <algorithm>
#include <random>

namespace {

using namespace microscale::tools;
using namespace microscale::test;

/// What the reader says to these bytes; empty if it takes them.
std::string refusal(const std::string& bytes) {
  try {
    parse_safetensors(as_bytes(bytes), "some.file");
    return "";
  } catch (const FileError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 11), "some.file: ");
    return std::string(error.what()).substr(11);
  }
}

void expect_refused(const std::string& bytes, const std::string& reason) {
  const std::string said = refusal(bytes);
  EXPECT_NE(said.find(reason), std::string::npos) << "said: \"" << said << "\", expected: \"" << reason << "\"";
}

std::string one_tensor(const std::string& fields, const std::string& data = "") {
  return safetensors("{\"x\":{" + fields + "}}", data);
}

TEST(Safetensors, ReadsTensorsInTheOrderOfTheirOffsets) {
  const std::string file =
      safetensors(R"({"__metadata__":{"format":"pt","k":"ü"},"b":{"dtype":"F32","shape":[2],"data_offsets":[3,11]},)"
                  R"("a":{"shape":[3,1],"data_offsets":[0,3],"dtype":"U8"}}   )",
                  "xyz12345678");
  const auto header = parse_safetensors(as_bytes(file), "f");
  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[0].dtype, Dtype::U8);
  EXPECT_EQ(header.tensors[0].shape, (std::vector<std::uint64_t>{3, 1}));
  EXPECT_EQ(header.tensors[1].name, "b");
  EXPECT_EQ(header.tensors[1].begin, 3u);
  EXPECT_EQ(header.tensors[1].end, 11u);
  EXPECT_EQ(header.metadata.at("k"), "ü");
  EXPECT_EQ(header.data_begin, file.size() - 11);
}

TEST(Safetensors, ReadsScalarsEmptyTensorsAndEveryDtype) {
  const struct {
    const char* name;
    unsigned bits;
  } types[] = {{"F64", 64},    {"F32", 32},    {"F16", 16},        {"BF16", 16},      {"F8_E4M3", 8}, {"F8_E5M2", 8},
               {"F8_E8M0", 8}, {"F4", 4},      {"I64", 64},        {"I32", 32},       {"I16", 16},    {"I8", 8},
               {"U8", 8},      {"U16", 16},    {"U32", 32},        {"U64", 64},       {"C64", 64},    {"BOOL", 8},
               {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}};
  for (const auto& type : types) {
    const auto dtype = dtype_from(type.name);
    ASSERT_TRUE(dtype) << type.name;
    EXPECT_EQ(bits_of(*dtype), type.bits) << type.name;
    EXPECT_EQ(to_string(*dtype), type.name);
    const std::string data(type.bits, 'x');
    EXPECT_EQ(refusal(safetensors({{"x", type.name, "[4, 2]", data}})), "") << type.name;
    expect_refused(safetensors({{"x", type.name, "[4, 2]", data + "x"}}), "needs");
  }
  EXPECT_EQ(refusal(safetensors({{"s", "F32", "[]", "1234"}, {"e", "F32", "[0, 7]", ""}, {"u", "I8", "[1]", "1"}})),
            "");
  EXPECT_EQ(refusal(safetensors("{}")), "");
}

TEST(Safetensors, RefusesTruncatedFiles) {
  const std::string whole = safetensors({{"a", "F32", "[2]", "12345678"}, {"b", "U8", "[3]", "abc"}});
  ASSERT_EQ(refusal(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_NE(refusal(whole.substr(0, size)), "") << size;
  expect_refused("", "it has 0 bytes");
  expect_refused(whole.substr(0, 7), "it has 7 bytes");
  expect_refused(whole.substr(0, 20), "truncated: the header has");
  expect_refused(whole.substr(0, whole.size() - 1), "the file holds only 10 bytes of data");
  expect_refused(whole + "x", "the file holds 12 bytes of data but its tensors end at 11");
}

TEST(Safetensors, RefusesImpossibleHeaderLengths) {
  const auto with_length = [](std::uint64_t n) { return bytes_of_values(std::vector{n}) + "{}"; };
  expect_refused(with_length(0), "does not begin with '{'");
  expect_refused(with_length(3), "truncated");
  expect_refused(with_length(100'000'001), "more than the 100000000 allowed");
  expect_refused(with_length(UINT64_MAX), "more than the 100000000 allowed");
  expect_refused(with_length(UINT64_MAX - 7), "more than the 100000000 allowed");
  expect_refused(safetensors(" {}"), "does not begin with '{'");
  expect_refused(safetensors("[]"), "does not begin with '{'");
}

TEST(Safetensors, RefusesWhatIsNoJson) {
  expect_refused(safetensors("{"), "not JSON");
  expect_refused(safetensors("{}}"), "not JSON");
  expect_refused(safetensors("{} x"), "not JSON");
  expect_refused(safetensors(std::string("{}\0{", 4)), "NUL");
  expect_refused(safetensors("{\"\xff\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}"), "UTF-8");
  expect_refused(safetensors("{\"a\":" + std::string(1'000'000, '[')), "holds an array");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  expect_refused(safetensors(deep), "unknown field");
  expect_refused(one_tensor("\"dtype\":\"U8\",\"shape\":" + std::string(100'000, '[')), "holds an array");
}

TEST(Safetensors, RefusesNamesThatAppearTwice) {
  const std::string entry = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  expect_refused(safetensors("{\"a\":" + entry + ",\"b\":" + entry + ",\"a\":" + entry + "}"), "\"a\" appears twice");
  expect_refused(safetensors(R"({"__metadata__":{},"__metadata__":{}})"), "appears twice");
  expect_refused(safetensors(R"({"__metadata__":{"k":"1","k":"2"}})"), "\"k\" twice");
  expect_refused(one_tensor(R"("dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0])"), "dtype twice");
  expect_refused(one_tensor(R"("dtype":"U8","shape":[0],"shape":[0],"data_offsets":[0,0])"), "shape twice");
  expect_refused(one_tensor(R"("dtype":"U8","shape":[0],"data_offsets":[0,0],"data_offsets":[0,0])"), "offsets twice");
}

TEST(Safetensors, RefusesBadFields) {
  expect_refused(one_tensor(R"("dtype":"F12","shape":[0],"data_offsets":[0,0])"), "unknown dtype \"F12\"");
  expect_refused(one_tensor(R"("dtype":"f32","shape":[0],"data_offsets":[0,0])"), "unknown dtype");
  expect_refused(one_tensor(R"("dtype":4,"shape":[0],"data_offsets":[0,0])"), "holds a number");
  expect_refused(one_tensor(R"("dtype":null,"shape":[0],"data_offsets":[0,0])"), "holds null");
  expect_refused(one_tensor(R"("shape":[0],"data_offsets":[0,0])"), "has no dtype");
  expect_refused(one_tensor(R"("dtype":"U8","data_offsets":[0,0])"), "has no shape");
  expect_refused(one_tensor(R"("dtype":"U8","shape":[0])"), "has no data_offsets");
  expect_refused(one_tensor(R"("dtype":"U8","shape":[0],"data_offsets":[0])"), "exactly two");
  expect_refused(one_tensor(R"("dtype":"U8","shape":[0],"data_offsets":[0,0,0])"), "holds a number");
  expect_refused(one_tensor(R"("dtype":"U8","shape":[-1],"data_offsets":[0,0])"), "negative");
  expect_refused(one_tensor(R"("dtype":"U8","shape":[1.0],"data_offsets":[0,1])", "x"), "no integer");
  expect_refused(one_tensor(R"("dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,1])", "x"), "no integer");
  expect_refused(one_tensor(R"("dtype":"U8","shape":[[1]],"data_offsets":[0,1])", "x"), "holds an array");
  expect_refused(one_tensor(R"("dtype":"U8","shape":["1"],"data_offsets":[0,1])", "x"), "holds a string");
  expect_refused(one_tensor(R"("dtype":"U8","shape":[true],"data_offsets":[0,1])", "x"), "holds a boolean");
  expect_refused(one_tensor(R"("dtype":"U8","shape":[1],"data_offsets":[0,1],"extra":1)", "x"), "unknown field");
  expect_refused(safetensors(R"({"x":1})"), "holds a number");
  expect_refused(safetensors(R"({"__metadata__":{"k":1}})"), "__metadata__ holds a number");
  expect_refused(safetensors(R"({"__metadata__":{"k":{}}})"), "__metadata__ holds an object");
  expect_refused(safetensors({{std::string(1025, 'n'), "U8", "[0]", ""}}), "more than 1024 bytes");
  EXPECT_EQ(refusal(safetensors({{std::string(1024, 'n'), "U8", "[0]", ""}})), "");
}

TEST(Safetensors, RefusesGiganticCounts) {
  std::string dimensions = "1";
  for (int i = 0; i < 64; ++i) dimensions += ",1";
  expect_refused(one_tensor("\"dtype\":\"U8\",\"shape\":[" + dimensions + "],\"data_offsets\":[0,1]", "x"),
                 "more than 64 dimensions");
  expect_refused(one_tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])"), "no size");
  expect_refused(one_tensor(R"("dtype":"F32","shape":[9223372036854775808,2],"data_offsets":[0,0])"), "no size");
  // 2^62 F32 take 2^64 bytes, which is 0 in 64 bits.
  expect_refused(one_tensor(R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0])"), "no size");
  expect_refused(one_tensor(R"("dtype":"U8","shape":[1099511627776],"data_offsets":[0,1099511627776])"),
                 "the file holds only 0 bytes");
  expect_refused(one_tensor(R"("dtype":"U8","shape":[1],"data_offsets":[18446744073709551615,18446744073709551615])"),
                 "the file holds only 0 bytes");
  expect_refused(one_tensor(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])", "xx"), "no size in whole bytes");
}

TEST(Safetensors, RefusesOverlapsHolesAndWrongSizes) {
  const auto two = [](const std::string& a, const std::string& b, const std::string& data) {
    return safetensors("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" + a +
                           "},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" + b + "}}",
                       data);
  };
  EXPECT_EQ(refusal(two("[0,4]", "[4,8]", "12345678")), "");
  EXPECT_EQ(refusal(two("[4,8]", "[0,4]", "12345678")), "");
  expect_refused(two("[0,4]", "[0,4]", "1234"), "overlaps");
  expect_refused(two("[0,4]", "[3,7]", "1234567"), "overlaps");
  expect_refused(two("[0,4]", "[5,9]", "123456789"), "hole");
  expect_refused(two("[1,5]", "[5,9]", "123456789"), "hole");
  expect_refused(two("[0,4]", "[4,8]", "123456789"), "its tensors end at 8");
  expect_refused(two("[4,0]", "[4,8]", "12345678"), "ends before it begins");
  expect_refused(two("[0,3]", "[3,7]", "1234567"), "needs 4 bytes");
  // An empty tensor inside another one overlaps nothing, but it breaks the order without holes.
  expect_refused(safetensors(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                             R"("e":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
                             "1234"),
                 "overlaps");
}

TEST(Safetensors, PrintsNoControlCharacters) {
  const std::string said = refusal(safetensors(R"({"\u001b[2Jx\n":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})"));
  EXPECT_NE(said.find("\\x1b[2Jx\\x0a"), std::string::npos) << said;
  EXPECT_EQ(said.find('\x1b'), std::string::npos);
}

TEST(Safetensors, NamesFilesThatCannotBeMapped) {
  const TemporaryFolder folder;
  EXPECT_THROW(SafetensorsFile((folder / "none").string()), FileError);
  EXPECT_THROW(SafetensorsFile(folder.path().string()), FileError);
  EXPECT_THROW(SafetensorsFile("/dev/zero"), FileError);
  write_file(folder / "empty", "");
  EXPECT_THROW(SafetensorsFile((folder / "empty").string()), FileError);
}

TEST(Safetensors, WriterMakesFilesThatReadBack) {
  const TemporaryFolder folder;
  const std::string path = (folder / "f.safetensors").string();
  const std::string a = "abc", b = "01234567", c = "zzzz";
  {
    SafetensorsWriter writer(path,
                             {{"a", Dtype::U8, {3}, 0, 0},
                              {"b", Dtype::F32, {1, 2}, 0, 0},
                              {"c\"ü", Dtype::F32, {}, 0, 0},
                              {"empty", Dtype::BF16, {0, 5}, 0, 0}},
                             {{"format", "pt"}});
    writer.write(writer.index("a"), 0, as_bytes(a));
    writer.write(writer.index("b"), 4, as_bytes(b).subspan(4));
    writer.write(writer.index("c\"ü"), 0, as_bytes(c));
    writer.write(writer.index("b"), 0, as_bytes(b).first(4));
    writer.finish();
  }
  const SafetensorsFile file(path);
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  const auto content = [&](const char* name) {
    const auto bytes = file.data(*file.find(name));
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  EXPECT_EQ(content("a"), a);
  EXPECT_EQ(content("b"), b);
  EXPECT_EQ(content("c\"ü"), c);
  EXPECT_EQ(content("empty"), "");
  EXPECT_EQ(file.find("d"), nullptr);
  for (const auto& tensor : file.tensors())
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.data(tensor).data()) % (bits_of(tensor.dtype) / 8), 0u);
}

TEST(Safetensors, WriterRefusesIncompleteAndContradictoryFiles) {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder / name).string(); };
  EXPECT_THROW(SafetensorsWriter(path("1"), {{"a", Dtype::U8, {1}, 0, 0}, {"a", Dtype::F32, {1}, 0, 0}}, {}),
               FileError);
  EXPECT_THROW(SafetensorsWriter(path("2"), {{"__metadata__", Dtype::U8, {1}, 0, 0}}, {}), FileError);
  EXPECT_THROW(SafetensorsWriter(path("3"), {{"a", Dtype::U8, {UINT64_MAX, 2}, 0, 0}}, {}), FileError);
  EXPECT_THROW(SafetensorsWriter(path("4"), {{"a", Dtype::U8, {std::uint64_t{1} << 62}, 0, 0}}, {}), FileError);
  SafetensorsWriter writer(path("5"), {{"a", Dtype::U8, {2}, 0, 0}}, {});
  EXPECT_THROW(SafetensorsWriter(path("5"), {{"a", Dtype::U8, {2}, 0, 0}}, {}), FileError);
  EXPECT_THROW(writer.write(0, 1, as_bytes("xx")), FileError);
  EXPECT_THROW(writer.write(0, 3, {}), FileError);
  writer.write(0, 0, as_bytes("x"));
  EXPECT_THROW(writer.finish(), FileError);
}

/// Every file of the corpus, which holds what fuzzing found worth keeping, is read without a crash, and so are many
/// mutants of a good file. Of the corpus' names, "good" says that the file must be accepted, "bad" that it must not.
TEST(Safetensors, SurvivesTheCorpus) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MICROSCALE_TEST_CORPUS_DIR)) {
    const std::string bytes = read_file(entry.path()), name = entry.path().filename();
    const bool accepted = read_untrusted(as_bytes(bytes));
    EXPECT_TRUE(accepted || !name.starts_with("good")) << name;
    EXPECT_TRUE(!accepted || !name.starts_with("bad")) << name;
    ++files;
  }
  EXPECT_GE(files, 20u);
}

TEST(Safetensors, SurvivesMutants) {
  const std::string good = safetensors({{"w_packed", "U8", "[2, 16]", std::string(32, '\x21')},
                                        {"w_scale", "F8_E4M3", "[2, 2]", "8888"},
                                        {"w_global_scale", "F32", "[1]", bytes_of_values(std::vector{2.0f})},
                                        {"v", "F8_E4M3", "[1, 32]", std::string(32, '8')},
                                        {"v_scale", "U8", "[1, 1]", "\x7f"}},
                                       R"({"format":"pt"})");
  ASSERT_TRUE(read_untrusted(as_bytes(good)));
  std::mt19937 random(20260101);
  const std::string tokens[] = {
      "{",  "}",   "[",  "]",       "\"",     ",",    ":",           "0", "18446744073709551615",
      "-1", "1e9", "F4", "\\u0000", "_scale", "null", "__metadata__"};
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string mutant = good;
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % (mutant.size() + 1);
      switch (random() % 4) {
        case 0:
          mutant.insert(at, tokens[random() % std::size(tokens)]);
          break;
        case 1:
          mutant.erase(at, random() % 8);
          break;
        case 2:
          if (at < mutant.size()) mutant[at] = static_cast<char>(random());
          break;
        default:
          mutant.insert(at, mutant.substr(random() % mutant.size(), random() % 40));
          break;
      }
      // Most mutants would fail on the length alone.
      if (mutant.size() > 8 + 100 && random() % 2 == 0) {
        const std::uint64_t length = mutant.rfind('}') - 7;
        std::memcpy(mutant.data(), &length, sizeof(length));
      }
    }
    accepted += read_untrusted(as_bytes(mutant));
  }
  EXPECT_LT(accepted, 20000);
}

}  // namespace
