// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/listings.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/platforms/platform.h"
#include "topologies/platforms/preset.h"
#include "traces/import/trace_readers.h"
#include "workloads/plans/model/model_presets.h"

namespace railyard {
namespace {

namespace fs = std::filesystem;

// The first sentence of the comment that a file begins with, without lines for programs.
std::string FirstSentence(const fs::path& path) {
  std::ifstream file(path);
  std::string text;
  for (std::string line; std::getline(file, line) && line.starts_with('#');) {
    if (line.starts_with("# SPDX") || line.starts_with("# expect:")) continue;
    text += (text.empty() ? "" : " ") + line.substr(std::min<size_t>(2, line.size()));
    const size_t end = text.find(". ");
    if (end != std::string::npos) return text.substr(0, end + 1);
  }
  return text;
}

fs::path ScenarioDirectory() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  const std::vector<fs::path> candidates = {
      program / "../share/railyard/scenarios",
      program / "../../../simulator/scenarios",  // from build/PRESET/bin
      "simulator/scenarios"};
  for (const fs::path& candidate : candidates) {
    if (fs::is_directory(candidate, error)) return fs::canonical(candidate);
  }
  throw EnvironmentError(
      fmt::format("the scenarios that ship are not where they are expected: {} or {}",
                  candidates[0].lexically_normal().string(), candidates[2].string()));
}

}  // namespace

std::vector<Listed> ListedPlatforms() {
  std::vector<Listed> listed;
  for (const Platform& platform : Platforms()) {
    listed.push_back({platform.name, platform.description});
  }
  return listed;
}

std::vector<Listed> ListedPresets() {
  std::vector<Listed> listed;
  for (const Preset& preset : Presets()) listed.push_back({preset.name, preset.description});
  return listed;
}

std::vector<Listed> ListedModels() {
  std::vector<Listed> listed;
  for (const ModelPreset& model : ModelPresets()) {
    listed.push_back({std::string(model.name), std::string(model.description)});
  }
  return listed;
}

std::vector<Listed> ListedScenarios() {
  const fs::path directory = ScenarioDirectory();
  std::error_code error;
  const fs::path here = fs::current_path(error);
  std::vector<Listed> listed;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.path().extension() != ".textproto") continue;
    const fs::path from_here = entry.path().lexically_relative(here);
    const bool is_below = !from_here.empty() && *from_here.begin() != "..";
    listed.push_back({(is_below ? from_here : entry.path()).string(), FirstSentence(entry.path())});
  }
  std::sort(listed.begin(), listed.end(),
            [](const Listed& a, const Listed& b) { return a.name < b.name; });
  return listed;
}

std::vector<Listed> ListedFormats() {
  std::vector<Listed> listed;
  for (const TraceReader& reader : TraceReaders()) {
    listed.push_back({reader.format, fmt::format("{}; read by import", reader.description)});
  }
  const std::vector<Listed> others = {
      {"trace", "a job's calls; written by import and synth, read by a scenario's trace"},
      {"topology",
       "protobuf text of devices and links; read wherever a fabric file is, written "
       "by topo show --text"},
      {"graphml", "read wherever a fabric file is, written by topo show --graphml"},
      {"graphviz", "DOT; read wherever a fabric file is, written by topo show --dot"},
      {"ns3-topology",
       "the topology.txt of ns-3's RDMA simulators; read wherever a fabric file "
       "is, written by topo show --ns3"},
      {"nccl-topology",
       "the XML of NCCL_TOPO_DUMP_FILE; read wherever a fabric file is, written "
       "by topo show --nccl"},
      {"platform",
       "protobuf text of a server, every number with its source; read wherever a "
       "platform's name is, written by fidelity --calibrate"},
      {"goal", "LogGOPSim's; written by schedule --goal"},
      {"nccl-tests",
       "what nccl-tests prints; read by fidelity --calibrate, its JSON written by "
       "perf --json"}};
  listed.insert(listed.end(), others.begin(), others.end());
  return listed;
}

void PrintListing(const std::vector<Listed>& listed) {
  size_t width = 0;
  for (const Listed& entry : listed) width = std::max(width, entry.name.size());
  for (const Listed& entry : listed) {
    fmt::print("{:<{}}  {}\n", entry.name, width, entry.description);
  }
}

}  // namespace railyard
