// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/pat_schedule.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"

namespace railyard {

PatSchedule::PatSchedule(PatParameters parameters)
    : ExchangeSchedule(parameters.rank_count, parameters.shares, parameters.message_rule),
      parameters_(std::move(parameters)) {
  SIM_CHECK(parameters_.rank_count >= 2 && !parameters_.shares.empty() &&
                parameters_.shares.size() == parameters_.chunk_bytes.size(),
            "a PAT schedule needs two ranks, and a share and a chunk size for each channel");
  SIM_CHECK(parameters_.kind == CollectiveKind::kAllGather ||
                parameters_.kind == CollectiveKind::kReduceScatter,
            "PAT is for AllGather and ReduceScatter");
  std::map<std::pair<uint32_t, uint64_t>, size_t> known;
  for (uint32_t channel = 0; channel < parameters_.shares.size(); ++channel) {
    const uint32_t aggregation = AggregationOf(channel);
    const uint64_t passes = PassCount(channel);
    const auto [at, is_new] = known.try_emplace({aggregation, passes}, programs_.size());
    if (is_new) programs_.push_back(ProgramOf(aggregation, passes));
    program_of_.push_back(at->second);
  }
}

uint64_t PatSchedule::PassCount(uint32_t channel) const {
  const uint64_t chunk_bytes = parameters_.chunk_bytes[channel];
  return DivideUp(ShareOf(channel).bytes, chunk_bytes);
}

// Blocks share a message while two of it fit in a chunk.
uint32_t PatSchedule::AggregationOf(uint32_t channel) const {
  const uint64_t share_bytes = ShareOf(channel).bytes;
  uint32_t aggregation = 1;
  if (share_bytes == 0) return aggregation;
  while (parameters_.chunk_bytes[channel] / (share_bytes * aggregation) >= 2 &&
         aggregation < parameters_.rank_count / 2) {
    aggregation *= 2;
  }
  return aggregation;
}

// The far ways first, each with all its blocks; then the near distances by way, each with the
// blocks aggregated to it.
std::vector<PatSchedule::Aggregate> PatSchedule::AggregatesOf(uint32_t aggregation) const {
  const uint32_t n = parameters_.rank_count;
  const uint32_t spacing = std::bit_ceil(n) / aggregation;
  std::vector<Aggregate> aggregates;
  const auto add = [&](uint32_t first, uint32_t stride) {
    if (first < n) aggregates.push_back({first, stride, (n - 1 - first) / stride + 1});
  };
  for (uint32_t way = std::bit_ceil(n) / 2; way >= spacing; way /= 2) add(way, 2 * way);
  for (uint32_t way = spacing / 2; way > 0; way /= 2) {
    for (uint32_t first = way; first < spacing; first += 2 * way) add(first, spacing);
  }
  return aggregates;
}

// Returns, for each message, the receive of its pass before which it is sent; a negative number is
// one of the previous pass. The same blocks must have been received before, and no more messages
// may be in flight than there are slots.
std::vector<int64_t> PatSchedule::PlacesOf(const std::vector<Aggregate>& aggregates,
                                           uint32_t aggregation) const {
  const uint32_t spacing = std::bit_ceil(parameters_.rank_count) / aggregation;
  const auto count = static_cast<int64_t>(aggregates.size());
  const int64_t ahead = parameters_.message_rule.in_flight_messages;
  std::vector<int64_t> places;
  std::map<uint32_t, int64_t> received{{0, 0}};  // behind which receive, by near distance
  for (int64_t i = 0; i < count; ++i) {
    const Aggregate& aggregate = aggregates[static_cast<size_t>(i)];
    const uint32_t way = aggregate.way();
    int64_t place = i + 1 - ahead;
    if (way >= spacing) {
      received[0] = i + 1;  // what far ways bring is at distance 0 of its aggregate
      if (i > 0) place = std::max(place, i);
    } else {
      const int64_t needed = received.at(aggregate.first - way);
      if (needed > 0) place = std::max(place, needed);
      received[aggregate.first] = i + 1;
    }
    if (i > 0) place = std::max(place, places.back());
    places.push_back(place);
  }
  // A pass's first send comes behind the last of the pass before.
  for (int64_t& place : places) place = std::max(place, places.back() - count);
  return places;
}

PatSchedule::Program PatSchedule::ProgramOf(uint32_t aggregation, uint64_t passes) const {
  const std::vector<Aggregate> aggregates = AggregatesOf(aggregation);
  const std::vector<int64_t> places = PlacesOf(aggregates, aggregation);
  const auto count = static_cast<int64_t>(aggregates.size());
  const int64_t ahead = std::max<int64_t>(0, (count - 1 - places.front()) / count);
  const auto explicit_passes = std::min<int64_t>(static_cast<int64_t>(passes), 2 * ahead + 2);
  Program program;
  int64_t sends = 0;
  for (int64_t receive = 0; receive < explicit_passes * count; ++receive) {
    const auto pass = static_cast<uint32_t>(receive / count);
    if (receive == (ahead + 1) * count) program.cycle_begin = program.ends.size();
    for (; sends < explicit_passes * count; ++sends) {
      const auto of_pass = static_cast<uint32_t>(sends / count);
      const auto index = static_cast<size_t>(sends % count);
      if (of_pass * count + places[index] > receive) break;
      if (index == 0 && IsGather()) program.ends.push_back({Action::kCopy, of_pass, {}});
      program.ends.push_back({Action::kSend, of_pass, aggregates[index]});
    }
    const auto index = static_cast<size_t>(receive % count);
    program.ends.push_back({Action::kReceive, pass, aggregates[index]});
    // With an odd number of ranks nothing arrives at distance n - 1 of a ReduceScatter, although
    // the distance is even: its contribution is kept as if something had arrived.
    const bool keeps = !IsGather() && parameters_.rank_count % 2 == 1;
    if (receive % count == count - 1 && keeps) program.ends.push_back({Action::kCopy, pass, {}});
    if (receive == (ahead + 2) * count - 1) program.cycle_end = program.ends.size();
  }
  program.cycles = passes - static_cast<uint64_t>(explicit_passes) + 1;
  return program;
}

uint64_t PatSchedule::Program::step_count() const {
  return ends.size() + (cycles - 1) * (cycle_end - cycle_begin);
}

PatSchedule::Operation PatSchedule::Program::At(uint64_t step) const {
  if (step < cycle_begin || cycles == 1) return ends[step];
  const uint64_t length = cycle_end - cycle_begin;
  const uint64_t cycle = std::min((step - cycle_begin) / length, cycles - 1);
  Operation operation = ends[step - cycle * length];
  operation.pass += static_cast<uint32_t>(cycle);
  return operation;
}

LanePeers PatSchedule::PeersOf(const LaneId& lane) const {
  const uint32_t n = parameters_.rank_count;
  LanePeers peers;
  for (uint32_t way = 1; way < n; way *= 2) {
    const LanePeer above = {RankIndex{(lane.rank + way) % n}, ConnectionUse::kExchange};
    const LanePeer below = {RankIndex{(lane.rank + n - way) % n}, ConnectionUse::kExchange};
    const bool gathers = parameters_.kind == CollectiveKind::kAllGather;
    peers.recv_from.push_back(gathers ? above : below);
    peers.send_to.push_back(gathers ? below : above);
  }
  return peers;
}

uint64_t PatSchedule::StepCount(const LaneId& lane) const {
  return programs_[program_of_[lane.channel]].step_count();
}

Step PatSchedule::StepAt(const LaneId& lane, uint64_t step) const {
  const Program& program = programs_[program_of_[lane.channel]];
  const uint64_t n = parameters_.rank_count;
  const Operation operation = program.At(IsGather() ? step : program.step_count() - 1 - step);
  const Aggregate& aggregate = operation.aggregate;
  const uint64_t pass = IsGather() ? operation.pass : PassCount(lane.channel) - 1 - operation.pass;
  const ChannelShare& share = ShareOf(lane.channel);
  const uint64_t within_bytes = pass * parameters_.chunk_bytes[lane.channel];
  const uint64_t piece_bytes =
      std::min(parameters_.chunk_bytes[lane.channel], share.bytes - within_bytes);
  const uint32_t way = aggregate.way();
  const auto below = static_cast<int32_t>((lane.rank + n - way) % n);
  const auto above = static_cast<int32_t>((lane.rank + way) % n);
  Step result;
  uint64_t distance = aggregate.first;
  switch (operation.action) {
    case Action::kCopy:
      distance = IsGather() ? 0 : n - 1;
      result.load_local = true;
      result.keep = true;
      result.store = IsGather();
      break;
    case Action::kSend:
      distance -= way;  // nearer to the blocks than the peer
      if (IsGather()) {
        result.send_to = below;
        result.load_kept = true;
      } else {
        // The first parts of a block arrive from distance 1, the last of the own block from the
        // farthest.
        result.recv_from = below;
        result.load_local = way == 1;
        result.load_kept = way != 1;
        result.reduce = true;
        result.store = way >= n - way;
        result.keep = !result.store;
      }
      break;
    case Action::kReceive:
      if (IsGather()) {
        result.recv_from = above;
        result.keep = true;
        result.store = true;
      } else {
        // Nothing has arrived at odd distances.
        result.send_to = above;
        result.load_local = way == 1;
        result.load_kept = way != 1;
      }
      break;
  }
  result.pieces = operation.action == Action::kCopy ? 1 : aggregate.count;
  result.stride_bytes = result.pieces > 1 ? aggregate.stride * parameters_.block_bytes : 0;
  result.bytes = result.pieces * piece_bytes;
  result.offset_bytes =
      (lane.rank + distance) % n * parameters_.block_bytes + share.offset_bytes + within_bytes;
  return result;
}

}  // namespace railyard
