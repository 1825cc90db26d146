// SPDX-License-Identifier: GPL-2.0-only
// Runs the programs of channels: a lane takes its schedule's steps slice by slice, each when its
// data has arrived, the slot to send it into is free, and the CTA is done with the one before.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/lanes/cta_clock.h"
#include "simulator/execution/lanes/lane_claims.h"
#include "simulator/execution/lanes/lane_observer.h"
#include "simulator/execution/lanes/lane_table.h"
#include "simulator/execution/lanes/lane_wakes.h"
#include "simulator/execution/lanes/slice_messages.h"
#include "simulator/execution/paths/path_tracer.h"
#include "simulator/transport/load_store/load_store_transport.h"

namespace railyard {

class LaneRunner {
 public:
  // All references must outlive this.
  struct Parts {
    FabricSimulatorImpl& engine;
    ConnectionTable& table;
    LaneTable& lanes;
    CtaClock& clock;
    LaneWakes& wakes;
    LaneClaims& claims;
    SliceMessages& messages;
    LoadStoreTransport& load_store;
    LaneObserver& observer;
  };
  // Registers the events of lanes with the engine.
  explicit LaneRunner(const Parts& parts);
  LaneRunner(const LaneRunner&) = delete;
  LaneRunner& operator=(const LaneRunner&) = delete;

  void KeepPaths(PathTracer& paths) { paths_ = &paths; }

  // Starts a program, now, on every channel that its rank has a part in. Returns their number.
  uint32_t Start(const RankProgram& program);
  // Looks at all lanes that were woken. Whoever wakes lanes in an event calls it before the event
  // ends; calls nest.
  void RunWoken();
  // Lanes of GPUs that stood still go on. Precondition: the clock has the GPU's speed.
  void ResumeGpu(uint32_t gpu);
  // Lanes that were ended are no longer waited for.
  void ForgetEnded();

  // --- What transports say of a lane's messages --------------------------------------------------
  // The lane's oldest message leaves the sender's GPU at `left_ps`; it has loaded one; the switch's
  // sum is there.
  void OnInjected(ConnectionId connection, int64_t left_ps);
  void OnLoaded(ConnectionId connection);
  void OnSwitchSum(ConnectionId connection);

 private:
  static void HandleChannel(void* self, uint32_t lane);
  // Starts the channel's batch at hand, or ends the channel after its last.
  void StartBatch(ChannelIndex channel);
  void FinishLane(LaneIndex lane);
  // Runs all slices of the lane that can start now.
  void Advance(LaneIndex lane);
  // Begins the slice at hand, which may start at `start_ps`; false: the lane waits for a part of
  // it.
  bool BeginSlice(Lane& lane, int64_t start_ps);
  // When the slice at hand may start; kNeverPs: something it needs has not happened.
  int64_t EarliestStartPs(const Lane& lane);
  int64_t ReceivablePs(const Lane& lane, ConnectionId connection);
  int64_t SendablePs(const Lane& lane, ConnectionId connection);
  // What takes the lane's GPU so long at its own speed.
  int64_t AtSpeedPs(const Lane& lane, int64_t time_ps) const {
    if (parts_.clock.AllAtOwnSpeed()) return time_ps;
    return parts_.clock.AtSpeedOfPs(parts_.lanes.GpuOf(parts_.lanes.IndexOf(lane)), time_ps);
  }
  // The GPU stands still: the lane is woken when it goes on.
  bool StandsStill(LaneIndex lane);
  // Tells the tracer of the slice at hand, before its messages are taken and sent.
  void Trace(const Lane& lane, int64_t start_ps, int64_t done_ps);

  Parts parts_;
  std::vector<LaneIndex> still_lanes_;  // of GPUs that stand still
  PathTracer* paths_ = nullptr;         // where paths are kept
  bool is_running_ = false;
};

}  // namespace railyard
