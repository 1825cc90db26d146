// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/files/input_file.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "simulator/files/output_file.h"
#include "simulator/processes/temporary_directory.h"

namespace railyard {
namespace {

std::string WhyNot(const std::string& path) {
  errno = 0;
  return OpenInputFile(path) ? "" : std::strerror(errno);
}

TEST(OpenInputFileTest, AFileIsReadAsBytes) {
  const TemporaryDirectory directory;
  WriteOutput(directory.File("a"), std::string("a\r\n\0b", 5));
  std::ifstream file = OpenInputFile(directory.File("a"));
  ASSERT_TRUE(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), std::string("a\r\n\0b", 5));
}

// Opening a pipe that nobody writes would wait forever.
TEST(OpenInputFileTest, NothingElseIsOpened) {
  const TemporaryDirectory directory;
  const std::string pipe = directory.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(WhyNot(pipe), std::strerror(EINVAL));
  EXPECT_EQ(WhyNot("/dev/zero"), std::strerror(EINVAL));
  EXPECT_EQ(WhyNot("/"), std::strerror(EISDIR));
  EXPECT_EQ(WhyNot(directory.File("none")), std::strerror(ENOENT));
}

}  // namespace
}  // namespace railyard
