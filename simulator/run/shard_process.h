// SPDX-License-Identifier: GPL-2.0-only
// Simulates one shard of a divided run in a process: its servers with the calls of their ranks, and
// its switches.
//
// Simulated time passes in windows. A window begins with the first event of any shard and is as
// long as the lookahead, so no event in it affects another shard within it. The run ends with the
// event that ends the last call of all. Each shard stops at the end of its last call, and continues
// when it is known whether that was the last of all; shards without calls left run each window
// after the others. Therefore no shard runs past the end.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/processes/handover.h"
#include "simulator/replay/engine/replay_engine.h"
#include "simulator/shards/shard_map.h"
#include "simulator/shards/window_exchange.h"

namespace railyard {

// Names the parts that simulate a run, prepared by ReplayEngine::PrepareShards().
struct PreparedRun {
  const FabricGraph& graph;
  FabricSimulatorImpl& engine;
  FabricNetwork& network;
  ReplayEngine& replay;
};

// Describes the outcome of a shard at the end of the run.
struct ShardOutcome {
  std::string obstacle;  // why it needs the rest of the network; empty if it does not
  int64_t end_ps = 0;
  uint64_t events = 0;  // those that an undivided run would have had too
  uint64_t windows = 0;
  uint64_t serial_events = 0;  // sum over windows of the busiest shard's events
  double waiting_seconds = 0;  // wall-clock time, for other shards
  uint64_t crossings = 0;      // to other shards
  double cpu_seconds = 0;
  uint64_t peak_rss_bytes = 0;
  NetworkCounters network;
  StackCounters stack;
  uint64_t in_flight_bytes = 0;
  std::vector<LinkTotals> links;
  std::vector<StreamRunner::Span> calls;
  std::vector<ConnectionTable::TakenBytes> taken;

  void Put(Handover& to) const;
  // Returns false if the process ended before it had put all values.
  bool Take(Handover& from);
};

class ShardProcess {
 public:
  ShardProcess(const PreparedRun& run, const ShardMap& map, WindowExchange& exchange,
               uint32_t shard);
  ShardProcess(const ShardProcess&) = delete;
  ShardProcess& operator=(const ShardProcess&) = delete;

  // Simulates the shard to the end of the run.
  ShardOutcome Run();

 private:
  bool IsOwn(GlobalRank rank) const;
  void Start();
  // Runs the events before `end`, or up to the end of the shard's last call.
  void RunBefore(const EventPlace& end);
  // Notes in the outcome why the shard needs the rest of the network, if it does.
  void NoteObstacles();
  const std::vector<ShardReport>& Meet();
  // Runs window by window. Returns the end of the run; an empty place if it gives up.
  EventPlace RunWindows();
  // Returns the number of its events so far that an undivided run would have had too.
  uint64_t EventsOfShard() const;
  ShardOutcome Outcome();

  PreparedRun run_;
  const ShardMap& map_;
  WindowExchange::Member member_;
  ShardOutcome outcome_;
  uint64_t calls_left_ = 0;
  ShardReport report_;
  int64_t next_event_ps_ = 0;
  int64_t reached_ps_ = 0;        // all earlier events have run
  uint64_t reported_events_ = 0;  // by the end of the last round
  std::vector<Crossing> crossings_;
};

}  // namespace railyard
