// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/recordings.h"

#include <utility>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/transport/contract/network_stack.h"
#include "simulator/transport/nic/queue_transport.h"

namespace railyard {

Recordings::Recordings(const RunOptions& options, const Scenario& scenario, const Job& job,
                       FabricSimulatorImpl& engine, FabricNetwork& network, ReplayEngine& replay) {
  if (options.series) {
    series_ =
        std::make_unique<SeriesRecorder>(engine, network, replay, scenario.fabric.link_count());
    series_->Start();
    transfers_ = std::make_unique<TransferSampler>(replay);
    transfers_->Start();
  }
  if (!options.perfetto_file.empty()) {
    trace_ = std::make_unique<TraceRecorder>(options.perfetto_file, scenario.fabric, job, replay);
    trace_->Start();
  }
  if (options.captures.empty()) return;
  QueueTransport* const queue_pairs = replay.executor().network_stack().queue_pairs();
  if (queue_pairs == nullptr) {
    throw EnvironmentError("nothing can be captured: the transport has no queue pairs");
  }
  queue_pairs->KeepMessages();
  for (const LinkCapture& capture : options.captures) {
    captures_.push_back(std::make_unique<PacketCapture>(capture, scenario.fabric, network,
                                                        *queue_pairs, scenario.stack.nic));
  }
}

void Recordings::LeaveToParent() {
  if (series_) series_->Stop();
  if (transfers_) transfers_->Stop();
  if (trace_) trace_->Stop();
  // Destroying these would remove the parent's unfinished files, and hooks still refer to them.
  static_cast<void>(trace_.release());
  for (auto& capture : captures_) {
    capture->Stop();
    static_cast<void>(capture.release());
  }
  captures_.clear();
}

void Recordings::LendSoFar(RunResult& result) {
  if (series_) std::swap(result.series, series_->SoFar());
  if (transfers_) transfers_->AddTo(result);
}

void Recordings::ReturnSoFar(RunResult& result) {
  if (series_) std::swap(result.series, series_->SoFar());
}

void Recordings::Finish(int64_t end_ps, RunResult& result) {
  if (series_) result.series = series_->Finish(end_ps);
  if (transfers_) transfers_->AddTo(result);
  if (trace_) trace_->Finish(result);
  if (captures_.empty()) return;
  result.notes.emplace_back("The replay cache was off, so that all packets could be captured.");
  for (const auto& capture : captures_) capture->Finish(result);
}

}  // namespace railyard
