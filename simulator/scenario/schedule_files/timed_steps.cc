// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/schedule_files/timed_steps.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"

namespace railyard {
namespace {

using StepsOfGpus = std::vector<std::vector<TimedStep>>;

// Returns the chunks by how often each GPU sends them.
std::vector<std::vector<uint32_t>> GroupsOfChunks(const StepsOfGpus& steps_of) {
  std::map<uint32_t, std::map<RankIndex, uint32_t>> sends_of;  // by chunk and GPU
  for (RankIndex gpu{0}; gpu < steps_of.size(); ++gpu) {
    for (const TimedStep& step : steps_of[gpu]) {
      auto& sends = sends_of[step.made.chunk];
      if (step.made.step.send_to != kNoPeer) ++sends[gpu];
    }
  }
  std::map<std::map<RankIndex, uint32_t>, std::vector<uint32_t>> groups;
  for (auto& [chunk, sends] : sends_of) groups[std::move(sends)].push_back(chunk);
  std::vector<std::vector<uint32_t>> chunks;
  for (auto& [sends, group] : groups) chunks.push_back(std::move(group));
  return chunks;
}

// Returns into how many parts to divide each chunk: as few as leave at most a tenth of the channels
// idle in any group, so that a lane has few steps.
uint32_t PartsOf(const std::vector<std::vector<uint32_t>>& groups, uint32_t channels,
                 uint64_t parts_max) {
  std::set<size_t> sizes;
  for (const auto& group : groups) sizes.insert(group.size());
  const auto spreads = [&](uint64_t parts) {
    return std::ranges::all_of(sizes, [&](size_t chunks) {
      const uint64_t places = DivideUp(chunks * parts, uint64_t{channels}) * channels;
      return 10 * (places - chunks * parts) <= places;
    });
  };
  uint64_t parts = 1;
  while (parts < std::min(parts_max, uint64_t{channels}) && !spreads(parts)) ++parts;
  return static_cast<uint32_t>(parts);
}

using Connection = std::pair<RankIndex, RankIndex>;  // sender and receiver

// Puts the messages of each connection into the order in which they are received. Those of one
// chunk are in that order.
void SendInOrderOfReceipt(StepsOfGpus& steps_of) {
  std::map<std::pair<Connection, uint32_t>, std::deque<size_t>> places;  // of receipt, by chunk
  std::map<Connection, size_t> received;
  for (RankIndex gpu{0}; gpu < steps_of.size(); ++gpu) {
    for (const TimedStep& step : steps_of[gpu]) {
      if (step.made.step.recv_from == kNoPeer) continue;
      const Connection connection = {RankIndex{step.made.step.recv_from}, gpu};
      places[{connection, step.made.chunk}].push_back(received[connection]++);
    }
  }
  for (RankIndex gpu{0}; gpu < steps_of.size(); ++gpu) {
    std::map<RankIndex, std::map<size_t, TimedStep>> in_order;  // by receiver and place
    std::map<RankIndex, std::vector<size_t>> at;                // where the lane sends, by receiver
    for (size_t i = 0; i < steps_of[gpu].size(); ++i) {
      const TimedStep& step = steps_of[gpu][i];
      if (step.made.step.send_to == kNoPeer) continue;
      const RankIndex to{step.made.step.send_to};
      std::deque<size_t>& of_chunk = places[{{gpu, to}, step.made.chunk}];
      SIM_CHECK(!of_chunk.empty(), "a message of an algorithm that nobody receives");
      in_order[to][of_chunk.front()] = step;
      of_chunk.pop_front();
      at[to].push_back(i);
    }
    for (const auto& [to, messages] : in_order) {
      size_t next = 0;
      for (const auto& [place, step] : messages) steps_of[gpu][at[to][next++]] = step;
    }
  }
}

// Moves what sends to where it is possible, as far as the order of a connection's messages and its
// slots allow.
void SendEarly(uint32_t channel, StepsOfGpus& steps_of) {
  std::map<Connection, std::vector<uint64_t>> taken_at;
  const auto gpus = static_cast<uint32_t>(steps_of.size());
  for (RankIndex gpu{0}; gpu < gpus; ++gpu) {
    for (const TimedStep& step : steps_of[gpu]) {
      if (step.made.step.recv_from == kNoPeer) continue;
      taken_at[{RankIndex{step.made.step.recv_from}, gpu}].push_back(step.at);
    }
  }
  const size_t slots = MessageRule().in_flight_messages;
  for (RankIndex gpu{0}; gpu < gpus; ++gpu) {
    std::map<RankIndex, std::vector<uint64_t>> sent_at;  // by receiver
    for (TimedStep& step : steps_of[gpu]) {
      if (step.made.step.send_to == kNoPeer) continue;
      const RankIndex to{step.made.step.send_to};
      std::vector<uint64_t>& sent = sent_at[to];
      step.at = step.possible_at;
      if (!sent.empty()) step.at = std::max(step.at, sent.back());
      if (sent.size() >= slots) {
        step.at = std::max(step.at, taken_at[{gpu, to}].at(sent.size() - slots));
      }
      sent.push_back(step.at);
    }
    // A step that does not send comes before those that its outcome makes possible. Messages that
    // are possible at the same time go to the next GPU first, in each channel to another one, so
    // that not all GPUs send to one.
    std::ranges::stable_sort(steps_of[gpu], {}, [&](const TimedStep& step) {
      if (step.made.step.send_to == kNoPeer) return std::pair(step.at, uint32_t{0});
      const RankIndex to{step.made.step.send_to};
      const uint32_t distance = to + 2 * gpus - gpu - 1 - channel % gpus;
      return std::pair(step.at, 1 + distance % gpus);
    });
  }
}

// A step that keeps a chunk and the next one, which sends it, are one.
void AddLane(const std::vector<TimedStep>& steps, std::vector<std::vector<ExplicitStep>>& lanes) {
  std::vector<ExplicitStep>& lane = lanes.emplace_back();
  for (const TimedStep& step : steps) {
    const bool sends_kept = step.made.step.send_to != kNoPeer && step.made.step.load_kept;
    if (sends_kept && !lane.empty() && lane.back().chunk == step.made.chunk &&
        lane.back().step.keep && lane.back().step.send_to == kNoPeer) {
      lane.back().step.send_to = step.made.step.send_to;
    } else {
      lane.push_back(step.made);
    }
  }
}

}  // namespace

void WriteLanes(StepsOfGpus steps_of, uint64_t steps_max, ExplicitAlgorithm& algorithm) {
  const uint32_t channels = algorithm.channel_count;
  const std::vector<std::vector<uint32_t>> groups = GroupsOfChunks(steps_of);
  uint64_t step_count = 1;
  for (const auto& steps : steps_of) step_count += steps.size();
  const uint32_t parts = PartsOf(
      groups, channels,
      std::min(uint64_t{kAlgorithmChunksMax / algorithm.chunk_count}, steps_max / step_count));
  algorithm.chunk_count *= parts;
  std::map<uint32_t, uint32_t> first_channel_of;  // of a chunk's first part
  for (const auto& group : groups) {
    for (uint32_t i = 0; i < group.size(); ++i) first_channel_of[group[i]] = i * parts % channels;
  }
  std::vector<StepsOfGpus> steps_by_channel(channels, StepsOfGpus(steps_of.size()));
  for (RankIndex gpu{0}; gpu < steps_of.size(); ++gpu) {
    for (TimedStep step : std::exchange(steps_of[gpu], {})) {
      const uint32_t chunk = step.made.chunk;
      for (uint32_t part = 0; part < parts; ++part) {
        step.made.chunk = chunk * parts + part;
        steps_by_channel[(first_channel_of[chunk] + part) % channels][gpu].push_back(step);
      }
    }
  }
  for (uint32_t channel = 0; channel < channels; ++channel) {
    StepsOfGpus steps = std::exchange(steps_by_channel[channel], {});
    SendInOrderOfReceipt(steps);
    SendEarly(channel, steps);
    for (RankIndex gpu{0}; gpu < steps.size(); ++gpu) {
      if (!steps[gpu].empty()) AddLane(steps[gpu], algorithm.lanes[{gpu, channel}]);
    }
  }
}

}  // namespace railyard
