// SPDX-License-Identifier: GPL-2.0-only
// One collective at one size, timed by a whole run of its own, as `railyard run` would. Many points
// are many processes, for a process simulates once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/scenario/schema/scenario.h"

namespace railyard {

// What is timed. The size is nccl-tests': docs/scenario.md, `program`.
enum class PerfCollective : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kGather,
  kScatter,
  kSendRecv,
};
inline constexpr int kPerfCollectiveCount = 9;
// As on nccl-tests' command line: "all_reduce", "alltoall", "sendrecv".
std::string_view PerfCollectiveName(PerfCollective collective);
std::vector<std::string> PerfCollectiveNames();
std::optional<PerfCollective> FindPerfCollective(std::string_view name);
// nccl-tests' factor from algorithm to bus bandwidth (doc/PERFORMANCE.md of nccl-tests).
double BusbwFactorOf(PerfCollective collective, uint32_t ranks);
// How many ranks share the size evenly: n where it is the total of a block for each; else 1.
uint32_t BlocksOf(PerfCollective collective, uint32_t ranks);

// Whether in place differs from out of place: what a rank has for itself is copied or not.
bool CopiesWithinRank(PerfCollective collective);

struct PerfPoint {
  PerfCollective collective = PerfCollective::kAllReduce;
  uint64_t bytes = 0;
  bool in_place = false;  // only where CopiesWithinRank
  // Blocks of a scenario in text form, all but the workload's program: `fabric`, `nccl`, `nic`, ….
  std::string scenario;
  std::string workload;  // beside the program: "algorithm: RING"
  // Instead of all above: a scenario's file, and edits of it. It is timed from the first rank's
  // start to the last one's end.
  std::string file = {};
  std::vector<std::string> sets = {};
};

// A point's scenario, checked; nullptr after findings, which are in `findings`, one a line.
std::unique_ptr<Scenario> LoadPoint(const PerfPoint& point, std::string& findings);
// The same; findings are about the file "railyard", and name options ("size", "--algo") as fields.
std::unique_ptr<Scenario> LoadPoint(const PerfPoint& point, Diagnostics& diagnostics);

inline constexpr const char* kAlgorithmHelp =
    "As NCCL_ALGO, e.g. Ring (default: NCCL's choice); or Direct, HalvingDoubling, which NCCL does "
    "not have";
// Has the point run as --algo, --proto, --nccl-version and --net state; empty ones state nothing.
// Lists and names of NCCL's go into the `nccl` block as ALGO, PROTO and NET; PAT by itself, and
// what NCCL does not have (Direct, HalvingDoubling), are demanded. Quotes and what would end a text
// in them are left out. Returns what that assumes of the fabric, for people; empty: nothing.
std::string SetChoice(const std::string& algorithm, const std::string& protocol,
                      const std::string& version, const std::string& net, PerfPoint& point);

enum class PerfEnd : uint8_t {
  kDone,
  kEnvironmentFailed,  // the process that ran it, too
  kInputWrong,
  kJobAborted,
  kStalled,
};
struct PerfOutcome {
  PerfEnd end = PerfEnd::kDone;
  std::string error;  // empty: the point ran; else the findings, or what became of the process
  int64_t time_ps = 0;
  uint64_t packet_hops = 0;
  std::string replayed;  // "RING/SIMPLE"
};

// One outcome for each point, in order; as many processes at once as there are processors.
// `done` is told of each as it ends. EnvironmentError where no process can be started.
std::vector<PerfOutcome> RunPoints(const std::vector<PerfPoint>& points,
                                   const std::function<void(size_t, const PerfOutcome&)>& done);

}  // namespace railyard
