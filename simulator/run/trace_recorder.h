// SPDX-License-Identifier: GPL-2.0-only
// Writes a Perfetto trace during a run. Ranks are processes, and their streams, channels and
// proxies are tracks; calls, slices and messages are slices on these, with arrows from the slices
// for which they waited. Links are counters and faults are instants, which are added at the end.
//
// The size of the file is limited. If a job has more calls than fit, every k-th collective is
// shown, with all its ranks. Slices and messages are shown by whole channels of collectives, spread
// over the run, until their share of the size is used. Omitted ones are counted, and a note of the
// result gives their numbers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/perfetto/perfetto_trace.h"
#include "analysis/result/run_result.h"
#include "simulator/execution/paths/path_tracer.h"
#include "simulator/execution/proxies/network_proxies.h"
#include "simulator/replay/engine/replay_engine.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/job/job.h"

namespace railyard {

class TraceRecorder {
 public:
  static constexpr uint64_t kCallBytesMax = 32u << 20;
  static constexpr uint64_t kSliceBytesMax = 24u << 20;

  // All references must outlive this.
  TraceRecorder(const std::string& path, const FabricGraph& graph, const Job& job,
                ReplayEngine& replay);
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  // Begins the recording. Must be called before the replay starts. Precondition: the replay keeps
  // paths.
  void Start();
  // Ends the recording. A forked child calls it, because the file is the parent's.
  void Stop() { is_running_ = false; }
  // Completes the file after the run. All of `result` except its notes must be complete; a note
  // about omitted slices is added to them.
  void Finish(RunResult& result);

 private:
  using Track = PerfettoTrace::Track;

  // Says which channels of a collective are shown, one bit each.
  struct Shown {
    uint64_t decided = 0;
    uint64_t shown = 0;
  };
  // Holds the messages of a connection while a shown collective uses it.
  struct Messages {
    CollectiveIndex sent_collective = CollectiveIndex::kNone;
    CollectiveIndex received_collective = CollectiveIndex::kNone;
    uint64_t sent = 0;
    uint64_t received = 0;
    std::array<Track, kConnectionSlots> tracks{};
    std::array<int64_t, kConnectionSlots> queued_ps{};
    std::array<int64_t, kConnectionSlots> posted_ps{};
  };

  void OnCallEnd(const Call& call, int64_t begin_ps, int64_t end_ps);
  void OnSlice(const PathTracer::Slice& slice);
  void OnMessage(MessageEvent event, ConnectionId connection, uint32_t slot);
  bool Shows(CollectiveIndex collective, uint32_t channel);
  bool ShowsCallsOf(CollectiveIndex collective) const { return collective % call_step_ == 0; }
  PerfettoTrace::Arguments ArgumentsOf(CollectiveIndex collective, int64_t begin_ps) const;
  PerfettoFlows FlowsOf(const PathTracer::Slice& slice);

  Track ProcessOf(GlobalRank rank);
  Track StreamTrack(const Call& call);
  Track ChannelTrack(const PathTracer::Slice& slice);
  Track MessageTrack(Messages& messages, ConnectionId connection, uint32_t slot);

  void AddUnfinishedCalls();
  void AddFaults(const RunResult& result);
  void AddCounters(const RunResult& result);
  void NoteWhatIsLeftOut(RunResult& result) const;

  const FabricGraph& graph_;
  const Job& job_;
  ReplayEngine& replay_;
  PerfettoTrace trace_;
  bool is_running_ = false;
  uint32_t call_step_ = 1;
  uint64_t calls_ = 0;  // seen; the next counts those shown
  uint64_t calls_shown_ = 0;
  uint64_t slices_ = 0;
  uint64_t slices_shown_ = 0;
  uint64_t slice_bytes_ = 0;
  std::vector<Track> processes_;                              // by rank; 0 if none yet
  std::map<std::pair<GlobalRank, uint32_t>, Track> streams_;  // by rank, stream
  std::map<std::tuple<GpuIndex, CommunicatorIndex, uint32_t, uint32_t>, Track>
      channels_;  // the numbers are a channel's and a lane's
  std::unordered_map<CollectiveIndex, Shown> shown_;
  std::unordered_map<ConnectionId, Messages> messages_;
};

}  // namespace railyard
