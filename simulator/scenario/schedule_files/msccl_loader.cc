// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/schedule_files/msccl_loader.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/scenario/schedule_files/buffer_chunks.h"
#include "simulator/scenario/schedule_files/msccl_plan.h"
#include "simulator/scenario/schedule_files/msccl_program.h"
#include "simulator/scenario/schedule_files/mscclpp_runner.h"
#include "workloads/collectives/explicit_check.h"

namespace railyard {
namespace {

constexpr uint64_t kChunkStepsMax = 10'000'000;

constexpr uint64_t kLaneTurnsMax = 20'000'000;  // most of which find that they have to wait

// The content of a buffer's slot: the rank's own contribution to a chunk, or what a lane keeps of
// it in a version, by a step of a thread block.
struct Value {
  uint32_t chunk = 0;
  bool is_own = false;
  int64_t lane = 0;
  uint64_t version = 0;
  int64_t block = 0;
};

// Divides the thread blocks of each GPU among lanes, which are named by their first one.
class LaneGroups {
 public:
  explicit LaneGroups(const MscclProgram& program) : first_(program.gpus.size()) {
    for (RankIndex gpu{0}; gpu < program.gpus.size(); ++gpu) {
      for (const auto& [id, block] : program.gpus[gpu]) first_[gpu][id] = id;
    }
  }

  int64_t LaneOf(RankIndex gpu, int64_t block) const {
    int64_t first = first_[gpu].at(block);
    while (first != first_[gpu].at(first)) first = first_[gpu].at(first);
    return first;
  }
  void Unite(RankIndex gpu, int64_t a, int64_t b) {
    const int64_t lane_a = LaneOf(gpu, a);
    const int64_t lane_b = LaneOf(gpu, b);
    first_[gpu][std::max(lane_a, lane_b)] = std::min(lane_a, lane_b);
  }

 private:
  std::vector<std::map<int64_t, int64_t>> first_;  // or one before it, by GPU and thread block
};

// Returns groups in which the thread blocks of a channel are one.
LaneGroups OnePerChannel(const MscclProgram& program) {
  LaneGroups groups(program);
  for (RankIndex gpu{0}; gpu < program.gpus.size(); ++gpu) {
    std::map<int64_t, int64_t> first_of_channel;
    for (const auto& [id, block] : program.gpus[gpu]) {
      groups.Unite(gpu, first_of_channel.try_emplace(block.channel, id).first->second, id);
    }
  }
  return groups;
}

// A lane has no values of another one, and does not reduce what it has received before.
bool IsOfLanes(const MscclProgram& program) {
  for (const auto& blocks : program.gpus) {
    for (const auto& [id, block] : blocks) {
      for (const MscclStep& step : block.steps) {
        if (step.is_local() && step.reduces) return false;
        if (step.after_block < 0) continue;
        if (blocks.at(step.after_block).channel != block.channel) return false;
      }
    }
  }
  return true;
}

// Makes a lane of each group of thread blocks.
class LaneMaker {
 public:
  LaneMaker(const std::string& path, const MscclProgram& program, LaneGroups groups,
            Diagnostics& diagnostics)
      : path_(path),
        program_(program),
        groups_(std::move(groups)),
        needed_groups_(program),
        diagnostics_(diagnostics),
        chunks_(program.kind, static_cast<uint32_t>(program.gpus.size()), program.ChunksOfBlock()),
        done_(program.gpus.size()),
        slots_(program.gpus.size()),
        last_write_(program.gpus.size()),
        first_read_(program.gpus.size()) {}

  std::shared_ptr<ExplicitAlgorithm> Make() {
    algorithm_->kind = program_.kind;
    algorithm_->protocol = program_.protocol;
    algorithm_->rank_count = static_cast<uint32_t>(program_.gpus.size());
    algorithm_->chunk_count = program_.ChunksOfBlock();
    algorithm_->lanes_are_ctas = true;
    algorithm_->is_in_place = program_.kind == CollectiveKind::kAllToAll && program_.is_in_place;
    if (!Run() || !StoreResults()) return nullptr;
    for (auto& [place, lanes] : algorithm_->lanes) {
      for (auto& lane : lanes) JoinCopies(lane);
    }
    return algorithm_;
  }

  // Returns, after Make(), the smallest groups of which each has the data that it reads, and whose
  // thread blocks wait for those of no other.
  const LaneGroups& needed_groups() const { return needed_groups_; }

