// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/result/run_result.h"
#include "simulator/replay/episodes/replay_cache_mode.h"

namespace railyard {

// Describes the progress of a run.
struct RunProgress {
  struct Paired {
    std::string name;
    int64_t simulated_time_ps = 0;
    double share_done = 0;
  };
  int64_t simulated_time_ps = 0;
  double wall_seconds = 0;  // since the run began
  double share_done = 0;    // of the calls; running ones count by their steps
  uint64_t collectives = 0;
  uint64_t replayed = 0;  // of these, replayed from the cache
  uint64_t hops = 0;      // of data and control packets
  uint64_t rss_bytes = 0;
  std::vector<Paired> paired{};  // paired runs in other processes
};

struct ProgressOptions {
  std::function<void(const RunProgress&)> show{};  // null if progress is not reported
  std::chrono::milliseconds interval{0};           // 0 for reports upon SIGUSR1 only
};

// Says how a run saves its results so far, in case it is killed.
struct SavingOptions {
  // Receives the results so far, with the status kRunning, without paired runs and timelines, and
  // with time series up to their last complete bin. If it is null, nothing is saved. An exception
  // that it throws ends the run.
  std::function<void(const RunResult&)> save{};
  // The time from the start to the first save, and between saves. It is extended if saving would
  // otherwise take more than a fiftieth of the run's time.
  std::chrono::milliseconds interval{60'000};
};

// Describes a file to which the packets of a link are captured, with the headers that they would
// have.
struct LinkCapture {
  // A link between servers: "server1/nic3>leaf3" for one direction of a cable,
  // "server1/nic3--leaf3" for both.
  std::string name;
  std::string file;
  uint32_t snap_bytes = UINT16_MAX;  // of each packet
  uint64_t bytes_max = 512u << 20;   // of the file; packets beyond it are only counted
};

// Describes a file that keeps the outcome of a fault-free run, for other runs with the same
// fault-free run.
struct BaselineFile {
  std::string path{};  // empty for none
  // A digest of everything that determines the outcome, which the caller computes. An outcome with
  // another key, e.g. from another program, is ignored.
  std::string key{};
};

// Says how a scenario is run, and what is recorded besides its result.
struct RunOptions {
  // Pairs the run with a fault-free run, for stretch. That run is a child process that is forked at
  // the instant of the first fault, because until then the two runs are the same. Pairs each of
  // several jobs with a run of that job alone, for interference, in child processes that are forked
  // before the run.
  bool baseline = true;
  // The file from which the outcome of the fault-free run is read or, if it lacks it, to which it
  // is written.
  BaselineFile baseline_file{};
  ReplayCacheMode replay_cache = ReplayCacheMode::kOn;
  // The number of cores. A run that cannot be divided among several is simulated on one, and the
  // result says why.
  uint32_t threads = 1;
  bool series = false;  // fills RunResult::series and ::transfers, which takes a little time
  // The files of captured packets. If there are any, the replay cache is off, because replayed
  // packets cross no link.
  std::vector<LinkCapture> captures{};
  std::string perfetto_file{};  // file name of the Perfetto trace; empty for none
  // The estimate of a plan's job, as `railyard estimate` makes it; the result compares it with the
  // simulated breakdown of the same rank.
  std::optional<EstimateResult> estimate{};
  ProgressOptions progress{};
  SavingOptions saving{};
};

}  // namespace railyard
