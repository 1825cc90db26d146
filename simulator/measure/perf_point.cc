// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/perf_point.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/files/output_file.h"
#include "simulator/processes/child_process.h"
#include "simulator/processes/temporary_directory.h"
#include "simulator/run/run_scenario.h"
#include "simulator/scenario/load/scenario_loader.h"
#include "workloads/collectives/collective_sizes.h"

namespace railyard {

namespace {

struct CollectiveRow {
  std::string_view name;
  std::string_view program_kind;  // railyard.protos.ProgramCollective.Kind
  CollectiveKind kind = CollectiveKind::kAllReduce;
};
constexpr std::array<CollectiveRow, kPerfCollectiveCount> kCollectives = {{
    {"all_reduce", "ALL_REDUCE", CollectiveKind::kAllReduce},
    {"all_gather", "ALL_GATHER", CollectiveKind::kAllGather},
    {"reduce_scatter", "REDUCE_SCATTER", CollectiveKind::kReduceScatter},
    {"broadcast", "BROADCAST", CollectiveKind::kBroadcast},
    {"reduce", "REDUCE", CollectiveKind::kReduce},
    {"alltoall", "ALL_TO_ALL", CollectiveKind::kAllToAll},
    {"gather", "GATHER", CollectiveKind::kGather},
    {"scatter", "SCATTER", CollectiveKind::kScatter},
    {"sendrecv", "SEND_RECV", CollectiveKind::kSend},
}};

const CollectiveRow& RowOf(PerfCollective collective) {
  return kCollectives[static_cast<size_t>(collective)];
}

std::string ScenarioText(const PerfPoint& point) {
  return fmt::format(
      "{}\nworkload {{ program {{ collectives {{ kind: {} bytes: \"{}B\"{} }} }} {} }}\n",
      point.scenario, RowOf(point.collective).program_kind, point.bytes,
      point.in_place ? " in_place: true" : "", point.workload);
}

// The option of the command line that a field of ScenarioText() comes from; the field where none
// is.
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

// Findings without the place in a file that no user wrote, and with options in place of its fields.
Diagnostics AsOptions(const Diagnostics& diagnostics, const std::string& path) {
  Diagnostics findings;
  for (Finding finding : diagnostics.findings()) {
    if (finding.where.file == path) {
      finding.where = {"railyard"};
      finding.field = OptionOf(finding.field);
    }
    if (finding.severity == Severity::kError) {
      findings.Error(finding.where, finding.field, finding.what);
    } else if (finding.severity == Severity::kNote) {
      findings.Note(finding.where, finding.field, finding.what);
    } else {
      findings.Warning(finding.where, finding.field, finding.what);
    }
  }
  return findings;
}

// Returns the text of a point that did not complete, as OutcomeOf() reads it.
std::string FailureText(PerfEnd end, std::string_view why) {
  return fmt::format("failed\n{}\n{}", static_cast<int>(end), why);
}

// In the child: runs the scenario, writes the outcome to `descriptor`, one field a line.
[[noreturn]] void RunInChild(const std::string& path, const std::vector<std::string>& sets,
                             int descriptor) {
  std::string text;
  try {
    Diagnostics diagnostics;
    const auto scenario = LoadScenario(path, sets, diagnostics);
    if (!scenario) {
      text = FailureText(PerfEnd::kInputWrong, AsOptions(diagnostics, path).ToString());
    } else {
      const RunResult result = RunScenario(*scenario, {.baseline = false});
      int64_t first_start_ps = INT64_MAX;
      int64_t last_end_ps = 0;
      for (const CollectiveResult& collective : result.collectives) {
        first_start_ps = std::min(first_start_ps, collective.first_start_ps);
        last_end_ps = std::max(last_end_ps, collective.last_end_ps);
      }
      text = result.status == RunStatus::kCompleted
                 ? fmt::format("done\n{}\n{}\n{}\n", last_end_ps - first_start_ps,
                               result.packet_hops, result.collectives.front().replayed)
                 : FailureText(result.status == RunStatus::kJobAborted ? PerfEnd::kJobAborted
                                                                       : PerfEnd::kStalled,
                               result.status_detail);
    }
  } catch (const std::exception& error) {
    text = FailureText(PerfEnd::kEnvironmentFailed, error.what());
  }
  for (size_t written = 0; written < text.size();) {
    const ssize_t count = write(descriptor, text.data() + written, text.size() - written);
    if (count < 0 && errno != EINTR) _exit(1);
    if (count > 0) written += static_cast<size_t>(count);
  }
  _exit(0);
}

// A child and the end of the pipe it writes to.
struct RunningPoint {
  size_t point = 0;
  int descriptor = -1;
  ChildProcess process{};

  RunningPoint() = default;
  RunningPoint(const RunningPoint&) = delete;
  RunningPoint& operator=(const RunningPoint&) = delete;
  ~RunningPoint() {
    if (descriptor >= 0) close(descriptor);
  }
};

std::unique_ptr<RunningPoint> StartPoint(const std::string& path,
                                         const std::vector<std::string>& sets, size_t point) {
  int ends[2];
  if (pipe(ends) != 0) {
    throw EnvironmentError(fmt::format("no pipe for a run: {}", std::strerror(errno)));
  }
  auto started = std::make_unique<RunningPoint>();
  started->point = point;
  started->descriptor = ends[0];
  if (started->process.Fork("a run")) {
    close(ends[0]);
    RunInChild(path, sets, ends[1]);
  }
  close(ends[1]);
  return started;
}

std::string ReadAll(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t count = read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(count));
  }
  return text;
}

