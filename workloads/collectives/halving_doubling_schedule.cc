// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/halving_doubling_schedule.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"

namespace railyard {

namespace {

constexpr uint64_t kBlockGrainBytes = 16;  // as NCCL's rings divide a vector

}  // namespace

HalvingDoublingSchedule::HalvingDoublingSchedule(HalvingDoublingParameters parameters)
    : ExchangeSchedule(parameters.rank_count, parameters.shares, parameters.message_rule),
      parameters_(std::move(parameters)),
      places_(std::bit_floor(parameters_.rank_count)),
      halvings_(static_cast<uint32_t>(std::countr_zero(places_))),
      folded_(parameters_.rank_count - places_) {
  SIM_CHECK(parameters_.rank_count >= 2 && parameters_.chunk_bytes > 0,
            "a halving-doubling schedule needs two ranks and a chunk size");
}

bool HalvingDoublingSchedule::IsFolded(RankIndex rank) const {
  return rank < 2 * folded_ && rank % 2 == 0;
}
bool HalvingDoublingSchedule::TakesFolded(RankIndex rank) const {
  return rank < 2 * folded_ && rank % 2 == 1;
}
uint32_t HalvingDoublingSchedule::PlaceOf(RankIndex rank) const {
  return rank < 2 * folded_ ? rank / 2 : rank - folded_;
}
RankIndex HalvingDoublingSchedule::RankAt(uint32_t place) const {
  return RankIndex{place < folded_ ? 2 * place + 1 : place + folded_};
}

LanePeers HalvingDoublingSchedule::PeersOf(const LaneId& lane) const {
  std::vector<LanePeer> peers;
  if (IsFolded(lane.rank)) {
    peers.push_back({RankIndex{lane.rank + 1}, ConnectionUse::kExchange});
  } else {
    if (TakesFolded(lane.rank))
      peers.push_back({RankIndex{lane.rank - 1}, ConnectionUse::kExchange});
    for (uint32_t d = 0; d < halvings_; ++d) {
      peers.push_back({RankAt(PlaceOf(lane.rank) ^ 1u << d), ConnectionUse::kExchange});
    }
  }
  return {peers, peers};
}

// The share in p blocks, of which the last may be shorter, or empty.
HalvingDoublingSchedule::Range HalvingDoublingSchedule::Blocks(uint32_t channel, uint64_t first,
                                                               uint64_t count) const {
  const uint64_t bytes = ShareOf(channel).bytes;
  const uint64_t block = DivideUp(DivideUp(bytes, places_), kBlockGrainBytes) * kBlockGrainBytes;
  return {std::min(bytes, first * block), std::min(bytes, (first + count) * block)};
}

uint32_t HalvingDoublingSchedule::PhaseCount(RankIndex rank) const {
  if (IsFolded(rank)) return 1;
  return 2 * halvings_ + (TakesFolded(rank) ? 2 : 0);
}

HalvingDoublingSchedule::Phase HalvingDoublingSchedule::PhaseOf(uint32_t channel, RankIndex rank,
                                                                uint32_t number) const {
  const Range all = Blocks(channel, 0, places_);
  if (IsFolded(rank)) {
    return {.peer = RankIndex{rank + 1},
            .sent = all,
            .received = all,
            .gathers = true,
            .is_first = true};
  }
  if (!TakesFolded(rank)) return ExchangeOf(channel, rank, number);
  if (number == 0)
    return {.peer = RankIndex{rank - 1}, .sent = {}, .received = all, .is_first = true};
  if (number == 2 * halvings_ + 1) {
    return {.peer = RankIndex{rank - 1}, .sent = all, .received = {}, .gathers = true};
  }
  return ExchangeOf(channel, rank, number - 1);
}

// Bit d of its place selects the half of its 2^(log p - d) blocks that a rank keeps in phase d.
HalvingDoublingSchedule::Phase HalvingDoublingSchedule::ExchangeOf(uint32_t channel, RankIndex rank,
                                                                   uint32_t number) const {
  const uint32_t place = PlaceOf(rank);
  const bool gathers = number >= halvings_;
  const uint32_t d = gathers ? 2 * halvings_ - 1 - number : number;
  uint64_t first = 0;
  for (uint32_t bit = 0; bit < d; ++bit) {
    if ((place >> bit & 1) != 0) first += places_ >> (bit + 1);
  }
  const uint64_t half = places_ >> (d + 1);
  const bool is_upper = (place >> d & 1) != 0;
  const Range held = Blocks(channel, first + (is_upper ? half : 0), half);
  const Range other = Blocks(channel, first + (is_upper ? 0 : half), half);
  Phase phase;
  phase.peer = RankAt(place ^ 1u << d);
  phase.sent = gathers ? held : other;
  phase.received = gathers ? other : held;
  phase.gathers = gathers;
  phase.is_first = number == 0 && !TakesFolded(rank);
  phase.ends = number + 1 == halvings_;
  return phase;
}

ExchangeOrder HalvingDoublingSchedule::OrderOf(const Phase& phase) const {
  const auto chunks = [this](const Range& range) {
    return DivideUp(range.end - range.begin, parameters_.chunk_bytes);
  };
  return {.sends = chunks(phase.sent),
          .receives = chunks(phase.received),
          .ahead = parameters_.message_rule.in_flight_messages};
}

uint64_t HalvingDoublingSchedule::StepCount(const LaneId& lane) const {
  uint64_t steps = 0;
  for (uint32_t number = 0; number < PhaseCount(lane.rank); ++number) {
    steps += OrderOf(PhaseOf(lane.channel, lane.rank, number)).count();
  }
  return steps;
}

Step HalvingDoublingSchedule::StepAt(const LaneId& lane, uint64_t step) const {
  uint32_t number = 0;
  Phase phase = PhaseOf(lane.channel, lane.rank, number);
  while (step >= OrderOf(phase).count()) {
    step -= OrderOf(phase).count();
    phase = PhaseOf(lane.channel, lane.rank, ++number);
  }
  ExchangeOrder order = OrderOf(phase);
  // The result comes back when all have been sent.
  if (IsFolded(lane.rank)) order.ahead = order.sends;
  const ExchangeOrder::Place place = order.At(step);
  const Range& range = place.is_send ? phase.sent : phase.received;
  const uint64_t begin = range.begin + place.number * parameters_.chunk_bytes;
  Step result;
  result.offset_bytes = ShareOf(lane.channel).offset_bytes + begin;
  result.bytes = std::min(parameters_.chunk_bytes, range.end - begin);
  if (place.is_send) {
    result.send_to = static_cast<int32_t>(phase.peer);
    result.load_local = phase.is_first;
    result.load_kept = !phase.is_first;
    return result;
  }
  result.recv_from = static_cast<int32_t>(phase.peer);
  if (phase.gathers) {
    result.keep = !IsFolded(lane.rank);
    result.store = true;
    return result;
  }
  result.load_local = phase.is_first;
  result.load_kept = !phase.is_first;
  result.reduce = true;
  result.keep = true;
  result.store = phase.ends;
  return result;
}

}  // namespace railyard
