// SPDX-License-Identifier: GPL-2.0-only
// Times one collective at one size in a separate run, as `railyard run` would.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "railyard/scenario_builder.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/measure/timed_run.h"
#include "simulator/scenario/schema/scenario.h"
#include "traces/trace/trace.h"

namespace railyard {

// Names the collective that is timed. The size is nccl-tests': docs/scenario.md, `program`.
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
std::optional<PerfCollective> FindPerfCollective(CollectiveKind kind);
CollectiveKind KindOf(PerfCollective collective);  // kSend for kSendRecv
// Returns the number of equal blocks in the size: n if it is the total of a block for each rank,
// else 1.
uint32_t BlocksOf(PerfCollective collective, uint32_t ranks);

inline constexpr uint64_t kPerfElementBytes = 4;  // float, nccl-tests' default
// Returns the largest size up to `bytes` that consists of equal blocks. Those of several ranks are
// multiples of 16 B where there is room, as with nccl-tests (all_gather.cu and others:
// (count / nranks) & -(16 / wordSize(type))).
uint64_t WholeBlocks(PerfCollective collective, uint64_t bytes, uint32_t ranks);

struct PerfPoint {
  PerfCollective collective = PerfCollective::kAllReduce;
  uint64_t bytes = 0;
  bool in_place = false;  // only where CopiesWithinRank(KindOf(collective))
  // Holds all but the collective: the fabric, NCCL's settings, models, a forced algorithm.
  ScenarioBuilder scenario = CommandScenario();

  // Returns the scenario that options of the command line make; findings about it begin with
  // "railyard:".
  static ScenarioBuilder CommandScenario() { return ScenarioBuilder("railyard"); }
};

// Returns a point's checked scenario, or nullptr with findings that name options ("size", "--algo")
// as fields.
std::shared_ptr<const Scenario> LoadPoint(const PerfPoint& point, Diagnostics& diagnostics);

inline constexpr const char* kAlgorithmHelp =
    "Algorithm as in NCCL_ALGO, e.g. Ring (default: NCCL's choice); or Direct, HalvingDoubling, "
    "which NCCL does "
    "not have";
// Sets the point's algorithm, protocol, NCCL version and network as --algo, --proto, --nccl-version
// and --net state them; empty ones state nothing. NCCL's own names and lists go into the `nccl`
// block as ALGO, PROTO and NET; PAT by itself, and algorithms that NCCL does not have (Direct,
// HalvingDoubling), are forced. Returns the assumption that this makes about the fabric, as a text
// for people; empty if there is none.
std::string SetChoice(const std::string& algorithm, const std::string& protocol,
                      const std::string& version, const std::string& net, PerfPoint& point);

// Runs each point in a separate process (RunTimed).
std::vector<TimedRun> RunPoints(const std::vector<PerfPoint>& points,
                                const std::function<void(size_t, const TimedRun&)>& done);

}  // namespace railyard
