// SPDX-License-Identifier: GPL-2.0-only
// Loads a scenario's text into a run that can start.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/scenario/schema/scenario.h"
#include "simulator/text_proto/text_proto.h"
#include "traces/trace/trace.h"

namespace railyard {

// Reads `path`, applies `sets` ("FIELD=VALUE", text_proto.h), reads every file that it names and
// checks everything that can be known before time zero. Returns nullptr after any error. All errors
// are reported, unknown, contradictory and ineffective fields among them. If `calls` is not null,
// it receives the trace of a single job.
std::unique_ptr<Scenario> LoadScenario(const std::string& path,
                                       const std::vector<std::string>& sets,
                                       Diagnostics& diagnostics,
                                       std::shared_ptr<const Trace>* calls = nullptr);
// Reads and edits only the scenario's own file. Returns nullptr if nothing in it can be checked
// further.
std::unique_ptr<TextProtoFile> ReadScenarioText(const std::string& path,
                                                const std::vector<std::string>& sets,
                                                Diagnostics& diagnostics);

// Holds files that a scenario would name and that a program has in memory instead. No file is read
// if `fabric.file` is kFabricInMemory, or if `workload.trace` is kCallsInMemory.
struct ScenarioParts {
  std::shared_ptr<const FabricGraph> fabric{};
  std::shared_ptr<const Trace> calls{};
};
inline constexpr const char* kFabricInMemory = "<fabric in memory>";
inline constexpr const char* kCallsInMemory = "<calls in memory>";

// Does the rest, for a railyard.protos.Scenario that was read or made before.
std::unique_ptr<Scenario> LoadScenario(const TextProtoFile& file, Diagnostics& diagnostics,
                                       const ScenarioParts& parts = {});

// Returns a railyard.protos.Scenario without fields, whose findings have `name` as their place.
TextProtoFile EmptyScenario(const std::string& name);

}  // namespace railyard
