// SPDX-License-Identifier: GPL-2.0-only
// Times one collective at one size in a run of its own, as `railyard run` would. Each point is a
// process, because a process simulates once.
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

// The collective that is timed. The size is nccl-tests': docs/scenario.md, `program`.
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
// Returns the name on nccl-tests' command line: "all_reduce", "alltoall", "sendrecv".
std::string_view PerfCollectiveName(PerfCollective collective);
std::vector<std::string> PerfCollectiveNames();
std::optional<PerfCollective> FindPerfCollective(std::string_view name);
// Returns nccl-tests' factor from algorithm to bus bandwidth (doc/PERFORMANCE.md of nccl-tests).
double BusbwFactorOf(PerfCollective collective, uint32_t ranks);
// Returns the number of equal blocks in the size: n if it is the total of a block for each rank,
// else 1.
uint32_t BlocksOf(PerfCollective collective, uint32_t ranks);

// Returns true if in place differs from out of place, because a rank copies its part for itself in
// the latter.
bool CopiesWithinRank(PerfCollective collective);

struct PerfPoint {
  PerfCollective collective = PerfCollective::kAllReduce;
  uint64_t bytes = 0;
  bool in_place = false;  // only where CopiesWithinRank
  // Blocks of a scenario in text form, all but the workload's program: `fabric`, `nccl`, `nic`, ….
  std::string scenario;
  std::string workload;  // beside the program: "algorithm: RING"
  // A scenario's file and edits of it, instead of all of the above. It is timed from the first
  // rank's start to the last one's end.
  std::string file = {};
  std::vector<std::string> sets = {};
};

// Returns a point's checked scenario, or nullptr with `findings`, one a line.
std::unique_ptr<Scenario> LoadPoint(const PerfPoint& point, std::string& findings);
// The same, with findings about the file "railyard" that name options ("size", "--algo") as fields.
std::unique_ptr<Scenario> LoadPoint(const PerfPoint& point, Diagnostics& diagnostics);

inline constexpr const char* kAlgorithmHelp =
    "As NCCL_ALGO, e.g. Ring (default: NCCL's choice); or Direct, HalvingDoubling, which NCCL does "
    "not have";
// Sets the point's algorithm, protocol, NCCL version and network as --algo, --proto, --nccl-version
// and --net state them; empty ones state nothing. NCCL's own names and lists go into the `nccl`
// block as ALGO, PROTO and NET; PAT by itself, and algorithms that NCCL does not have (Direct,
// HalvingDoubling), are forced. Quotes and characters that would end a text are removed. Returns
// the assumption that this makes about the fabric, for people; empty if there is none.
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

// Returns one outcome per point, in order, running as many processes at once as there are
// processors. `done` is called for each as it ends. Throws EnvironmentError if no process can be
// started.
std::vector<PerfOutcome> RunPoints(const std::vector<PerfPoint>& points,
                                   const std::function<void(size_t, const PerfOutcome&)>& done);

}  // namespace railyard