 private:
  using Slot = MscclSlot;

  bool Error(int line, const std::string& what) {
    diagnostics_.Error({.file = path_, .line = line, .column = 1}, "", what);
    return false;
  }

  // Runs the steps of all GPUs, messages without bound, until all are done.
  bool Run() {
    bool is_done = false;
    for (bool moved = true; moved;) {
      moved = false;
      is_done = true;
      for (RankIndex gpu{0}; gpu < program_.gpus.size(); ++gpu) {
        for (const auto& [id, block] : program_.gpus[gpu]) {
          if (++turns_ > kLaneTurnsMax) {
            return Error(1,
                         fmt::format("needs more than {} turns of thread blocks", kLaneTurnsMax));
          }
          size_t& done = done_[gpu][id];
          while (done < block.steps.size() && IsReady(gpu, block, block.steps[done])) {
            const MscclStep& step = block.steps[done];
            if (step.after_block >= 0) needed_groups_.Unite(gpu, step.after_block, id);
            if (!RunStep(gpu, {id, block}, step)) return false;
            ++done;
            moved = true;
          }
          is_done = is_done && done == block.steps.size();
        }
      }
    }
    return is_done || Error(StuckLine(), "waits for ever (expected a step that sends to it)");
  }

  int StuckLine() {
    for (RankIndex gpu{0}; gpu < program_.gpus.size(); ++gpu) {
      for (const auto& [id, block] : program_.gpus[gpu]) {
        if (done_[gpu][id] < block.steps.size()) return block.steps[done_[gpu][id]].line;
      }
    }
    return 1;
  }

  bool IsReady(RankIndex gpu, const MscclBlock& block, const MscclStep& step) {
    if (step.after_block >= 0 &&
        static_cast<int64_t>(done_[gpu][step.after_block]) <= step.after_step) {
      return false;
    }
    return !step.receives ||
           std::ssize(messages_[{RankIndex{block.recv}, gpu, block.channel}]) >= step.count;
  }

  // Names a thread block of a GPU.
  struct Block {
    int64_t id = 0;
    const MscclBlock& block;
  };

  bool RunStep(RankIndex gpu, const Block& block, const MscclStep& step) {
    if (step.is_local() && !step.keeps) return true;
    for (int64_t i = 0; i < step.count; ++i) {
      if (!RunChunk(gpu, block, step, i)) return false;
    }
    return true;
  }

  bool RunChunk(RankIndex gpu, const Block& runs, const MscclStep& step, int64_t i) {
    const MscclBlock& block = runs.block;
    if (++chunk_steps_ > kChunkStepsMax) {
      return Error(step.line, fmt::format("more than {} steps of one chunk each", kChunkStepsMax));
    }
    ExplicitStep made;
    made.source = static_cast<uint32_t>(step.line);
    const bool reads_target =
        step.ReadsTarget() &&
        ValueAt(gpu, {step.target.buffer, step.target.offset + i}).has_value();
    const Slot from{reads_target ? step.target.buffer : step.source.buffer,
                    (reads_target ? step.target.offset : step.source.offset) + i};
    const Slot to{step.target.buffer, step.target.offset + i};
    std::optional<Value> value;
    if (step.ReadsSource()) {
      value = ValueAt(gpu, from);
      if (!value) return Error(step.line, "reads a slot in which nothing is");
      if (!IsKept(gpu, runs.id, *value)) {
        return Error(step.line, "reads what its lane does not keep");
      }
      if (!value->is_own) needed_groups_.Unite(gpu, value->block, runs.id);
      made.step.load_local = value->is_own;
      made.step.load_kept = !value->is_own;
    }
    if (step.receives) {
      auto& arrived = messages_[{RankIndex{block.recv}, gpu, block.channel}];
      const uint32_t chunk = arrived.front();
      arrived.pop_front();
      if (value && value->chunk != chunk) {
        return Error(step.line, fmt::format("reduces chunk {} with chunk {}", chunk, value->chunk));
      }
      value = Value{.chunk = chunk};
      made.step.recv_from = static_cast<int32_t>(block.recv);
      made.step.reduce = step.reduces;
    }
    made.chunk = value->chunk;
    if (step.is_local()) {  // a copy: the value is there as well
      if (from.buffer == to.buffer && from.offset == to.offset) return true;
      slots_[gpu][to] = *value;
      if (to.buffer != 's') RememberCopy(gpu, runs, to, *value, step.line);
      return true;
    }
    if (step.sends) {
      made.step.send_to = static_cast<int32_t>(block.send);
      messages_[{gpu, RankIndex{block.send}, block.channel}].push_back(value->chunk);
    }
    if (step.keeps) {
      made.step.keep = true;
      const int64_t lane = groups_.LaneOf(gpu, runs.id);
      slots_[gpu][to] = {.chunk = value->chunk,
                         .lane = lane,
                         .version = ++versions_[{gpu, lane, value->chunk}],
                         .block = runs.id};
    }
    if (made.step.load_local && from.buffer == 'o') {
      first_read_[gpu].try_emplace(from, NextPlace(gpu, runs, step.line));
    }
    if (step.keeps) last_write_[gpu][to] = NextPlace(gpu, runs, step.line);
    LaneOf(gpu, runs).push_back(made);
    return true;
  }

