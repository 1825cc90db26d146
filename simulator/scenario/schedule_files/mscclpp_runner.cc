// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/schedule_files/mscclpp_runner.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/scenario/schedule_files/plan_memory.h"
#include "simulator/scenario/schedule_files/timed_steps.h"
#include "workloads/collectives/explicit_check.h"

namespace railyard {
namespace {

constexpr uint64_t kBlockTurnsMax = 100'000'000;  // most of which find that they have to wait

// Executes the thread blocks of a plan in turns.
class PlanRunner {
 public:
  PlanRunner(const std::string& path, MscclppPlan plan, Diagnostics& diagnostics)
      : plan_(std::move(plan)),
        gpu_count_(static_cast<uint32_t>(plan_.gpus.size())),
        memory_(path, plan_, diagnostics),
        arrivals_(gpu_count_),
        semaphores_(plan_.semaphores) {
    for (const auto& blocks : plan_.gpus) blocks_.emplace_back(blocks.size());
  }

  // Returns nullptr with a finding if the plan has no lanes, or these not its result.
  std::shared_ptr<ExplicitAlgorithm> RunAndCheck() {
    if (!RunBlocks() || !memory_.StoreResults()) return nullptr;
    auto algorithm = std::make_shared<ExplicitAlgorithm>();
    algorithm->kind = plan_.kind;
    algorithm->protocol = plan_.protocol;
    algorithm->rank_count = gpu_count_;
    algorithm->is_in_place = plan_.kind == CollectiveKind::kAllToAll && plan_.is_in_place;
    algorithm->chunk_count = plan_.chunk_count;
    algorithm->channel_count = std::min(BlocksWithData(), kAlgorithmChannelsMax);
    WriteLanes(memory_.TakeSteps(), kPlanStepsMax, *algorithm);
    SchedulePlace place;
    const std::string wrong = WhatIsWrong(algorithm, place);
    if (wrong.empty()) return algorithm;
    memory_.Fail(PlaceOf(*algorithm, place),
                 fmt::format("GPU {}, channel {} of the lanes that it becomes: {}", place.lane.rank,
                             place.lane.channel, wrong));
    return nullptr;
  }

 private:
  struct BlockState {
    size_t operation = 0;
    uint32_t element = 0;  // of the operation's chunks
    size_t source = 0;
    // The operands so far: the rank's own contribution, what its lane keeps, or both.
    bool adds_own = false;
    bool adds_kept = false;
    uint64_t kept_version = 0;
    PlanMemory::Value sum;
    std::optional<uint64_t> generation;  // of the barrier that it waits at
  };

  enum class Turn : uint8_t { kBlocked, kMoved, kDone, kFailed };

  // Returns the operation from which the step is.
  MscclppPlace PlaceOf(const ExplicitAlgorithm& algorithm, const SchedulePlace& place) const {
    const auto lanes = algorithm.lanes.find({place.lane.rank, place.lane.channel});
    if (!place.step || lanes == algorithm.lanes.end()) return {};
    const std::vector<ExplicitStep>& lane = lanes->second.at(place.lane.lane);
    return memory_.PlaceOf(lane[*place.step % lane.size()].source);
  }

  // --- Operations --------------------------------------------------------------------------------
  Turn Move(const MscclppOperation& operation, BlockState& state) {
    const MscclppChunks& source = operation.sources[state.source];
    const PlanMemory::Slot slot =
        memory_.SlotOf(source.gpu, source.buffer, source.index + state.element);
    auto value = memory_.ValueAt(source.gpu, slot);
    if (!value) return Missing(operation, source, state);
    Turn turn = Turn::kDone;
    if (value->holder) {
      if (!memory_.Fetch(source.gpu, slot, *value, operation.place)) return Turn::kFailed;
      turn = Turn::kMoved;
    }
    const bool is_only = operation.sources.size() == 1;
    for (size_t i = 0; i < operation.targets.size(); ++i) {
      if (is_only || i == state.source) {
        memory_.Write(operation.targets[i], state.element, source.gpu, *value);
      }
    }
    if (++state.source == operation.sources.size()) {
      state.source = 0;
      ++state.element;
    }
    return turn;
  }

