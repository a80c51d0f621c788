#include "fastweights/tensor.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "support/support.h"

namespace fastweights {
namespace {

using testing::error_message;

class SafetensorsOnDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        std::filesystem::temp_directory_path() / ("fastweights_safetensors_" + std::string(info->name()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    // not remove_all: LibTorch 2.11 from pip brings a copy of it into the process that crashes
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) std::remove(entry.path().c_str());
    std::remove(folder_.c_str());
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

TEST_F(SafetensorsOnDisk, EveryTypeComesBackBitForBit) {
  NamedTensors out;
  const Tensor numbers = testing::random({3, 5}, 1) * 100;
  for (const auto type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt}) {
    out.tensors[at::toString(type)] = numbers.to(type);
  }
  out.tensors["bytes"] = numbers.abs().to(at::kByte);
  out.tensors["flags"] = numbers > 0;
  out.tensors["scalar"] = at::scalar_tensor(2.5, at::kDouble);
  out.tensors["empty"] = at::empty({0, 4}, at::kFloat);
  out.tensors["transposed"] = numbers.t();
  out.metadata = {{"config", R"({"a": [1, 2]})"}, {"note", "\xc3\xbc"}};
  save_safetensors(path("all.safetensors"), out);
  const NamedTensors back = load_safetensors(path("all.safetensors"));
  EXPECT_EQ(back.metadata, out.metadata);
  ASSERT_EQ(back.tensors.size(), out.tensors.size());
  for (const auto& [name, tensor] : out.tensors) {
    EXPECT_EQ(back.tensors.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(at::equal(back.tensors.at(name), tensor)) << name;
  }
}

TEST_F(SafetensorsOnDisk, ErrorsNameTheFileAndTheTrouble) {
  save_safetensors(path("good"), {{{"w", testing::random({40}, 1)}}, {}});
  EXPECT_NE(error_message<std::runtime_error>([&] { load_safetensors(path("none")); }).find("none"),
            std::string::npos);
  EXPECT_NE(error_message<std::runtime_error>([&] { load_safetensors(folder_.string()); }).find("not a file"),
            std::string::npos);
  const SafetensorsFile file(path("good"));
  EXPECT_NE(error_message<std::runtime_error>([&] { file.read("v"); }).find("no tensor 'v'"),
            std::string::npos);
  std::filesystem::resize_file(path("good"), std::filesystem::file_size(path("good")) - 8);
  const std::string cut = error_message<std::runtime_error>([&] { load_safetensors(path("good")); });
  EXPECT_NE(cut.find("good: "), std::string::npos) << cut;
  EXPECT_NE(cut.find("truncated"), std::string::npos) << cut;
}

TEST_F(SafetensorsOnDisk, BoolsAreZeroOrOne) {
  save_safetensors(path("flags"), {{{"flags", at::ones({3}, at::kBool)}}, {}});
  {
    std::fstream patch(path("flags"), std::ios::in | std::ios::out | std::ios::binary);
    patch.seekp(-1, std::ios::end);
    patch.put(7);
  }
  EXPECT_NE(error_message<std::runtime_error>([&] { load_safetensors(path("flags")); }).find("byte 7"),
            std::string::npos);
}

TEST_F(SafetensorsOnDisk, RefusesWhatItCannotWrite) {
  EXPECT_NE(error_message([&] {
              save_safetensors(path("x"), {{{"c", at::zeros({1}, at::kComplexDouble)}}, {}});
            }).find("'c'"),
            std::string::npos);
  EXPECT_NE(error_message([&] {
              save_safetensors(path("x"), {{{"u", Tensor()}}, {}});
            }).find("undefined"),
            std::string::npos);
  EXPECT_NE(error_message<std::runtime_error>([&] {
              save_safetensors(path("no/folder"), {});
            }).find("cannot be written"),
            std::string::npos);
}

// a flipped bit changes nothing (in spaces of the header), or it is noticed
TEST_F(SafetensorsOnDisk, EveryFlippedBitIsNoticed) {
  const NamedTensors good = {{{"flags", at::ones({3}, at::kBool)}, {"w", testing::random({5, 3}, 1)}},
                             {{"config", R"({"a": 1})"}}};
  save_safetensors(path("w"), good);
  const std::string bytes = read_file(path("w"));
  size_t same = 0;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    std::ofstream(path("damaged"), std::ios::binary) << damaged;
    try {
      const NamedTensors found = load_safetensors(path("damaged"));
      // a checksum of another name is no checksum, but what it was computed from is whole
      EXPECT_TRUE(at::equal(found.tensors.at("w"), good.tensors.at("w"))) << bit;
      EXPECT_EQ(found.metadata.at("config"), good.metadata.at("config")) << bit;
      ++same;
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()).rfind(path("damaged") + ": ", 0), 0u) << error.what();
    }
  }
  EXPECT_LT(same, 8 * 30u);
  std::string damaged = bytes;
  damaged.back() = '\1';
  damaged[damaged.size() - 20] ^= 16;
  std::ofstream(path("damaged"), std::ios::binary) << damaged;
  EXPECT_EQ(error_message<std::runtime_error>([&] { load_safetensors(path("damaged")); }),
            path("damaged") + ": the file is damaged: its contents do not match their checksum");
}

TEST_F(SafetensorsOnDisk, AFailedWriteLeavesTheOldFile) {
  save_safetensors(path("w"), {{{"w", at::ones({2}, at::kDouble)}}, {}});
  EXPECT_THROW(save_safetensors(path("w"), {{{"w", at::zeros({2}, at::kDouble)}}, {{"bad", "\xff"}}}),
               std::invalid_argument);
  EXPECT_TRUE(at::equal(load_safetensors(path("w")).tensors.at("w"), at::ones({2}, at::kDouble)));
}

}  // namespace
}  // namespace fastweights
