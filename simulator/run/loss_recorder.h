// SPDX-License-Identifier: GPL-2.0-only
// Records the effect of each fault: the ranks that lost packets to it, the time of the first
// retransmission, and the time at which the last loss was repaired.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/faults/fault_injector.h"
#include "simulator/replay/engine/replay_engine.h"
#include "simulator/units/job_ids.h"

namespace railyard {

class LossRecorder final : public ReplayObserver {
 public:
  struct FaultLosses {
    uint64_t packets = 0;
    std::set<CollectiveIndex> collectives;
    std::set<GpuIndex> gpus;
    std::set<ConnectionId> unrecovered;
    // The parts of the job that were halted while some of their connections had lost packets to it;
    // these losses are repaired when the part restarts.
    std::set<PartIndex> halted_parts;
    int64_t first_retransmission_ps = -1;
    int64_t last_recovery_ps = -1;
    // The payload retransmitted by connections that have lost packets to it since they were last in
    // order. A connection that has lost packets to several faults counts for each of them.
    uint64_t retransmitted_bytes = 0;
  };

  explicit LossRecorder(size_t fault_count) : losses_(fault_count) {}
  // Sets the function that receives errors and decides how the job continues (ReplayObserver).
  using OnError = std::function<void(GlobalRank rank, const std::string& why)>;
  void SetOnRankError(OnError on_rank_error) { on_rank_error_ = std::move(on_rank_error); }
  // Must be called before the first fault.
  void Observe(FaultInjector& faults, const ReplayEngine& replay,
               const FabricSimulatorImpl& engine);

  const std::vector<FaultLosses>& losses() const { return losses_; }

  void OnPacketLost(ConnectionId connection, const FlowLoss& loss) override;
  void OnPacketRepeated(ConnectionId connection, uint32_t payload_bytes) override;
  void OnRetransmission(ConnectionId connection) override;
  void OnLossRecovered(ConnectionId connection) override;
  void OnRankError(GlobalRank rank, const std::string& why) override { on_rank_error_(rank, why); }
  void OnConnectionClosed(ConnectionId connection) override;
  void OnPartRestarted(PartIndex part) override;
  // Passes the progress on to faults that are anchored to it.
  void OnCollectiveProgress(CollectiveIndex collective, double progress) override {
    faults_->OnCollectiveProgress(collective, progress);
  }

 private:
  OnError on_rank_error_;
  FaultInjector* faults_ = nullptr;
  const ReplayEngine* replay_ = nullptr;
  const FabricSimulatorImpl* engine_ = nullptr;
  std::vector<FaultLosses> losses_;
  struct Hit {
    std::set<FaultIndex> faults;
    // Retransmissions of packets that were in flight meanwhile may continue.
    bool is_recovered = false;
  };
  std::unordered_map<ConnectionId, Hit> hits_;
};

}  // namespace railyard
