// SPDX-License-Identifier: GPL-2.0-only
// Files appear complete or not at all, in the place that links lead to.
#include "simulator/files/output_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/processes/temporary_directory.h"

namespace railyard {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class OutputFileTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name) const { return directory_.File(name); }
  static std::string ContentOf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(File(""))) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  TemporaryDirectory directory_;
};

TEST_F(OutputFileTest, ASocketIsAnErrorAtOnce) {
  const int socket_descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = File("socket");
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(bind(socket_descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
            0);
  EXPECT_THROW(OutputFile{path}, EnvironmentError);
  close(socket_descriptor);
}

TEST_F(OutputFileTest, AFileAppearsWhenItIsClosed) {
  OutputFile file(File("out"));
  file.Write("one ");
  file.Write("two");
  EXPECT_FALSE(fs::exists(File("out")));
  file.Close();
  EXPECT_EQ(ContentOf(File("out")), "one two");
  EXPECT_THAT(Names(), UnorderedElementsAre("out")) << "nothing else is left";
}

TEST_F(OutputFileTest, AFileThatIsNotClosedLeavesTheEarlierOne) {
  WriteOutput(File("out"), "earlier");
  {
    OutputFile file(File("out"));
    file.Write("later");
  }
  EXPECT_EQ(ContentOf(File("out")), "earlier");
  EXPECT_THAT(Names(), UnorderedElementsAre("out"));
}

// Other users may read it as far as the mask lets them, though the unfinished file was private.
TEST_F(OutputFileTest, AFinishedFileHasTheModeOfAnyNewOne) {
  const mode_t before = umask(027);
  WriteOutput(File("out"), "text");
  umask(before);
  struct stat file = {};
  ASSERT_EQ(stat(File("out").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777u, 0640u);
}

TEST_F(OutputFileTest, ALinkStaysALinkAndItsTargetIsWritten) {
  fs::create_directory(File("elsewhere"));
  fs::create_symlink("elsewhere/target", File("second"));
  fs::create_symlink("second", File("first"));
  WriteOutput(File("first"), "text");
  EXPECT_TRUE(fs::is_symlink(File("first")));
  EXPECT_TRUE(fs::is_symlink(File("second")));
  EXPECT_EQ(ContentOf(File("elsewhere/target")), "text");
}

TEST_F(OutputFileTest, LinksInACircleAndDirectoriesAreRefused) {
  fs::create_symlink("b", File("a"));
  fs::create_symlink("a", File("b"));
  fs::create_directory(File("directory"));
  for (const std::string& path : {File("a"), File("directory"), File("no/")}) {
    try {
      WriteOutput(path, "text");
      ADD_FAILURE() << path;
    } catch (const EnvironmentError& error) {
      EXPECT_THAT(error.what(), HasSubstr(path));
    }
  }
  EXPECT_THAT(Names(), UnorderedElementsAre("a", "b", "directory"));
}

// A pipe is written to, and is still a pipe.
TEST_F(OutputFileTest, APipeIsNotReplaced) {
  ASSERT_EQ(mkfifo(File("pipe").c_str(), 0600), 0);
  std::fstream reader(File("pipe"));  // for both directions, so that nobody waits
  WriteOutput(File("pipe"), "text\n");
  std::string line;
  std::getline(reader, line);
  EXPECT_EQ(line, "text");
  EXPECT_TRUE(fs::is_fifo(File("pipe")));
}

TEST_F(OutputFileTest, PathsOfOneFileAreTheSameWhetherOrNotItExists) {
  EXPECT_TRUE(IsSameFile(File("out"), File("./out")));
  EXPECT_FALSE(IsSameFile(File("out"), File("other")));
  WriteOutput(File("out"), "text");
  fs::create_symlink("out", File("link"));
  fs::create_hard_link(File("out"), File("hard"));
  WriteOutput(File("other"), "text");
  EXPECT_TRUE(IsSameFile(File("out"), File("link")));
  EXPECT_TRUE(IsSameFile(File("hard"), File("out")));
  EXPECT_FALSE(IsSameFile(File("out"), File("other")));
  EXPECT_FALSE(IsSameFile("/dev/null", "/dev/null")) << "it is no regular file";
}

}  // namespace
}  // namespace railyard
