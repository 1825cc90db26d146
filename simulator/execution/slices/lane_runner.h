// SPDX-License-Identifier: GPL-2.0-only
// Runs the programs of channels. A lane executes the steps of its schedule slice by slice. A slice
// starts when its data has arrived, the slot to send it into is free, and the CTA has finished the
// slice before.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/lanes/cta_clock.h"
#include "simulator/execution/lanes/lane_observer.h"
#include "simulator/execution/lanes/lane_table.h"
#include "simulator/execution/lanes/lane_wakes.h"
#include "simulator/execution/paths/path_tracer.h"
#include "simulator/execution/slices/lane_claims.h"
#include "simulator/execution/slices/slice_messages.h"
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
    // Owns the state that the events change, if there is a replay cache.
    const StateOwner* state = nullptr;
  };
  // Registers the events of lanes with the engine.
  explicit LaneRunner(const Parts& parts);
  LaneRunner(const LaneRunner&) = delete;
  LaneRunner& operator=(const LaneRunner&) = delete;

  void KeepPaths(PathTracer& paths) { paths_ = &paths; }

  // Starts a program now, on every channel in which its rank takes part. Returns the number of
  // channels.
  uint32_t Start(const RankProgram& program);
  // Advances all lanes that were woken. An event that wakes lanes must call it before it ends.
  // Calls may nest.
  void RunWoken();
  // Continues the lanes of a GPU that stood still. Precondition: CtaClock has the GPU's new speed.
  void ResumeGpu(GpuIndex gpu);
  // Drops lanes that were ended from the list of lanes waiting for a GPU that stands still.
  void ForgetEnded();

  // --- Callbacks of transports -------------------------------------------------------------------
  // Called when the sender's oldest message leaves its GPU, at `left_ps`.
  void OnInjected(ConnectionId connection, int64_t left_ps);
  // Called when the receiver has loaded a message.
  void OnLoaded(ConnectionId connection);
  // Called when the switch's sum has arrived.
  void OnSwitchSum(ConnectionId connection);

 private:
  static void HandleChannel(void* self, uint32_t lane);
  // Starts the channel's current batch, or ends the channel after its last.
  void StartBatch(ChannelIndex channel);
  void FinishLane(LaneIndex lane);
  // Runs all slices of the lane that can start now.
  void Advance(LaneIndex lane);
  // Begins the current slice, which may start at `start_ps`. Returns false if the lane must still
  // wait for a part of the slice.
  bool BeginSlice(Lane& lane, int64_t start_ps);
  bool HasRounds(const Lane& lane) const;
  // Returns whether the current step belongs to a round that has begun.
  bool ContinuesRound(const Lane& lane) const;
  // Returns how long the CTA takes for the current slice if it starts at `start_ps`, at the GPU's
  // own speed.
  int64_t SlicePs(const Lane& lane, int64_t start_ps);
  // Returns when the current slice may start, or kNeverPs if something it needs has not happened
  // yet.
  int64_t EarliestStartPs(const Lane& lane);
  int64_t ReceivablePs(const Lane& lane, ConnectionId connection);
  int64_t SendablePs(const Lane& lane, ConnectionId connection);
  // Converts a duration at the own speed of the lane's GPU to one at its current speed.
  int64_t AtSpeedPs(const Lane& lane, int64_t time_ps) const {
    if (parts_.clock.AllAtOwnSpeed()) return time_ps;
    return parts_.clock.AtSpeedOfPs(parts_.lanes.GpuOf(parts_.lanes.IndexOf(lane)), time_ps);
  }
  // Returns whether the lane's GPU stands still. The lane is then woken when the GPU continues.
  bool StandsStill(LaneIndex lane);
  struct SliceTimes {
    int64_t start_ps = 0;
    int64_t done_ps = 0;
    int64_t own_ps = 0;  // of moving it, at the GPU's own speed
  };
  // Passes the current slice to the tracer, before its messages are taken and sent.
  void Trace(const Lane& lane, const SliceTimes& times);

  Parts parts_;
  std::vector<LaneIndex> still_lanes_;  // of GPUs that stand still
  PathTracer* paths_ = nullptr;         // null: paths are not kept
  bool is_running_ = false;
};

}  // namespace railyard
