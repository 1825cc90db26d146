// SPDX-License-Identifier: GPL-2.0-only
// Fabrics written as text in a directory of the test's own, and what loading them says.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "simulator/text_proto/text_proto.h"
#include "topologies/formats/topology.pb.h"
#include "topologies/formats/topology_loader.h"

namespace railyard::testing {

class FabricTextTest : public ::testing::Test {
 protected:
  FabricTextTest() {
    std::string pattern = ::testing::TempDir() + "/fabric-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~FabricTextTest() override { std::filesystem::remove_all(directory_); }

  // Loads "fabric.textproto" with this text; the findings, without the directory's name, are in
  // `findings_`, one a line.
  std::optional<FabricGraph> Load(const std::string& text) {
    Write("fabric.textproto", text);
    findings_.clear();
    Diagnostics diagnostics;
    std::optional<FabricGraph> graph;
    const auto file =
        LoadTextProto(directory_ + "/fabric.textproto", protos::Fabric(), {}, diagnostics);
    if (file != nullptr) graph = LoadFabric(ProtoCursor(*file), diagnostics);
    findings_ = diagnostics.ToString();
    const std::string prefix = directory_ + "/";
    for (size_t at; (at = findings_.find(prefix)) != std::string::npos;) {
      findings_.erase(at, prefix.size());
    }
    EXPECT_EQ(graph.has_value(), !diagnostics.HasErrors()) << findings_;
    return graph;
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ + "/" + name) << text;
  }

  std::string findings_;

 private:
  std::string directory_;
};

}  // namespace railyard::testing
