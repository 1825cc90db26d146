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
#include "topologies/graph/graph_ids.h"

namespace railyard {

// The progress of a run.
struct RunProgress {
  struct Paired {
    std::string name;
    int64_t simulated_time_ps = 0;
    double share_done = 0;
  };
  int64_t simulated_time_ps = 0;
  double wall_seconds = 0;  // since the monitor was made
  double share_done = 0;    // of the calls, and within those that run of their steps
  uint64_t collectives = 0;
  uint64_t replayed = 0;  // of these, from the replay cache
  uint64_t hops = 0;      // of data and control packets
  uint64_t rss_bytes = 0;
  std::vector<Paired> paired{};  // runs of other processes that it will be paired with
};

struct ProgressOptions {
  std::function<void(const RunProgress&)> show{};  // null: progress is not reported
  std::chrono::milliseconds interval{0};           // 0: only for SIGUSR1
};

// A run saves its results so far while it goes on, for the case that it is killed.
struct SavingOptions {
  // Gets the results so far, whose status is kRunning: without paired runs and timelines, and with
  // time series up to their last complete bin. Null: nothing is saved. What it throws ends the run.
  std::function<void(const RunResult&)> save{};
  // Between the start and the first, and between two. Saving takes at most a fiftieth of a run's
  // time: the interval is longer where it would take more.
  std::chrono::milliseconds interval{60'000};
};

// A file to which packets are captured (packet_capture.h).
struct LinkCapture {
  std::string name;           // of the link or cable, as the user stated it
  std::vector<LinkId> links;  // which it stands for
  std::string file;
  uint32_t snap_bytes = UINT16_MAX;  // of each packet
  uint64_t bytes_max = 512u << 20;   // of the file; packets beyond it are only counted
};

// A file that keeps the outcome of a fault-free run, for other runs that have the same one.
struct BaselineFile {
  std::string path{};  // empty: none
  // Everything that determines the outcome, as a digest. What the file holds under another key, for
  // instance of another program, does not count.
  std::string key{};
};

struct RunOptions {
  // Pairs the run with a fault-free one, for stretch. That is a child process, forked at the
  // instant of the first fault, because up to there the two runs are the same. Pairs each of
  // several jobs with a run of it alone, for interference, in child processes forked before the
  // run.
  bool baseline = true;
  // The file from which the outcome of the fault-free run is read, or, if it does not have it, to
  // which it is written.
  BaselineFile baseline_file{};
  ReplayCacheMode replay_cache = ReplayCacheMode::kOn;
  bool partition_episodes = true;  // ReplayRules
  // The cores to simulate on. A run that cannot be divided among several is simulated on one, and
  // the result says why.
  uint32_t threads = 1;
  bool is_divided = false;  // among processes: it has nothing to replay
  bool series = false;      // fills RunResult::series and ::transfers, which takes a little time
  // Files of captured packets. If there are any, the replay cache is off: what it replays crosses
  // no link.
  std::vector<LinkCapture> captures{};
  std::string perfetto_file{};  // where a Perfetto trace is written; empty: none
  // The estimate of a plan's job; the result compares it with the simulated breakdown of the same
  // rank.
  std::optional<EstimateResult> estimate{};
  ProgressOptions progress{};
  SavingOptions saving{};
};

}  // namespace railyard