  bool IsKept(RankIndex gpu, int64_t block, const Value& value) {
    const int64_t lane = groups_.LaneOf(gpu, block);
    return value.is_own ||
           (value.lane == lane && value.version == versions_[{gpu, lane, value.chunk}]);
  }

  void RememberCopy(RankIndex gpu, const Block& block, const Slot& to, const Value& value,
                    int line) {
    ExplicitStep made;
    made.source = static_cast<uint32_t>(line);
    made.chunk = value.chunk;
    made.step.load_local = value.is_own;
    made.step.load_kept = !value.is_own;
    last_write_[gpu][to] = NextPlace(gpu, block, line);
    LaneOf(gpu, block).push_back(made);
  }

  // Names a step of a GPU's lane, and the line of the file that made it.
  struct Place {
    int64_t channel = 0;
    size_t lane = 0;
    size_t step = 0;
    int line = 0;
  };
  Place NextPlace(RankIndex gpu, const Block& block, int line) {
    const size_t step = LaneOf(gpu, block).size();
    return {block.block.channel, number_of_lane_[{gpu, groups_.LaneOf(gpu, block.id)}], step, line};
  }

  std::vector<ExplicitStep>& LaneOf(RankIndex gpu, const Block& block) {
    const auto channel = static_cast<uint32_t>(block.block.channel);
    algorithm_->channel_count = std::max(algorithm_->channel_count, channel + 1);
    auto& lanes = algorithm_->lanes[{gpu, channel}];
    const auto [number, is_new] =
        number_of_lane_.try_emplace({gpu, groups_.LaneOf(gpu, block.id)}, lanes.size());
    if (is_new) lanes.emplace_back();
    return lanes[number->second];
  }
  ExplicitStep& StepAt(RankIndex gpu, const Place& place) {
    return algorithm_->lanes.at(
        {gpu, static_cast<uint32_t>(place.channel)})[place.lane][place.step];
  }

  // Returns the value that was written there, or the rank's own contribution.
  std::optional<Value> ValueAt(RankIndex gpu, const Slot& slot) const {
    const auto at = slots_[gpu].find(slot);
    if (at != slots_[gpu].end()) return at->second;
    const bool gathers = algorithm_->kind == CollectiveKind::kAllGather;
    const int64_t own = chunks_.InputCount();
    if (slot.offset < 0) return std::nullopt;
    if (slot.buffer == 'i' && slot.offset < own) {
      return Value{.chunk = chunks_.OfInput(gpu, static_cast<uint32_t>(slot.offset)),
                   .is_own = true};
    }
    // An AllGather in place has its contribution where the result is to have it, and no buffer i.
    if (slot.buffer == 'o' && gathers && program_.is_in_place && slot.offset / own == gpu) {
      return Value{.chunk = static_cast<uint32_t>(slot.offset), .is_own = true};
    }
    return std::nullopt;
  }

