// SPDX-License-Identifier: GPL-2.0-only
// A scenario's text in a file of its own, and what loading it finds.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/text_proto/text_proto.h"

namespace railyard {

class TextFile {
 public:
  explicit TextFile(const std::string& text, const std::string& name = "s.textproto") {
    // Files of a test name each other. TMPDIR is this process's own (tests/support/run_tests.h).
    directory_ = std::filesystem::temp_directory_path() / "files";
    std::filesystem::create_directories(directory_);
    path_ = (directory_ / name).string();
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TextFile() {
    std::error_code error;
    std::filesystem::remove_all(directory_, error);
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  const std::string& path() const { return path_; }
  std::string directory() const { return directory_.string(); }

  std::unique_ptr<TextProtoFile> Load(const std::vector<std::string>& sets = {}) {
    return LoadAs(protos::Scenario(), sets);
  }
  std::unique_ptr<TextProtoFile> LoadAs(const google::protobuf::Message& prototype,
                                        const std::vector<std::string>& sets = {}) {
    diagnostics = Diagnostics();
    auto file = LoadTextProto(path_, prototype, sets, diagnostics);
    // A text that is not read, or only in part, has a finding.
    EXPECT_TRUE(diagnostics.HasErrors() || (file != nullptr && file->mistakes.empty()));
    return file;
  }

  // Returns the findings without the path at the beginning of each line.
  std::string Findings() const { return WithoutPath(diagnostics.ToString()); }
  std::string WithoutPath(std::string text) const {
    for (size_t at = text.find(path_); at != std::string::npos; at = text.find(path_, at)) {
      text.erase(at, path_.size());
    }
    return text;
  }

  Diagnostics diagnostics;

 private:
  std::filesystem::path directory_;
  std::string path_;
};

inline const protos::Scenario& AsScenario(const TextProtoFile& file) {
  return static_cast<const protos::Scenario&>(*file.message);
}

}  // namespace railyard
