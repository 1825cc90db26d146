// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/loss_recorder.h"

#include <optional>

namespace railyard {

void LossRecorder::Observe(FaultInjector& faults, const ReplayEngine& replay,
                           const FabricSimulatorImpl& engine) {
  faults_ = &faults;
  replay_ = &replay;
  engine_ = &engine;
}

void LossRecorder::OnPacketLost(ConnectionId id, const FlowLoss& loss) {
  const Connection& connection = replay_->executor().connection_table().connections()[id];
  const std::optional<FaultIndex> fault =
      faults_->FaultOfLoss(loss.reason, loss.link, connection.from_gpu, connection.to_gpu);
  if (!fault) {
    // Later retransmissions are not due to faults whose losses have been repaired.
    if (const auto hit = hits_.find(id); hit != hits_.end() && hit->second.is_recovered)
      hits_.erase(hit);
    return;
  }
  FaultLosses& losses = losses_[*fault];
  ++losses.packets;
  if (!loss.needs_repair) return;
  if (connection.collective != CollectiveIndex::kNone)
    losses.collectives.insert(connection.collective);
  losses.gpus.insert(connection.from_gpu);
  losses.gpus.insert(connection.to_gpu);
  if (replay_->executor().connection_table().IsClosed(id)) return;
  losses.unrecovered.insert(id);
  Hit& hit = hits_[id];
  if (hit.is_recovered) hit = {};
  hit.faults.insert(*fault);
}

void LossRecorder::OnPacketRepeated(ConnectionId id, uint32_t payload_bytes) {
  const auto it = hits_.find(id);
  if (it == hits_.end()) return;
  for (const FaultIndex fault : it->second.faults) {
    losses_[fault].retransmitted_bytes += payload_bytes;
  }
}

void LossRecorder::OnRetransmission(ConnectionId id) {
  const auto it = hits_.find(id);
  if (it == hits_.end() || it->second.is_recovered) return;
  for (const FaultIndex fault : it->second.faults) {
    FaultLosses& losses = losses_[fault];
    if (losses.first_retransmission_ps < 0) losses.first_retransmission_ps = engine_->NowPs();
  }
}

// Its lost packets are not sent again; the work is repeated when its part of the job restarts.
void LossRecorder::OnConnectionClosed(ConnectionId id) {
  hits_.erase(id);
  const Connection& connection = replay_->executor().connection_table().connections()[id];
  const PartIndex part = replay_->calls().PartOf(RankOn(connection.from_gpu));
  for (FaultLosses& losses : losses_) {
    if (losses.unrecovered.erase(id) > 0) losses.halted_parts.insert(part);
  }
}

void LossRecorder::OnPartRestarted(PartIndex part) {
  for (FaultLosses& losses : losses_) {
    if (losses.halted_parts.erase(part) > 0) losses.last_recovery_ps = engine_->NowPs();
  }
}

void LossRecorder::OnLossRecovered(ConnectionId id) {
  const auto it = hits_.find(id);
  if (it == hits_.end() || it->second.is_recovered) return;
  for (const FaultIndex fault : it->second.faults) {
    FaultLosses& losses = losses_[fault];
    losses.unrecovered.erase(id);
    losses.last_recovery_ps = engine_->NowPs();
  }
  it->second.is_recovered = true;
}

}  // namespace railyard
