// SPDX-License-Identifier: GPL-2.0-only
// Loads algorithms from texts, as a user's files are loaded.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "simulator/scenario/schedule_files/schedule_file_loader.h"

namespace railyard {

class ScheduleTextTest : public ::testing::Test {
 protected:
  // Returns nullptr if there are errors, which findings_ has.
  std::shared_ptr<const ExplicitAlgorithm> Load(const std::string& text) {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    const std::string path =
        ::testing::TempDir() + "/" + test->test_suite_name() + "_" + test->name();
    std::ofstream(path) << text;
    Diagnostics diagnostics;
    auto algorithm = LoadScheduleFile(path, diagnostics);
    findings_ = diagnostics.ToString();
    std::filesystem::remove(path);
    EXPECT_EQ(algorithm == nullptr, diagnostics.HasErrors());
    return algorithm;
  }
  std::string findings_;
};

}  // namespace railyard