  // Moves to the target what another GPU has put there; it is sent when it is needed.
  Turn Receive(const MscclppOperation& operation, RankIndex gpu, BlockState& state) {
    const MscclppChunks& source = operation.sources.front();
    const MscclppChunks& target = operation.targets.front();
    const PlanMemory::Slot from = memory_.SlotOf(gpu, source.buffer, source.index + state.element);
    const PlanMemory::Slot to = memory_.SlotOf(gpu, target.buffer, target.index + state.element);
    if (!memory_.Take(gpu, from, to)) return Turn::kBlocked;
    ++state.element;
    return Turn::kDone;
  }

  Turn Missing(const MscclppOperation& operation, const MscclppChunks& source,
               const BlockState& state) {
    if (operation.waits_for_data) return Turn::kBlocked;
    memory_.Fail(operation.place,
                 fmt::format("reads chunk {} of a buffer of GPU {}, in which nothing is",
                             source.index + state.element, source.gpu));
    return Turn::kFailed;
  }

  const MscclppChunks& OperandOf(const MscclppOperation& operation, const BlockState& state) const {
    const auto& instead = operation.instead_of_first;
    if (state.source == 0 && instead &&
        memory_.ValueAt(instead->gpu, memory_.SlotOf(instead->gpu, instead->buffer,
                                                     instead->index + state.element))) {
      return *instead;
    }
    return operation.sources[state.source];
  }

  // Adds one source; those of other GPUs are messages.
  Turn Reduce(const MscclppOperation& operation, RankIndex gpu, BlockState& state) {
    if (state.source == operation.sources.size()) return FinishReduction(operation, gpu, state);
    const MscclppChunks& source = OperandOf(operation, state);
    const PlanMemory::Slot slot =
        memory_.SlotOf(source.gpu, source.buffer, source.index + state.element);
    auto value = memory_.ValueAt(source.gpu, slot);
    if (!value) return Missing(operation, source, state);
    const bool is_empty = !state.adds_own && !state.adds_kept;
    if (!is_empty && value->chunk != state.sum.chunk) {
      memory_.Fail(operation.place,
                   fmt::format("reduces chunk {} with chunk {}", state.sum.chunk, value->chunk));
      return Turn::kFailed;
    }
    if (source.gpu != gpu && value->holder &&
        !memory_.Fetch(source.gpu, slot, *value, operation.place)) {
      return Turn::kFailed;
    }
    ++state.source;
    if (source.gpu == gpu && !value->holder) return AddLocal(operation, gpu, *value, state);
    const RankIndex holder = value->holder.value_or(source.gpu);
    const bool is_sent = value->holder ? memory_.SendToSlot(gpu, slot, *value, operation.place)
                                       : memory_.SendNow(holder, gpu, *value, operation.place);
    if (!is_sent) return Turn::kFailed;
    if (value->holder) memory_.NoteRead(gpu, slot, *value);
    ExplicitStep step = Sum(state, value->chunk);
    step.step.recv_from = static_cast<int32_t>(holder);
    step.step.reduce = !is_empty;
    return KeepSum(operation, gpu, step, state) ? Turn::kMoved : Turn::kFailed;
  }

  Turn AddLocal(const MscclppOperation& operation, RankIndex gpu, const PlanMemory::Value& value,
                BlockState& state) {
    bool& adds = value.is_own ? state.adds_own : state.adds_kept;
    if (adds) {
      memory_.Fail(operation.place, "reduces two values of one chunk that the GPU itself holds");
      return Turn::kFailed;
    }
    if (!memory_.IsCurrent(gpu, value, operation.place)) return Turn::kFailed;
    adds = true;
    state.sum = value;
    if (!value.is_own) state.kept_version = value.version;
    return Turn::kDone;
  }

