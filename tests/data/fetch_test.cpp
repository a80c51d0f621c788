#include "data/download.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "base/files.h"
#include "data/local_server.h"
#include "data/scratch_folder.h"
#include "data/sha256.h"
#include "support/full_disk.h"
#include "support/support.h"

namespace fastweights::data {
namespace {

using testing::error_message;
using testing::FullDisk;
using testing::LocalServer;
using testing::ScratchFolder;

TEST(Sha256, AgreesWithTheStandard) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesChangeNothing) {
  const std::string text(300, 'x');
  for (size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(Sha256().add(text.substr(0, cut)).add(text.substr(cut)).digest(), sha256(text)) << cut;
}

std::string numbers() {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i) + ",";
  return text;
}

class Fetch : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.set("probe", {.bytes = "x"});
    const std::string error = error_message<std::runtime_error>(
        [&] { download({.address = server_.address("probe")}, folder_.path("p")); });
    if (error.find("this build") != std::string::npos) GTEST_SKIP() << "built without libcurl";
    ASSERT_EQ(error, "");
  }
  std::string get(const KnownFile& file) { return download(file, folder_.path()); }
  std::string error_of(const KnownFile& file) {
    return error_message<std::runtime_error>([&] { get(file); });
  }
  KnownFile page(const std::string& name) const { return {.address = server_.address(name)}; }
  std::vector<std::string> requests() const {
    const std::vector<std::string> all = server_.requests();
    return {all.begin() + 1, all.end()};
  }

  LocalServer server_;
  ScratchFolder folder_;
};

TEST_F(Fetch, AFileComesWhole) {
  server_.set("a.txt", {.bytes = numbers()});
  int64_t last = 0, all = 0;
  const std::string path = download(page("a.txt"), folder_.path(), [&](int64_t now, int64_t total) {
    EXPECT_GE(now, last);
    last = now;
    all = total;
  });
  EXPECT_EQ(path, folder_.path("a.txt"));
  EXPECT_EQ(read_file(path), numbers());
  EXPECT_EQ(last, static_cast<int64_t>(numbers().size()));
  EXPECT_EQ(all, last);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("a.txt.part")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("a.txt.part.tag")));
}

TEST_F(Fetch, AnInterruptedDownloadGoesOn) {
  server_.set("a.txt", {.bytes = numbers(), .tag = "\"1\"", .cut_after = 1000});
  const std::string error = error_of(page("a.txt"));
  EXPECT_NE(error.find("the next attempt resumes the download"), std::string::npos) << error;
  EXPECT_EQ(read_file(folder_.path("a.txt.part")), numbers().substr(0, 1000));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("a.txt")));
  EXPECT_EQ(read_file(get(page("a.txt"))), numbers());
  EXPECT_EQ(requests(), (std::vector<std::string>{"a.txt", "a.txt from 1000"}));
}

TEST_F(Fetch, AnotherVersionIsNotMixedIn) {
  server_.set("a.txt", {.bytes = numbers(), .tag = "\"1\"", .cut_after = 1000});
  error_of(page("a.txt"));
  server_.set("a.txt", {.bytes = "new " + numbers(), .tag = "\"2\""});
  EXPECT_EQ(read_file(get(page("a.txt"))), "new " + numbers());
}

TEST_F(Fetch, WithoutATagItBeginsAnew) {
  server_.set("a.txt", {.bytes = numbers(), .cut_after = 1000});
  error_of(page("a.txt"));
  EXPECT_EQ(read_file(get(page("a.txt"))), numbers());
  EXPECT_EQ(requests(), (std::vector<std::string>{"a.txt", "a.txt"}));
}

TEST_F(Fetch, APartThatIsCompleteIsTaken) {
  server_.set("a.txt", {.bytes = numbers(), .tag = "\"1\""});
  folder_.write("a.txt.part", numbers());
  folder_.write("a.txt.part.tag", "\"1\"");
  EXPECT_EQ(read_file(get(page("a.txt"))), numbers());
}

TEST_F(Fetch, RedirectionsAreFollowed) {
  server_.set("a.txt", {.bytes = "text"});
  server_.set("old.txt", {.location = server_.address("a.txt")});
  EXPECT_EQ(read_file(get(page("old.txt"))), "text");
}

