// SPDX-License-Identifier: GPL-2.0-only
#include "tests/support/run_tests.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard::testing {

int RunTests(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  std::string directory = (std::filesystem::temp_directory_path() / "railyard_XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) {
    std::perror(directory.c_str());
    return 1;
  }
  setenv("TMPDIR", directory.c_str(), 1);
  setenv("TEST_TMPDIR", (directory + "/").c_str(), 1);  // TempDir() of GoogleTest reads it
  const int status = RUN_ALL_TESTS();
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return status;
}

}  // namespace railyard::testing
