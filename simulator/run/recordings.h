// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "analysis/result/run_result.h"
#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/replay/engine/replay_engine.h"
#include "simulator/run/packet_capture.h"
#include "simulator/run/run_options.h"
#include "simulator/run/series_recorder.h"
#include "simulator/run/trace_recorder.h"
#include "simulator/run/transfer_sampler.h"
#include "simulator/scenario/schema/scenario.h"
#include "workloads/job/job.h"

namespace railyard {

// Makes the requested recordings of a run: time series and a sample of transfers, a timeline,
// packets.
class Recordings {
 public:
  // Starts the recordings, before the replay starts. All references except `options` must outlive
  // this.
  Recordings(const RunOptions& options, const Scenario& scenario, const Job& job,
             FabricSimulatorImpl& engine, FabricNetwork& network, ReplayEngine& replay);

  // Ends all recording in a forked child, and leaves the files to the parent.
  void LeaveToParent();
  // Lends `result` its recorded parts so far, while the run is in progress; they are not copied
  // because a series is large. ReturnSoFar() must be called before the run continues.
  void LendSoFar(RunResult& result);
  void ReturnSoFar(RunResult& result);
  // Completes the files, and the recorded parts of `result`, when the run has ended at `end_ps`.
  void Finish(int64_t end_ps, RunResult& result);

 private:
  std::unique_ptr<SeriesRecorder> series_;
  std::unique_ptr<TransferSampler> transfers_;
  std::unique_ptr<TraceRecorder> trace_;
  std::vector<std::unique_ptr<PacketCapture>> captures_;
};

}  // namespace railyard