  // The last write to a slot of the result is what the rank ends with. Out of place, the result is
  // in o alone; in place, AllReduce and ReduceScatter have it in i.
  bool StoreResults() {
    const bool scatters = algorithm_->kind == CollectiveKind::kReduceScatter;
    for (RankIndex gpu{0}; gpu < last_write_.size(); ++gpu) {
      for (const auto& [slot, place] : last_write_[gpu]) {
        if (slot.buffer == 's' || (slot.buffer == 'i' && !program_.is_in_place)) continue;
        ExplicitStep& last = StepAt(gpu, place);
        const uint32_t block = last.chunk / algorithm_->chunk_count;
        const bool is_of_rank = !scatters || block == gpu;
        const bool is_there =
            algorithm_->is_in_place && block == gpu * algorithm_->rank_count + gpu;
        last.step.store = is_of_rank && !is_there;
        const auto offset = static_cast<uint32_t>(slot.offset);
        const bool is_offset_in_vector = scatters && slot.buffer == 'i';
        const uint32_t expected = is_offset_in_vector ? offset : chunks_.OfOutput(gpu, offset);
        if (!is_of_rank || expected == last.chunk) continue;
        return Error(place.line, fmt::format("leaves chunk {} in slot {} of the result of GPU {}",
                                             last.chunk, slot.offset, gpu));
      }
      // An AllGather in place has its contribution there: it counts as stored when it is first
      // sent.
      for (const auto& [slot, place] : first_read_[gpu]) {
        if (last_write_[gpu].contains(slot)) continue;
        StepAt(gpu, place).step.store = true;
      }
    }
    return true;
  }

  // A copy of several chunks by one step of the file is one step of the lane.
  void JoinCopies(std::vector<ExplicitStep>& lane) const {
    std::vector<ExplicitStep> joined;
    for (const ExplicitStep& step : lane) {
      const bool is_local = step.step.recv_from == kNoPeer && step.step.send_to == kNoPeer;
      if (is_local && !joined.empty() && joined.back().source == step.source &&
          joined.back().chunk + joined.back().chunks == step.chunk &&
          step.chunk % algorithm_->chunk_count != 0 &&
          joined.back().step.load_local == step.step.load_local &&
          joined.back().step.store == step.step.store) {
        ++joined.back().chunks;
      } else {
        joined.push_back(step);
      }
    }
    lane = std::move(joined);
  }

  const std::string& path_;
  const MscclProgram& program_;
  const LaneGroups groups_;
  LaneGroups needed_groups_;
  Diagnostics& diagnostics_;
  const BufferChunks chunks_;
  std::shared_ptr<ExplicitAlgorithm> algorithm_ = std::make_shared<ExplicitAlgorithm>();
  std::vector<std::map<int64_t, size_t>> done_;  // steps, by GPU and thread block
  std::vector<std::map<Slot, Value>> slots_;     // by GPU
  std::map<std::tuple<RankIndex, RankIndex, int64_t>, std::deque<uint32_t>> messages_;
  std::vector<std::map<Slot, Place>> last_write_;  // by GPU
  // By GPU: where it first reads its contribution of a slot of the result.
  std::vector<std::map<Slot, Place>> first_read_;
  // The version of a chunk that a lane keeps, by GPU, lane and chunk.
  std::map<std::tuple<RankIndex, int64_t, uint32_t>, uint64_t> versions_;
  // By GPU and lane: which of those of its channel it is.
  std::map<std::pair<RankIndex, int64_t>, size_t> number_of_lane_;
  uint64_t chunk_steps_ = 0;
  uint64_t turns_ = 0;
};

// Returns nullptr if the lanes do not give the result.
std::shared_ptr<ExplicitAlgorithm> LanesOf(const std::string& path, const MscclProgram& program) {
  Diagnostics of_lanes;  // not the user's: the program may be right as a plan
  LaneMaker of_channels(path, program, OnePerChannel(program), of_lanes);
  if (!of_channels.Make()) return nullptr;
  auto algorithm = LaneMaker(path, program, of_channels.needed_groups(), of_lanes).Make();
  SchedulePlace place;
  return algorithm && WhatIsWrong(algorithm, place).empty() ? algorithm : nullptr;
}

}  // namespace

std::shared_ptr<ExplicitAlgorithm> LoadMsccl(const std::string& path, const std::string& text,
                                             Diagnostics& diagnostics) {
  const std::optional<MscclProgram> program = ParseMscclProgram(path, text, diagnostics);
  if (!program) return nullptr;
  std::optional<MscclppPlan> plan = PlanOf(path, *program, diagnostics);
  if (!plan) return nullptr;
  if (IsOfLanes(*program)) {
    if (auto algorithm = LanesOf(path, *program)) return algorithm;
  }
  return RunMscclppPlan(path, *std::move(plan), diagnostics);
}

}  // namespace railyard
