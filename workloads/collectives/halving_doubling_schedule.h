// SPDX-License-Identifier: GPL-2.0-only
// AllReduce by recursive halving and doubling as a CollectiveSchedule, a baseline of research
// (Rabenseifner: "Optimization of collective reduction operations", ICCS 2004; Thakur,
// Rabenseifner, Gropp, IJHPCA 2005). In phase d a rank exchanges half of its current data with the
// rank 2^d away, until each holds a part of the result, and then repeats the phases in reverse. If
// the number of ranks n is not a power of two and p is the next lower one, the first n - p even
// ranks hand their data to the next rank and get the result from it. NCCL has no such algorithm.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/collectives/channel_split.h"
#include "workloads/collectives/exchange_order.h"
#include "workloads/collectives/schedule.h"
#include "workloads/collectives/shaped_schedule.h"

namespace railyard {

struct HalvingDoublingParameters {
  uint32_t rank_count = 0;
  std::vector<ChannelShare> shares;  // by channel
  uint64_t chunk_bytes = 0;
  MessageRule message_rule;
};

class HalvingDoublingSchedule final : public ExchangeSchedule {
 public:
  // Precondition: at least two ranks.
  explicit HalvingDoublingSchedule(HalvingDoublingParameters parameters);

  LanePeers PeersOf(const LaneId& lane) const override;
  uint64_t StepCount(const LaneId& lane) const override;
  Step StepAt(const LaneId& lane, uint64_t step) const override;

 private:
  // A run of bytes of the channel's share.
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  // One exchange of a rank with one peer: the bytes it sends and the bytes it receives.
  struct Phase {
    uint32_t peer = 0;
    Range sent;
    Range received;
    bool gathers = false;   // else reduces
    bool is_first = false;  // of a rank's: what it holds is its own contribution
    bool ends = false;      // what is received and reduced is the result
  };
  bool IsFolded(uint32_t rank) const;     // leaves its contribution to the rank behind it
  bool TakesFolded(uint32_t rank) const;  // that rank
  uint32_t PlaceOf(uint32_t rank) const;  // among the p, of one that is not folded
  uint32_t RankAt(uint32_t place) const;
  Range Blocks(uint32_t channel, uint64_t first, uint64_t count) const;
  uint32_t PhaseCount(uint32_t rank) const;
  Phase PhaseOf(uint32_t channel, uint32_t rank, uint32_t number) const;
  Phase ExchangeOf(uint32_t channel, uint32_t rank, uint32_t number) const;
  ExchangeOrder OrderOf(const Phase& phase) const;

  HalvingDoublingParameters parameters_;
  uint32_t places_ = 0;    // p
  uint32_t halvings_ = 0;  // its logarithm
  uint32_t folded_ = 0;    // n - p
};

}  // namespace railyard
