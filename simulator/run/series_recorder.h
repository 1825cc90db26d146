// SPDX-License-Identifier: GPL-2.0-only
// Reads the counters of links and queue pairs at intervals during a run and makes time series of
// them. It needs no additional counters and no events: the engine calls it between two events. The
// intervals adapt to the rate of events, so that it takes a small part of a run's time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analysis/result/time_series.h"
#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/replay/engine/replay_engine.h"

namespace railyard {

class SeriesRecorder {
 public:
  // The references are not used after Stop() or Finish(), one of which must be called before the
  // engine runs again without this object. The engine may be destroyed first.
  SeriesRecorder(FabricSimulatorImpl& engine, const FabricNetwork& network, ReplayEngine& replay,
                 size_t link_count);
  SeriesRecorder(const SeriesRecorder&) = delete;
  SeriesRecorder& operator=(const SeriesRecorder&) = delete;

  // Begins the series. Must be called before the replay starts.
  void Start();
  // Ends the recording without a result. A forked child calls it, because its series is not used.
  void Stop();
  // Calls `count`, which counts what was replayed from `from_ps` to `until_ps` (CountReplayed), and
  // adds it to the bins of that time.
  void CountSpan(int64_t from_ps, int64_t until_ps, const std::function<void()>& count);
  // Returns the series so far, up to the last look. The caller may borrow it until the run
  // continues.
  TimeSeries& SoFar() { return series_; }
  // Ends the series at `end_ps`, when the run has ended, and returns it.
  TimeSeries Finish(int64_t end_ps);

 private:
  struct LinkSeen {
    uint64_t wire_bytes = 0;
    uint64_t payload_bytes = 0;
    uint64_t packets = 0;
    uint64_t dropped_packets = 0;
    int64_t paused_ps = 0;
  };
  struct NetworkSeen {
    uint64_t ecn_marked = 0;
    StackCounters stack;
  };

  // Adds the bin that has ended to the series. Returns the end of the next.
  int64_t OnBinEnd(int64_t next_event_ps);
  // Adds the counts since the last call, from `from_ps` on.
  void AddChanges(int64_t from_ps, int64_t until_ps);
  void AddQueues(int64_t time_ps);
  void AddLimits(NetworkBin& network);
  // Doubles the width of the bins if the looks have cost more than their share of the run's time.
  void KeepToShare();

  FabricSimulatorImpl& engine_;
  const FabricNetwork& network_;
  ReplayEngine& replay_;
  TimeSeries series_;
  bool is_running_ = false;
  int64_t seen_until_ps_ = 0;     // that nothing happened before, or that changes are added
  int64_t changes_until_ps_ = 0;  // that changes are added
  std::vector<LinkSeen> links_;
  NetworkSeen network_seen_;
  LinkRows rows_;       // of the current call
  LinkRows pauses_;     // likewise, of pauses
  uint64_t looks_ = 0;  // number of links and queue pairs read so far
};

}  // namespace railyard
