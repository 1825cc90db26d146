// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/load/msccl_loader.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/scenario/load/msccl_plan.h"
#include "simulator/scenario/load/msccl_program.h"
#include "simulator/scenario/load/mscclpp_runner.h"
#include "workloads/collectives/explicit_check.h"

namespace railyard {
namespace {

constexpr uint64_t kChunkStepsMax = 10'000'000;

constexpr uint64_t kLaneTurnsMax = 20'000'000;  // most of which find that they have to wait

// The content of a buffer's slot: the rank's own contribution to a chunk, or what the lane of a
// channel keeps of it in a version.
struct Value {
  uint32_t chunk = 0;
  bool is_own = false;
  int64_t channel = 0;
  uint64_t version = 0;
};

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

// Makes a lane of the thread blocks of each GPU and channel.
class LaneMaker {
 public:
  LaneMaker(const std::string& path, const MscclProgram& program, Diagnostics& diagnostics)
      : path_(path),
        program_(program),
        diagnostics_(diagnostics),
        done_(program.gpus.size()),
        slots_(program.gpus.size()),
        last_write_(program.gpus.size()),
        first_read_(program.gpus.size()) {}

  std::shared_ptr<ExplicitAlgorithm> Make() {
    algorithm_->kind = program_.kind;
    algorithm_->protocol = program_.protocol;
    algorithm_->rank_count = static_cast<uint32_t>(program_.gpus.size());
    algorithm_->chunk_count = program_.ChunksOfBlock();
    if (!Run() || !StoreResults()) return nullptr;
    return algorithm_;
  }

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
      for (uint32_t gpu = 0; gpu < program_.gpus.size(); ++gpu) {
        for (const auto& [id, block] : program_.gpus[gpu]) {
          if (++turns_ > kLaneTurnsMax) {
            return Error(1,
                         fmt::format("needs more than {} turns of thread blocks", kLaneTurnsMax));
          }
          size_t& done = done_[gpu][id];
          while (done < block.steps.size() && IsReady(gpu, block, block.steps[done])) {
            if (!RunStep(gpu, block, block.steps[done])) return false;
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
    for (uint32_t gpu = 0; gpu < program_.gpus.size(); ++gpu) {
      for (const auto& [id, block] : program_.gpus[gpu]) {
        if (done_[gpu][id] < block.steps.size()) return block.steps[done_[gpu][id]].line;
      }
    }
    return 1;
  }

  bool IsReady(uint32_t gpu, const MscclBlock& block, const MscclStep& step) {
    if (step.after_block >= 0 &&
        static_cast<int64_t>(done_[gpu][step.after_block]) <= step.after_step) {
      return false;
    }
    return !step.receives || std::ssize(messages_[{block.recv, gpu, block.channel}]) >= step.count;
  }

  bool RunStep(uint32_t gpu, const MscclBlock& block, const MscclStep& step) {
    if (step.is_local() && !step.keeps) return true;
    for (int64_t i = 0; i < step.count; ++i) {
      if (!RunChunk(gpu, block, step, i)) return false;
    }
    return true;
  }

  bool RunChunk(uint32_t gpu, const MscclBlock& block, const MscclStep& step, int64_t i) {
    if (++chunk_steps_ > kChunkStepsMax) {
      return Error(step.line, fmt::format("more than {} steps of one chunk each", kChunkStepsMax));
    }
    ExplicitStep made;
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
      if (!IsKept(gpu, block.channel, *value)) {
        return Error(step.line, "reads what the lane of its channel does not keep");
      }
      made.step.load_local = value->is_own;
      made.step.load_kept = !value->is_own;
    }
    if (step.receives) {
      auto& arrived = messages_[{block.recv, gpu, block.channel}];
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
      slots_[gpu][to] = *value;
      if (to.buffer != 's') RememberCopy(gpu, block, to, *value, step.line);
      return true;
    }
    if (step.sends) {
      made.step.send_to = static_cast<int32_t>(block.send);
      messages_[{gpu, static_cast<uint32_t>(block.send), block.channel}].push_back(value->chunk);
    }
    if (step.keeps) {
      made.step.keep = true;
      slots_[gpu][to] = {.chunk = value->chunk,
                         .channel = block.channel,
                         .version = ++versions_[{gpu, block.channel, value->chunk}]};
    }
    auto& lane = LaneOf(gpu, block.channel);
    if (made.step.load_local && from.buffer == 'o') {
      first_read_[gpu].try_emplace(from, Place{block.channel, lane.size(), step.line});
    }
    if (step.keeps) last_write_[gpu][to] = {block.channel, lane.size(), step.line};
    lane.push_back(made);
    return true;
  }

  bool IsKept(uint32_t gpu, int64_t channel, const Value& value) {
    return value.is_own ||
           (value.channel == channel && value.version == versions_[{gpu, channel, value.chunk}]);
  }

  void RememberCopy(uint32_t gpu, const MscclBlock& block, const Slot& to, const Value& value,
                    int line) {
    auto& lane = LaneOf(gpu, block.channel);
    ExplicitStep made;
    made.chunk = value.chunk;
    made.step.load_local = value.is_own;
    made.step.load_kept = !value.is_own;
    last_write_[gpu][to] = {block.channel, lane.size(), line};
    lane.push_back(made);
  }

  std::vector<ExplicitStep>& LaneOf(uint32_t gpu, int64_t channel) {
    algorithm_->channel_count =
        std::max(algorithm_->channel_count, static_cast<uint32_t>(channel) + 1);
    auto& lanes = algorithm_->lanes[{gpu, static_cast<uint32_t>(channel)}];
    if (lanes.empty()) lanes.emplace_back();
    return lanes.front();
  }

  // Returns the value that was written there, or the rank's own contribution.
  std::optional<Value> ValueAt(uint32_t gpu, const Slot& slot) const {
    const auto at = slots_[gpu].find(slot);
    if (at != slots_[gpu].end()) return at->second;
    const bool gathers = algorithm_->kind == CollectiveKind::kAllGather;
    const int64_t own = gathers ? algorithm_->chunk_count : program_.chunks;
    if (slot.offset < 0) return std::nullopt;
    if (slot.buffer == 'i' && slot.offset < own) {
      const int64_t first = gathers ? int64_t{gpu} * algorithm_->chunk_count : 0;
      return Value{.chunk = static_cast<uint32_t>(first + slot.offset), .is_own = true};
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
    for (uint32_t gpu = 0; gpu < last_write_.size(); ++gpu) {
      for (const auto& [slot, place] : last_write_[gpu]) {
        if (slot.buffer == 's' || (slot.buffer == 'i' && !program_.is_in_place)) continue;
        ExplicitStep& last = LaneOf(gpu, place.channel)[place.step];
        const bool is_of_rank = !scatters || last.chunk / algorithm_->chunk_count == gpu;
        last.step.store = is_of_rank;
        const int64_t first =
            scatters && slot.buffer == 'o' ? int64_t{gpu} * algorithm_->chunk_count : 0;
        if (!is_of_rank || slot.offset + first == last.chunk) continue;
        return Error(place.line, fmt::format("leaves chunk {} in slot {} of the result of GPU {}",
                                             last.chunk, slot.offset, gpu));
      }
      // An AllGather in place has its contribution there: it counts as stored when it is first
      // sent.
      for (const auto& [slot, place] : first_read_[gpu]) {
        if (last_write_[gpu].contains(slot)) continue;
        LaneOf(gpu, place.channel)[place.step].step.store = true;
      }
    }
    return true;
  }

  const std::string& path_;
  const MscclProgram& program_;
  Diagnostics& diagnostics_;
  std::shared_ptr<ExplicitAlgorithm> algorithm_ = std::make_shared<ExplicitAlgorithm>();
  std::vector<std::map<int64_t, size_t>> done_;  // steps, by GPU and thread block
  std::vector<std::map<Slot, Value>> slots_;     // by GPU
  std::map<std::tuple<int64_t, uint32_t, int64_t>, std::deque<uint32_t>> messages_;
  // Names a step of a GPU's lane, and the line of the file that made it.
  struct Place {
    int64_t channel = 0;
    size_t step = 0;
    int line = 0;
  };
  std::vector<std::map<Slot, Place>> last_write_;  // by GPU
  // By GPU: where it first reads its contribution of a slot of the result.
  std::vector<std::map<Slot, Place>> first_read_;
  // The version of a chunk that a lane keeps, by GPU, channel and chunk.
  std::map<std::tuple<uint32_t, int64_t, uint32_t>, uint64_t> versions_;
  uint64_t chunk_steps_ = 0;
  uint64_t turns_ = 0;
};

}  // namespace

std::shared_ptr<ExplicitAlgorithm> LoadMsccl(const std::string& path, const std::string& text,
                                             Diagnostics& diagnostics) {
  const std::optional<MscclProgram> program = ParseMscclProgram(path, text, diagnostics);
  if (!program) return nullptr;
  std::optional<MscclppPlan> plan = PlanOf(path, *program, diagnostics);
  if (!plan) return nullptr;
  if (IsOfLanes(*program)) {
    Diagnostics of_lanes;  // not the user's: the program may be right as a plan
    auto algorithm = LaneMaker(path, *program, of_lanes).Make();
    SchedulePlace place;
    if (algorithm && WhatIsWrong(algorithm, place).empty()) return algorithm;
  }
  return RunMscclppPlan(path, *std::move(plan), diagnostics);
}

}  // namespace railyard
