// SPDX-License-Identifier: GPL-2.0-only
// A file with a fabric in any format, and what reading it says.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "topologies/formats/fabric_argument_loader.h"

namespace railyard::testing {

class FormatTest : public ::testing::Test {
 protected:
  FormatTest() {
    std::string pattern = ::testing::TempDir() + "/format-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~FormatTest() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ + "/" + name) << text;
    return directory_ + "/" + name;
  }

  // The findings, without the directory's name, are in `findings_`, one a line.
  std::optional<FabricGraph> Load(const std::string& name, const std::string& text) {
    Diagnostics diagnostics;
    auto fabric = LoadFabricArgument(Write(name, text), diagnostics);
    findings_ = diagnostics.ToString();
    const std::string prefix = directory_ + "/";
    for (size_t at; (at = findings_.find(prefix)) != std::string::npos;) {
      findings_.erase(at, prefix.size());
    }
    EXPECT_EQ(fabric.has_value(), !diagnostics.HasErrors()) << findings_;
    return fabric;
  }

  std::string findings_;

 private:
  std::string directory_;
};

}  // namespace railyard::testing