PerfOutcome OutcomeOf(const std::string& text, int status) {
  PerfOutcome outcome;
  if (status != 0 || text.empty()) {
    outcome.end = PerfEnd::kEnvironmentFailed;
    outcome.error = status > 128 ? "the run was killed by " + SignalName(status - 128)
                                 : "the run ended without a result";
    return outcome;
  }
  std::array<char, 64> replayed{};
  int end = 0;
  int error_at = 0;
  if (std::sscanf(text.c_str(), "done\n%ld\n%lu\n%63s", &outcome.time_ps, &outcome.packet_hops,
                  replayed.data()) == 3) {
    outcome.replayed = replayed.data();
  } else if (std::sscanf(text.c_str(), "failed\n%d%n", &end, &error_at) == 1) {
    outcome.end = static_cast<PerfEnd>(end);
    outcome.error = text.substr(static_cast<size_t>(error_at) + 1);
  }
  return outcome;
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

uint32_t BlocksOf(PerfCollective collective, uint32_t ranks) {
  return IsSizedByBlocks(RowOf(collective).kind) ? ranks : 1;
}

bool CopiesWithinRank(PerfCollective collective) {
  return collective == PerfCollective::kAllToAll || collective == PerfCollective::kGather ||
         collective == PerfCollective::kScatter;
}

double BusbwFactorOf(PerfCollective collective, uint32_t ranks) {
  return BusbwFactor(RowOf(collective).kind, ranks);
}

std::unique_ptr<Scenario> LoadPoint(const PerfPoint& point, Diagnostics& diagnostics) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("point.textproto");
  WriteOutput(path, ScenarioText(point));
  Diagnostics of_file;
  auto scenario = LoadScenario(path, {}, of_file);
  diagnostics = AsOptions(of_file, path);
  return scenario;
}

std::unique_ptr<Scenario> LoadPoint(const PerfPoint& point, std::string& findings) {
  Diagnostics diagnostics;
  auto scenario = LoadPoint(point, diagnostics);
  if (!scenario) findings = diagnostics.ToString();
  return scenario;
}

std::string SetChoice(const std::string& algorithm, const std::string& protocol,
                      const std::string& version, const std::string& net, PerfPoint& point) {
  std::string assumed;
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kDemanded = {
      {{"pat", "PAT"}, {"direct", "DIRECT"}, {"halvingdoubling", "HALVING_DOUBLING"}}};
  std::string fields;
  const auto add = [&](std::string_view field, std::string value) {
    std::erase_if(value, [](char c) { return c == '"' || c == '\\' || c == '\n'; });
    if (!value.empty()) fields += fmt::format(" {}: \"{}\"", field, value);
  };
  std::string lower = algorithm;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto demanded = std::find_if(kDemanded.begin(), kDemanded.end(),
                                     [&](const auto& entry) { return entry.first == lower; });
  if (demanded != kDemanded.end()) {
    point.workload += fmt::format("algorithm: {} ", demanded->second);
  } else {
    add("ALGO", algorithm);
  }
  if (lower.starts_with("collnet")) {
    // Whoever asks for it has a plug-in, and switches that reduce: InfiniBand's.
    fields += " COLLNET_ENABLE: 1";
    if (point.scenario.find("network_flow_control") == std::string::npos) {
      point.scenario += "network { network_flow_control: CREDITS }\n";
      assumed = fmt::format(
          "--algo {}: the switches are taken to be InfiniBand's, with credits in place of pause "
          "frames (network_flow_control: CREDITS, COLLNET_ENABLE: 1)",
          algorithm);
    }
  }
  add("PROTO", protocol);
  add("version", version);
  add("NET", net);
  if (!fields.empty()) point.scenario += "nccl {" + fields + " }\n";
  return assumed;
}

std::vector<PerfOutcome> RunPoints(const std::vector<PerfPoint>& points,
                                   const std::function<void(size_t, const PerfOutcome&)>& done) {
  std::vector<PerfOutcome> outcomes(points.size());
  const TemporaryDirectory directory;
  std::vector<std::unique_ptr<RunningPoint>> running;
  const size_t at_once = std::max(1u, std::thread::hardware_concurrency());
  size_t next = 0;
  while (next < points.size() || !running.empty()) {
    while (next < points.size() && running.size() < at_once) {
      std::string path = points[next].file;
      if (path.empty()) {
        path = directory.File(fmt::format("point{}.textproto", next));
        WriteOutput(path, ScenarioText(points[next]));
      }
      running.push_back(StartPoint(path, points[next].sets, next));
      ++next;
    }
    std::vector<ChildProcess*> processes;
    for (const auto& entry : running) processes.push_back(&entry->process);
    const auto ended = ChildProcess::WaitForAny(processes);
    // The signal may have ended that run, too.
    if (!ended || NotedInterruption() != 0) throw Interrupted(TakeInterruption());
    const RunningPoint& at = *running[ended->index];
    PerfOutcome& outcome = outcomes[at.point];
    outcome = OutcomeOf(ReadAll(at.descriptor), ended->status);
    done(at.point, outcome);
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(ended->index));
  }
  return outcomes;
}

}  // namespace railyard
