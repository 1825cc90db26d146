// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/perf_point.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "workloads/collectives/collective_sizes.h"

namespace railyard {

namespace {

struct CollectiveRow {
  std::string_view name;
  scenario::Operation operation = scenario::Operation::kAllReduce;
  CollectiveKind kind = CollectiveKind::kAllReduce;
};
constexpr std::array<CollectiveRow, kPerfCollectiveCount> kCollectives = {{
    {"all_reduce", scenario::Operation::kAllReduce, CollectiveKind::kAllReduce},
    {"all_gather", scenario::Operation::kAllGather, CollectiveKind::kAllGather},
    {"reduce_scatter", scenario::Operation::kReduceScatter, CollectiveKind::kReduceScatter},
    {"broadcast", scenario::Operation::kBroadcast, CollectiveKind::kBroadcast},
    {"reduce", scenario::Operation::kReduce, CollectiveKind::kReduce},
    {"alltoall", scenario::Operation::kAllToAll, CollectiveKind::kAllToAll},
    {"gather", scenario::Operation::kGather, CollectiveKind::kGather},
    {"scatter", scenario::Operation::kScatter, CollectiveKind::kScatter},
    {"sendrecv", scenario::Operation::kSendRecv, CollectiveKind::kSend},
}};

const CollectiveRow& RowOf(PerfCollective collective) {
  return kCollectives[static_cast<size_t>(collective)];
}

// The option of the command line that a field of a point's scenario comes from; the field where
// none is.
std::string OptionOf(const std::string& field) {
  struct FieldOption {
    std::string_view prefix;
    std::string_view option;
  };
  static constexpr std::array<FieldOption, 9> kOptions = {{
      {"nccl.ALGO", "--algo"},
      {"nccl.COLLNET_ENABLE", "--algo"},
      {"nccl.PROTO", "--proto"},
      {"nccl.version", "--nccl-version"},
      {"nccl.NET", "--net"},
      {"workload.algorithm", "--algo"},
      {"workload.schedule", "--schedule"},
      {"workload.program.collectives[0].bytes", "size"},
      {"fabric", "--fabric"},
  }};
  const auto found = std::ranges::find_if(kOptions, [&](const FieldOption& entry) {
    return field.starts_with(entry.prefix) &&
           (field.size() == entry.prefix.size() || field[entry.prefix.size()] == '.');
  });
  return found == kOptions.end() ? field : std::string(found->option);
}

// Findings with options in place of fields that the command line has set.
void ReportAsOptions(const Diagnostics& findings, const std::string& scenario, Diagnostics& to) {
  for (const Finding& finding : findings.findings()) {
    const std::string field =
        finding.where.file == scenario ? OptionOf(finding.field) : finding.field;
    if (finding.severity == Severity::kError) {
      to.Error(finding.where, field, finding.what);
    } else if (finding.severity == Severity::kNote) {
      to.Note(finding.where, field, finding.what);
    } else {
      to.Warning(finding.where, field, finding.what);
    }
  }
}

}  // namespace

std::string_view PerfCollectiveName(PerfCollective collective) { return RowOf(collective).name; }

std::vector<std::string> PerfCollectiveNames() {
  std::vector<std::string> names;
  for (const CollectiveRow& row : kCollectives) names.emplace_back(row.name);
  return names;
}

std::optional<PerfCollective> FindPerfCollective(std::string_view name) {
  const auto at = std::find_if(kCollectives.begin(), kCollectives.end(),
                               [&](const CollectiveRow& row) { return row.name == name; });
  if (at == kCollectives.end()) return std::nullopt;
  return static_cast<PerfCollective>(at - kCollectives.begin());
}

std::optional<PerfCollective> FindPerfCollective(CollectiveKind kind) {
  const auto at = std::find_if(kCollectives.begin(), kCollectives.end(),
                               [&](const CollectiveRow& row) { return row.kind == kind; });
  if (at == kCollectives.end()) return std::nullopt;
  return static_cast<PerfCollective>(at - kCollectives.begin());
}

CollectiveKind KindOf(PerfCollective collective) { return RowOf(collective).kind; }

uint32_t BlocksOf(PerfCollective collective, uint32_t ranks) {
  return IsMadeOfBlocks(KindOf(collective)) ? ranks : 1;
}

uint64_t WholeBlocks(PerfCollective collective, uint64_t bytes, uint32_t ranks) {
  const uint32_t blocks = BlocksOf(collective, ranks);
  const uint64_t aligned = uint64_t{16} * blocks;
  const uint64_t grain = blocks > 1 && bytes >= aligned ? aligned : kPerfElementBytes * blocks;
  return bytes - bytes % grain;
}

std::shared_ptr<const Scenario> LoadPoint(const PerfPoint& point, Diagnostics& diagnostics) {
  ScenarioBuilder builder = point.scenario;
  scenario::Collective collective{.operation = RowOf(point.collective).operation,
                                  .size = {point.bytes}};
  if (point.in_place) collective.in_place = true;
  builder.Add(collective);
  Diagnostics findings;
  auto scenario = builder.Build(findings);
  ReportAsOptions(findings, "railyard", diagnostics);
  return scenario;
}

std::string SetChoice(const std::string& algorithm, const std::string& protocol,
                      const std::string& version, const std::string& net, PerfPoint& point) {
  std::string assumed;
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kDemanded = {
      {{"pat", "PAT"}, {"direct", "DIRECT"}, {"halvingdoubling", "HALVING_DOUBLING"}}};
  const auto set = [&](const char* field, const std::string& value) {
    if (!value.empty()) point.scenario.Set(field, value);
  };
  std::string lower = algorithm;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto demanded = std::find_if(kDemanded.begin(), kDemanded.end(),
                                     [&](const auto& entry) { return entry.first == lower; });
  if (demanded != kDemanded.end()) {
    point.scenario.Set("workload.algorithm", std::string(demanded->second));
  } else {
    set("nccl.ALGO", algorithm);
  }
  if (lower.starts_with("collnet")) {
    // CollNet needs a plug-in, and switches that reduce: InfiniBand's.
    point.scenario.Set("nccl.COLLNET_ENABLE", 1);
    if (!point.scenario.Has("network.network_flow_control")) {
      point.scenario.Set("network.network_flow_control", "CREDITS");
      assumed = fmt::format(
          "--algo {}: the switches are taken to be InfiniBand's, with credits in place of pause "
          "frames (network_flow_control: CREDITS, COLLNET_ENABLE: 1)",
          algorithm);
    }
  }
  set("nccl.PROTO", protocol);
  set("nccl.version", version);
  set("nccl.NET", net);
  return assumed;
}

std::vector<TimedRun> RunPoints(const std::vector<PerfPoint>& points,
                                const std::function<void(size_t, const TimedRun&)>& done) {
  std::vector<ScenarioMaker> makers;
  for (const PerfPoint& point : points) {
    makers.emplace_back([&point](Diagnostics& findings) { return LoadPoint(point, findings); });
  }
  return RunTimed(makers, done);
}

}  // namespace railyard