TEST_F(Fetch, WhatIsThereIsNotDownloaded) {
  server_.set("a.txt", {.bytes = "text"});
  get(page("a.txt"));
  get(page("a.txt"));
  EXPECT_EQ(requests().size(), 1u);
}

TEST_F(Fetch, KnownChecksumsAndSizesAreCompared) {
  server_.set("a.txt", {.bytes = "text"});
  KnownFile file = page("a.txt");
  file.sha256 = sha256("other");
  EXPECT_EQ(error_of(file),
            file.address + ": expected the SHA-256 " + sha256("other") + ", got " + sha256("text"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("a.txt")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("a.txt.part")));
  file.sha256 = sha256("text");
  file.size = 5;
  EXPECT_EQ(error_of(file), file.address + ": expected 5 bytes, got 4");
  file.size = 4;
  EXPECT_EQ(read_file(get(file)), "text");
  EXPECT_FALSE(std::filesystem::exists(folder_.path("a.txt.sha256")));
}

TEST_F(Fetch, UnknownChecksumsAreRecordedAndHoldFromThenOn) {
  server_.set("a.txt", {.bytes = "text"});
  std::filesystem::remove(get(page("a.txt")));
  EXPECT_EQ(read_file(folder_.path("a.txt.sha256")), sha256("text") + "  a.txt\n");
  server_.set("a.txt", {.bytes = "changed"});
  EXPECT_EQ(error_of(page("a.txt")), server_.address("a.txt") + ": expected the SHA-256 " + sha256("text") +
                                         " of the first download (" + folder_.path("a.txt.sha256") +
                                         "), got " + sha256("changed"));
}

TEST_F(Fetch, ADiskThatIsFullIsNotACompleteFile) {
  // fewer bytes than a stream keeps back, so that only its end could tell
  server_.set("a.txt", {.bytes = std::string(2000, 'x')});
  {
    const FullDisk full(1000);
    const std::string error = error_of(page("a.txt"));
    EXPECT_NE(error.find(folder_.path("a.txt.part") + ": cannot be written: File too large"),
              std::string::npos)
        << error;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path("a.txt")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("a.txt.sha256")));
  EXPECT_EQ(read_file(get(page("a.txt"))), std::string(2000, 'x'));
}

TEST_F(Fetch, AChecksumThatCannotBeRememberedIsAnError) {
  server_.set("a.txt", {.bytes = "text"});
  {
    const FullDisk full(10);
    EXPECT_EQ(error_of(page("a.txt")), folder_.path("a.txt.sha256") + ": cannot be written: File too large");
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path("a.txt.sha256")));
  EXPECT_EQ(read_file(get(page("a.txt"))), "text");
}

TEST_F(Fetch, LinksAtItsNamesAreNotFollowed) {
  server_.set("a.txt", {.bytes = numbers(), .tag = "\"1\""});
  const std::string victim = folder_.write("victim", "precious");
  for (const char* name : {"a.txt.part", "a.txt.part.tag", "a.txt.sha256"}) {
    const std::string link = folder_.path(name);
    std::filesystem::create_symlink(victim, link);
    const std::string error = error_of(page("a.txt"));
    EXPECT_EQ(error, link + ": expected a file, got a link; remove it") << name;
    EXPECT_EQ(read_file(victim), "precious") << name;
    std::filesystem::remove(link);
  }
  EXPECT_EQ(read_file(get(page("a.txt"))), numbers());
}

TEST_F(Fetch, MissingFilesAndServersAreNamed) {
  EXPECT_EQ(error_of(page("none.txt")),
            server_.address("none.txt") + ": The requested URL returned error: 404");
  EXPECT_FALSE(std::filesystem::exists(folder_.path("none.txt.part")));
  const std::string error = error_of({.address = "ftp://127.0.0.1/a.txt"});
  EXPECT_EQ(error.rfind("ftp://127.0.0.1/a.txt: Protocol \"ftp\" ", 0), 0u) << error;
  EXPECT_EQ(error_message([&] { get({.address = "http://127.0.0.1/"}); }),
            "[download] 'http://127.0.0.1/' does not name a file");
}

