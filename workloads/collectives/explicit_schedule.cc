// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/explicit_schedule.h"

#include <algorithm>
#include <set>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"

namespace railyard {

namespace {

constexpr uint64_t kChunkGrainBytes = 16;  // as NCCL's rings divide a vector

}  // namespace

ExplicitSchedule::ExplicitSchedule(std::shared_ptr<const ExplicitAlgorithm> algorithm,
                                   uint64_t block_bytes, uint64_t slot_bytes,
                                   MessageRule message_rule)
    : algorithm_(std::move(algorithm)),
      block_bytes_(block_bytes),
      chunk_bytes_(DivideUp(DivideUp(block_bytes, algorithm_->chunk_count), kChunkGrainBytes) *
                   kChunkGrainBytes),
      slot_bytes_(slot_bytes),
      passes_(0),
      message_rule_(message_rule) {
  SIM_CHECK(slot_bytes > 0, "an explicit schedule without slots");
  passes_ = DivideUp(chunk_bytes_, slot_bytes_);
}

uint32_t ExplicitSchedule::BatchCount(RankIndex rank, uint32_t channel) const {
  return block_bytes_ != 0 && algorithm_->lanes.contains({rank, channel}) ? 1 : 0;
}

uint32_t ExplicitSchedule::LaneCount(RankIndex rank, uint32_t channel, uint32_t /*batch*/) const {
  return static_cast<uint32_t>(algorithm_->lanes.at({rank, channel}).size());
}

LanePeers ExplicitSchedule::PeersOf(const LaneId& lane) const {
  std::set<int32_t> receives;
  std::set<int32_t> sends;
  for (const ExplicitStep& step : StepsOf(lane)) {
    receives.insert(step.step.recv_from);
    sends.insert(step.step.send_to);
  }
  LanePeers peers;
  const auto list = [](const std::set<int32_t>& ranks, std::vector<LanePeer>& listed) {
    for (const int32_t rank : ranks) {
      if (rank == kNoPeer) continue;
      listed.push_back({RankIndex{rank}, ConnectionUse::kExchange});
    }
  };
  list(receives, peers.recv_from);
  list(sends, peers.send_to);
  return peers;
}

uint64_t ExplicitSchedule::StepCount(const LaneId& lane) const {
  return passes_ * StepsOf(lane).size();
}

Step ExplicitSchedule::StepAt(const LaneId& lane, uint64_t step) const {
  const std::vector<ExplicitStep>& steps = StepsOf(lane);
  const ExplicitStep& written = steps[step % steps.size()];
  const uint64_t block = written.chunk / algorithm_->chunk_count;
  const uint64_t begin = written.chunk % algorithm_->chunk_count * chunk_bytes_;
  const uint64_t end = std::min(block_bytes_, begin + written.chunks * chunk_bytes_);
  const uint64_t bytes_of_pass = written.chunks * slot_bytes_;
  const uint64_t from = std::min(end, begin + step / steps.size() * bytes_of_pass);
  Step result = written.step;
  result.offset_bytes = block * block_bytes_ + from;
  result.bytes = std::min(end - from, bytes_of_pass);
  return result;
}

}  // namespace railyard
