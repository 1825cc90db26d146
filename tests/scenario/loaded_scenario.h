// SPDX-License-Identifier: GPL-2.0-only
// Loads a scenario from a text of the test's own.
#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "simulator/scenario/load/scenario_loader.h"
#include "tests/text_proto/text_file.h"

namespace railyard {

// A fabric of 16 GPUs on 2 servers, and a job on it: what a test's own lines are added to.
inline constexpr const char* kFabric = "fabric { rail_optimized { servers: 2 } }\n";
inline constexpr const char* kWorkload =
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } algorithm: RING "
    "protocol: SIMPLE }\n";

struct LoadedScenario {
  explicit LoadedScenario(const std::string& text, const std::vector<std::string>& sets = {})
      : file(text) {
    Diagnostics diagnostics;
    scenario = LoadScenario(file.path(), sets, diagnostics, &calls);
    findings = file.WithoutPath(diagnostics.ToString());
    EXPECT_EQ(scenario == nullptr, diagnostics.HasErrors()) << findings;
  }

  TextFile file;
  std::unique_ptr<Scenario> scenario;
  std::shared_ptr<const Trace> calls;
  std::string findings;  // the scenario's path in front of each line cut off
};

// The findings in `lines`, which stand from line 3 on, after a right fabric and workload.
inline std::string FindingsBeside(const std::string& lines) {
  return LoadedScenario(std::string(kFabric) + kWorkload + lines).findings;
}

// Loads a scenario with `lines` in it; nullptr fails the test.
inline std::unique_ptr<Scenario> LoadBeside(const std::string& lines) {
  LoadedScenario loaded(std::string(kFabric) + kWorkload + lines);
  EXPECT_NE(loaded.scenario, nullptr) << loaded.findings;
  return std::move(loaded.scenario);
}

// Returns the value of the last of its models' attributes with that name; empty if the default
// holds.
inline std::string AttributeOf(const Scenario& scenario, const std::string& name) {
  for (auto model = scenario.models.rbegin(); model != scenario.models.rend(); ++model) {
    if (model->name == name) return model->value;
  }
  return "";
}

}  // namespace railyard