TEST_F(Fetch, AnErrorOfTheProgressEndsTheDownload) {
  server_.set("a.txt", {.bytes = numbers()});
  EXPECT_EQ(error_message<std::runtime_error>([&] {
              download(page("a.txt"), folder_.path(),
                       [](int64_t, int64_t) { throw std::runtime_error("enough"); });
            }),
            "enough");
}

// a file of a tar archive: a header of 512 bytes, and the bytes in blocks of 512
std::string tar_entry(const std::string& name, const std::string& bytes, char kind = '0') {
  std::string header(512, '\0');
  const auto put = [&](size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  char size[16];
  std::snprintf(size, sizeof size, "%011zo", bytes.size());
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, size);
  put(136, "00000000000");
  put(148, "        ");
  put(156, std::string(1, kind));
  if (kind == '2') put(157, "/etc");
  put(257, std::string("ustar\0"
                       "00",
                       8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(size, sizeof size, "%06o", sum);
  put(148, std::string(size, 7) + " ");
  return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}
const std::string kTarEnd(1024, '\0');

class Unpack : public ::testing::Test {
 protected:
  void SetUp() override {
    if (error_of(tar_entry("a", "text") + kTarEnd).find("this build") != std::string::npos)
      GTEST_SKIP() << "built without libarchive";
  }
  std::string error_of(const std::string& bytes) {
    const std::string file = folder_.write("a.tar", bytes);
    return error_message<std::runtime_error>([&] { unpack(file, folder_.path("out")); });
  }
  ScratchFolder folder_;
};

TEST_F(Unpack, FilesComeOutInTheirFolders) {
  EXPECT_EQ(error_of(tar_entry("./a.txt", "text") + tar_entry("b/c.txt", numbers()) + kTarEnd), "");
  EXPECT_EQ(read_file(folder_.path("out/a.txt")), "text");
  EXPECT_EQ(read_file(folder_.path("out/b/c.txt")), numbers());
}

TEST_F(Unpack, NothingLeadsOutOfTheFolder) {
  EXPECT_EQ(error_of(tar_entry("../a.txt", "text") + kTarEnd),
            folder_.path("a.tar: '../a.txt' would be written outside the folder"));
  EXPECT_EQ(error_of(tar_entry("/tmp/fastweights-a.txt", "text") + kTarEnd),
            folder_.path("a.tar: '/tmp/fastweights-a.txt' would be written outside the folder"));
  EXPECT_EQ(error_of(tar_entry("link", "", '2') + kTarEnd), "");
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(folder_.path("out/link"))));
}

TEST_F(Unpack, BrokenArchivesAreNamed) {
  EXPECT_EQ(error_of("nothing of the kind").rfind(folder_.path("a.tar: cannot be unpacked: "), 0), 0u);
  const std::string cut = tar_entry("a.txt", numbers()).substr(0, 2000);
  EXPECT_EQ(error_of(cut).rfind(folder_.path("a.tar: cannot be unpacked: "), 0), 0u);
}

TEST_F(Fetch, ASetAppearsWhenItIsComplete) {
  const KnownSet set = {.name = "Set", .files = {page("a.tar"), page("Outcomes.txt")}};
  const auto error = [&] { return error_message<std::runtime_error>([&] { fetch(set, folder_.path()); }); };
  server_.set("a.tar", {.bytes = tar_entry("set-a/1.txt", "one") + kTarEnd});
  const std::string first = error();
  EXPECT_EQ(first, server_.address("Outcomes.txt") + ": The requested URL returned error: 404");
  EXPECT_FALSE(std::filesystem::exists(folder_.path("Set")));
  server_.set("Outcomes.txt", {.bytes = "outcomes"});
  const std::string second = error();
  if (second.find("this build") != std::string::npos) GTEST_SKIP() << "built without libarchive";
  ASSERT_EQ(second, "");
  EXPECT_EQ(read_file(folder_.path("Set/set-a/1.txt")), "one");
  EXPECT_EQ(read_file(folder_.path("Set/Outcomes.txt")), "outcomes");
  EXPECT_FALSE(std::filesystem::exists(folder_.path("downloads/Set/a.tar")));
  EXPECT_TRUE(std::filesystem::exists(folder_.path("downloads/Set/a.tar.sha256")));
  const size_t count = requests().size();
  EXPECT_EQ(fetch(set, folder_.path()), folder_.path("Set"));
  EXPECT_EQ(requests().size(), count);
}

