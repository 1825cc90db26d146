// SPDX-License-Identifier: GPL-2.0-only
// Describes AllReduce by recursive halving and doubling, a baseline from research, as a
// CollectiveSchedule (Rabenseifner: "Optimization of collective reduction operations", ICCS 2004;
// Thakur, Rabenseifner, Gropp, IJHPCA 2005). In phase d a rank exchanges half of its current data
// with the rank at distance 2^d, until each holds a part of the result, and then repeats the phases
// in reverse. If the number of ranks n is not a power of two and p is the next lower one, the first
// (n - p) even ranks send their data to the next rank and receive the result from it. NCCL has no
// such algorithm.
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
  // Describes a run of bytes of the channel's share.
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  // Describes one exchange of a rank with one peer: the bytes that it sends and those that it
  // receives.
  struct Phase {
    RankIndex peer{};
    Range sent;
    Range received;
    bool gathers = false;   // else reduces
    bool is_first = false;  // of the rank: its data is its own contribution only
    bool ends = false;      // the received and reduced data is the result
  };
  bool IsFolded(RankIndex rank) const;     // sends its contribution to the next rank
  bool TakesFolded(RankIndex rank) const;  // the rank after a folded one
  uint32_t PlaceOf(RankIndex rank) const;  // among the p, for a rank that is not folded
  RankIndex RankAt(uint32_t place) const;
  Range Blocks(uint32_t channel, uint64_t first, uint64_t count) const;
  uint32_t PhaseCount(RankIndex rank) const;
  Phase PhaseOf(uint32_t channel, RankIndex rank, uint32_t number) const;
  Phase ExchangeOf(uint32_t channel, RankIndex rank, uint32_t number) const;
  ExchangeOrder OrderOf(const Phase& phase) const;

  HalvingDoublingParameters parameters_;
  uint32_t places_ = 0;    // p
  uint32_t halvings_ = 0;  // log2 of places_
  uint32_t folded_ = 0;    // n - p
};

}  // namespace railyard