  static ExplicitStep Sum(const BlockState& state, uint32_t chunk) {
    ExplicitStep step{.chunk = chunk};
    step.step.load_local = state.adds_own;
    step.step.load_kept = state.adds_kept;
    step.step.keep = true;
    return step;
  }
  bool KeepSum(const MscclppOperation& operation, RankIndex gpu, const ExplicitStep& step,
               BlockState& state) {
    const PlanMemory::Value kept{.chunk = step.chunk, .version = state.kept_version};
    if (state.adds_kept && !memory_.IsCurrent(gpu, kept, operation.place)) return false;
    if (!memory_.SendHeld(gpu, step.chunk, operation.place) ||
        !memory_.AddStep(gpu, step, operation.place)) {
      return false;
    }
    state.sum = memory_.Keep(gpu, step.chunk);
    state.kept_version = state.sum.version;
    state.adds_own = false;
    state.adds_kept = true;
    return true;
  }

  Turn FinishReduction(const MscclppOperation& operation, RankIndex gpu, BlockState& state) {
    if (state.adds_own && state.adds_kept) {
      ExplicitStep step = Sum(state, state.sum.chunk);
      step.step.reduce = true;
      if (!KeepSum(operation, gpu, step, state)) return Turn::kFailed;
    }
    for (const MscclppChunks& target : operation.targets) {
      memory_.Write(target, state.element, gpu, state.sum);
    }
    state.source = 0;
    ++state.element;
    state.adds_own = state.adds_kept = false;
    return Turn::kDone;
  }

  // --- Synchronization ---------------------------------------------------------------------------
  void Signal(const MscclppOperation& operation, RankIndex gpu) {
    for (const MscclppChannel& channel : operation.channels) {
      ++signals_[{gpu, channel.peer, channel.is_port, channel.number}];
    }
  }
  bool Wait(const MscclppOperation& operation, RankIndex gpu) {
    const auto signals = [&](const MscclppChannel& channel) -> int64_t& {
      return signals_[{channel.peer, gpu, channel.is_port, channel.number}];
    };
    for (const MscclppChannel& channel : operation.channels) {
      if (signals(channel) == 0) return false;
    }
    for (const MscclppChannel& channel : operation.channels) --signals(channel);
    return true;
  }
  bool Barrier(const MscclppOperation& operation, RankIndex gpu, BlockState& state) {
    uint64_t& arrivals = arrivals_[gpu][operation.numbers.front()];
    const uint64_t count = std::max<uint64_t>(1, operation.block_count);
    if (!state.generation) state.generation = arrivals++ / count;
    if (arrivals < (*state.generation + 1) * count) return false;
    state.generation.reset();
    return true;
  }
  bool Acquire(const MscclppOperation& operation, RankIndex gpu) {
    for (const uint32_t number : operation.numbers) {
      if (semaphores_[gpu][number] == 0) return false;
    }
    for (const uint32_t number : operation.numbers) --semaphores_[gpu][number];
    return true;
  }

  static bool HasData(const MscclppOperation& operation) {
    return operation.kind == MscclppKind::kMove || operation.kind == MscclppKind::kReceive ||
           operation.kind == MscclppKind::kReduce;
  }
  Turn RunElement(const MscclppOperation& operation, RankIndex gpu, BlockState& state) {
    if (operation.kind == MscclppKind::kMove) return Move(operation, state);
    if (operation.kind == MscclppKind::kReceive) return Receive(operation, gpu, state);
    return Reduce(operation, gpu, state);
  }