TEST_F(Fetch, AnotherRangeIsNotAppended) {
  server_.set("a.txt", {.bytes = numbers(), .tag = "\"1\"", .cut_after = 1000});
  error_of(page("a.txt"));
  server_.set("a.txt", {.bytes = numbers(), .tag = "\"1\"", .range = "bytes 500-9999/10000"});
  EXPECT_EQ(error_of(page("a.txt")), server_.address("a.txt") +
                                         ": expected the bytes from 1000 on, got the range 'bytes "
                                         "500-9999/10000'; the next attempt starts over");
  EXPECT_EQ(read_file(get(page("a.txt"))), numbers());
}

TEST_F(Fetch, ARangeThatEndsEarlyIsNotTheRest) {
  server_.set("a.txt", {.bytes = numbers(), .tag = "\"1\"", .cut_after = 1000});
  error_of(page("a.txt"));
  const std::string size = std::to_string(numbers().size());
  server_.set("a.txt",
              {.bytes = numbers().substr(0, 3000), .tag = "\"1\"", .range = "bytes 1000-2999/" + size});
  EXPECT_EQ(error_of(page("a.txt")),
            server_.address("a.txt") + ": the server ended early; the next attempt resumes the download");
  server_.set("a.txt", {.bytes = numbers(), .tag = "\"1\""});
  EXPECT_EQ(read_file(get(page("a.txt"))), numbers());
}

TEST_F(Fetch, WhatMayBeIncompleteIsNotRemembered) {
  std::vector<std::string> notes;
  const auto keep = [&](const std::string& line) { notes.push_back(line); };
  // the connection ends early, and nothing says so
  server_.set("a.txt", {.bytes = numbers(), .cut_after = 1000, .without_length = true});
  std::filesystem::remove(download(page("a.txt"), folder_.path(), {}, keep));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("a.txt.sha256")));
  EXPECT_EQ(read_file(download(page("a.txt"), folder_.path(), {}, keep)), numbers());
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(notes[0].find("first download, not verified"), std::string::npos) << notes[0];
  const std::string tar = tar_entry("set-a/1.txt", numbers()) + kTarEnd;
  server_.set("a.tar", {.bytes = tar, .cut_after = 2000, .without_length = true});
  const std::string error = error_of(page("a.tar"));
  if (error.empty()) GTEST_SKIP() << "built without libarchive";
  EXPECT_NE(error.find("cannot be unpacked"), std::string::npos) << error;
  EXPECT_FALSE(std::filesystem::exists(folder_.path("a.tar.sha256")));
  EXPECT_EQ(read_file(get(page("a.tar"))), tar);
  EXPECT_TRUE(std::filesystem::exists(folder_.path("a.tar.sha256")));
}

TEST(Catalogue, PublishedChecksumsAreKnown) {
  for (const char* name :
       {"physionet2012", "physionet2019", "speech_commands_v0.01", "speech_commands_v0.02"}) {
    for (const KnownFile& file : known_set(name).files) {
      EXPECT_EQ(file.sha256.size(), 64u) << file.address;
      EXPECT_EQ(file.sha256.find_first_not_of("0123456789abcdef"), std::string::npos) << file.address;
      EXPECT_GT(file.size, 0) << file.address;
    }
  }
}

TEST(Catalogue, EveryEntryIsUsable) {
  std::set<std::string> names;
  for (const KnownSet& set : catalogue()) {
    EXPECT_TRUE(names.insert(set.name).second) << set.name;
    EXPECT_FALSE(set.sentence.empty() || set.license.empty() || set.page.empty() || set.files.empty())
        << set.name;
    for (const KnownFile& file : set.files) {
      EXPECT_EQ(file.address.rfind("https://", 0), 0u) << file.address;
      EXPECT_TRUE(file.sha256.empty() || file.sha256.size() == 64) << file.address;
    }
    EXPECT_EQ(&known_set(set.name), &set);
  }
  EXPECT_EQ(error_message([] { known_set("Eigenworm"); }),
            "unknown data set 'Eigenworm'; the nearest is 'EigenWorms'");
}

}  // namespace
}  // namespace fastweights::data