  // Goes on until a message is on its way, or the block has to wait or has ended.
  Turn RunBlock(RankIndex gpu, uint32_t block) {
    const std::vector<MscclppOperation>& operations = plan_.gpus[gpu][block];
    BlockState& state = blocks_[gpu][block];
    bool has_moved = false;
    while (state.operation < operations.size()) {
      const MscclppOperation& operation = operations[state.operation];
      if (HasData(operation) && state.element < operation.sources.front().size) {
        if (++turn_count_ > kPlanStepsMax) {
          memory_.Fail(operation.place,
                       fmt::format("is behind {} operations on one chunk", kPlanStepsMax));
          return Turn::kFailed;
        }
        const Turn turn = RunElement(operation, gpu, state);
        if (turn == Turn::kBlocked) return has_moved ? Turn::kMoved : Turn::kBlocked;
        if (turn != Turn::kDone) return turn;
        has_moved = true;
        continue;
      }
      if (!PassSynchronization(operation, gpu, state)) {
        return has_moved ? Turn::kMoved : Turn::kBlocked;
      }
      has_moved = true;
      state.element = 0;
      ++state.operation;
    }
    return has_moved ? Turn::kMoved : Turn::kDone;
  }
  bool PassSynchronization(const MscclppOperation& operation, RankIndex gpu, BlockState& state) {
    switch (operation.kind) {
      case MscclppKind::kWait:
        return Wait(operation, gpu);
      case MscclppKind::kBarrier:
        return Barrier(operation, gpu, state);
      case MscclppKind::kAcquire:
        return Acquire(operation, gpu);
      case MscclppKind::kRelease:
        for (const uint32_t number : operation.numbers) ++semaphores_[gpu][number];
        return true;
      case MscclppKind::kSignal:
        Signal(operation, gpu);
        return true;
      default:
        if (operation.signals) Signal(operation, gpu);
        return true;
    }
  }

  bool RunBlocks() {
    size_t blocks_max = 0;
    for (const auto& blocks : plan_.gpus) blocks_max = std::max(blocks_max, blocks.size());
    bool is_done = false;
    for (bool has_moved = true; has_moved;) {
      has_moved = false;
      is_done = true;
      memory_.BeginRound();
      for (uint32_t block = 0; block < blocks_max; ++block) {
        for (RankIndex gpu{0}; gpu < gpu_count_; ++gpu) {
          if (block >= plan_.gpus[gpu].size()) continue;
          if (++block_turn_count_ > kBlockTurnsMax) {
            return memory_.Fail(
                {}, fmt::format("needs more than {} turns of thread blocks", kBlockTurnsMax));
          }
          const Turn turn = RunBlock(gpu, block);
          if (turn == Turn::kFailed) return false;
          has_moved = has_moved || turn == Turn::kMoved;
          is_done = is_done && turn == Turn::kDone;
        }
      }
    }
    if (is_done) return true;
    for (RankIndex gpu{0}; gpu < gpu_count_; ++gpu) {
      for (size_t block = 0; block < plan_.gpus[gpu].size(); ++block) {
        const auto& operations = plan_.gpus[gpu][block];
        if (blocks_[gpu][block].operation == operations.size()) continue;
        return memory_.Fail(operations[blocks_[gpu][block].operation].place, "waits for ever");
      }
    }
    return false;
  }

  uint32_t BlocksWithData() const {
    uint32_t blocks_max = 1;
    for (const auto& blocks : plan_.gpus) {
      const auto count = std::ranges::count_if(
          blocks, [](const auto& operations) { return std::ranges::any_of(operations, HasData); });
      blocks_max = std::max(blocks_max, static_cast<uint32_t>(count));
    }
    return blocks_max;
  }

  const MscclppPlan plan_;
  const uint32_t gpu_count_;
  PlanMemory memory_;
  std::vector<std::vector<BlockState>> blocks_;
  // Signals that were not waited for yet, by sender, receiver and their channel.
  std::map<std::tuple<RankIndex, RankIndex, bool, uint32_t>, int64_t> signals_;
  std::vector<std::map<uint32_t, uint64_t>> arrivals_;  // by GPU and barrier
  std::vector<std::vector<int64_t>> semaphores_;
  uint64_t turn_count_ = 0;  // of operations on a chunk
  uint64_t block_turn_count_ = 0;
};

}  // namespace

std::shared_ptr<ExplicitAlgorithm> RunMscclppPlan(const std::string& path, MscclppPlan plan,
                                                  Diagnostics& diagnostics) {
  return PlanRunner(path, std::move(plan), diagnostics).RunAndCheck();
}

}  // namespace railyard
