// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/load/mscclpp_runner.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/scenario/load/buffer_chunks.h"
#include "simulator/scenario/load/timed_steps.h"
#include "workloads/collectives/explicit_check.h"

namespace railyard {
namespace {

constexpr uint64_t kStepsMax = 10'000'000;        // over all ranks and channels
constexpr uint64_t kBlockTurnsMax = 100'000'000;  // most of which find that they have to wait

ExplicitStep StepOn(uint32_t chunk) {
  ExplicitStep step;
  step.chunk = chunk;
  return step;
}

class PlanRunner {
 public:
  PlanRunner(const std::string& path, MscclppPlan plan, Diagnostics& diagnostics)
      : path_(path),
        plan_(std::move(plan)),
        diagnostics_(diagnostics),
        gpu_count_(static_cast<uint32_t>(plan_.gpus.size())),
        chunks_(plan_.kind, gpu_count_, plan_.chunk_count),
        slots_(gpu_count_),
        kept_(gpu_count_),
        held_(gpu_count_),
        lanes_(gpu_count_),
        arrivals_(gpu_count_),
        semaphores_(plan_.semaphores) {
    for (uint32_t gpu = 0; gpu < gpu_count_; ++gpu) {
      gpu_places_.push_back({.name = fmt::format("gpus[{}]", gpu)});
    }
  }

  // Returns nullptr with a finding if the plan has no lanes, or these not its result.
  std::shared_ptr<ExplicitAlgorithm> RunAndCheck() {
    if (!Run()) return nullptr;
    SchedulePlace place;
    const std::string wrong = WhatIsWrong(algorithm_, place);
    if (wrong.empty()) return algorithm_;
    Fail(PlaceOf(place), fmt::format("GPU {}, channel {} of the lanes that it becomes: {}",
                                     place.lane.rank, place.lane.channel, wrong));
    return nullptr;
  }

 private:
  bool Run() {
    algorithm_->kind = plan_.kind;
    algorithm_->protocol = plan_.protocol;
    algorithm_->rank_count = gpu_count_;
    algorithm_->is_in_place = plan_.kind == CollectiveKind::kAllToAll && plan_.is_in_place;
    for (const auto& blocks : plan_.gpus) blocks_.emplace_back(blocks.size());
    if (!RunBlocks() || !StoreResults()) return false;
    DropUnread();
    algorithm_->chunk_count = plan_.chunk_count;
    algorithm_->channel_count = std::min(BlocksWithData(), kAlgorithmChannelsMax);
    WriteLanes(std::move(lanes_), kStepsMax, *algorithm_);
    return true;
  }
  // Returns the operation from which the step is.
  MscclppPlace PlaceOf(const SchedulePlace& place) const {
    const auto lanes = algorithm_->lanes.find({place.lane.rank, place.lane.channel});
    if (!place.step || lanes == algorithm_->lanes.end()) return {};
    const std::vector<ExplicitStep>& lane = lanes->second.at(place.lane.lane);
    const uint32_t source = lane[*place.step % lane.size()].source;
    return source == 0 ? MscclppPlace() : *places_[source - 1];
  }

  // The contents of a slot: the rank's own contribution to a chunk, or what its lane keeps of it in
  // a version. `holder`: the GPU from which the slot's has not kept it yet; `is_sent`: it has sent
  // it; `is_read`: the slot's GPU has received it into a sum.
  struct Value {
    uint32_t chunk = 0;
    bool is_own = false;
    uint64_t version = 0;
    std::optional<uint32_t> holder = {};
    bool is_sent = false;
    bool is_read = false;
    uint64_t put_at = 0;  // the number of steps after which it could be sent
  };
  // A message that was sent before its receiver needed it, by its slot there and the sender's step.
  struct Message {
    std::pair<MscclppBuffer, uint32_t> slot;
    size_t step = 0;
  };
  struct Kept {
    uint64_t version = 0;
    size_t step = 0;  // that made it
  };
  using Slot = std::pair<MscclppBuffer, uint32_t>;

  struct BlockState {
    size_t operation = 0;
    uint32_t element = 0;  // of the operation's chunks
    size_t source = 0;
    // The operands so far: the rank's own contribution, what its lane keeps, or both.
    bool adds_own = false;
    bool adds_kept = false;
    uint64_t kept_version = 0;
    Value sum;
    std::optional<uint64_t> generation;  // of the barrier that it waits at
  };

  enum class Turn : uint8_t { kBlocked, kMoved, kDone, kFailed };

  bool Fail(const MscclppPlace& place, const std::string& what) {
    diagnostics_.Error({.file = path_, .line = place.line, .column = place.line > 0 ? 1 : 0},
                       place.name, what);
    return false;
  }

  // --- Slots -------------------------------------------------------------------------------------
  // In place, chunks of the smaller buffer lie in the larger one.
  Slot SlotOf(uint32_t gpu, MscclppBuffer buffer, uint32_t index) const {
    if (!plan_.is_in_place || buffer != MscclppBuffer::kOutput) return {buffer, index};
    const uint32_t block = gpu * plan_.chunk_count;
    if (chunks_.InputCount() == chunks_.OutputCount()) return {MscclppBuffer::kInput, index};
    if (plan_.kind == CollectiveKind::kReduceScatter) return {MscclppBuffer::kInput, block + index};
    if (index < block || index >= block + plan_.chunk_count) return {buffer, index};
    return {MscclppBuffer::kInput, index - block};
  }
  std::optional<Value> ValueAt(uint32_t gpu, const Slot& slot) const {
    const auto at = slots_[gpu].find(slot);
    if (at != slots_[gpu].end()) return at->second;
    if (slot.first != MscclppBuffer::kInput || slot.second >= chunks_.InputCount()) {
      return std::nullopt;
    }
    return Value{.chunk = chunks_.OfInput(gpu, slot.second), .is_own = true};
  }
  void Write(const MscclppChunks& chunks, uint32_t element, uint32_t by, Value value) {
    const Slot slot = SlotOf(chunks.gpu, chunks.buffer, chunks.index + element);
    if (chunks.gpu != by) {
      value.holder = by;
      value.is_sent = value.is_read = false;
      value.put_at = PossibleAt(by, value);
      if (!value.is_own) held_[by][value.chunk].emplace_back(chunks.gpu, slot);
    }
    Replace(chunks.gpu, slot, value);
  }
  // Writes a slot. A message that was to be received there is not sent, since nobody has read it.
  void Replace(uint32_t gpu, const Slot& slot, const Value& value) {
    const auto [at, is_new] = slots_[gpu].try_emplace(slot, value);
    if (is_new) return;
    const Value before = std::exchange(at->second, value);
    if (!before.is_sent) return;
    std::deque<Message>& sent = UnderWay(*before.holder, gpu, before.chunk);
    const auto message = std::ranges::find(sent, slot, &Message::slot);
    unread_[*before.holder].insert(message->step);
    sent.erase(message);
  }

  // --- Steps -------------------------------------------------------------------------------------
  bool AddStep(uint32_t gpu, ExplicitStep step, const MscclppPlace& place) {
    if (++step_count_ > kStepsMax) return Fail(place, fmt::format("more than {} steps", kStepsMax));
    if (place.line != 0 || !place.name.empty()) {
      if (places_.empty() || places_.back() != &place) places_.push_back(&place);
      step.source = static_cast<uint32_t>(places_.size());
    }
    lanes_[gpu].push_back({.made = step, .at = step_count_, .possible_at = step_count_});
    return true;
  }
  Value Keep(uint32_t gpu, uint32_t chunk) {
    Kept& kept = kept_[gpu][chunk];
    ++kept.version;
    kept.step = lanes_[gpu].size() - 1;
    return {.chunk = chunk, .version = kept.version};
  }
  bool IsCurrent(uint32_t gpu, const Value& value, const MscclppPlace& place) {
    if (value.is_own || kept_[gpu][value.chunk].version == value.version) return true;
    return Fail(place, fmt::format("needs chunk {} of GPU {} as it was before it was reduced or "
                                   "received again",
                                   value.chunk, gpu));
  }
  bool Send(uint32_t from, uint32_t to, const Value& value, const MscclppPlace& place) {
    if (!IsCurrent(from, value, place)) return false;
    ExplicitStep step = StepOn(value.chunk);
    step.step.send_to = static_cast<int32_t>(to);
    step.step.load_local = value.is_own;
    step.step.load_kept = !value.is_own;
    if (!AddStep(from, step, place)) return false;
    lanes_[from].back().possible_at = value.holder ? value.put_at : PossibleAt(from, value);
    return true;
  }
  // Thread blocks put and read at the same time in a round, if their values are there.
  uint64_t PossibleAt(uint32_t gpu, const Value& value) const {
    if (value.is_own) return round_begin_;
    return std::max(round_begin_, lanes_[gpu][kept_[gpu].at(value.chunk).step].at);
  }
  // Sends what slots of other GPUs have of a chunk that the GPU is about to keep anew. They receive
  // it when they need it.
  bool SendHeld(uint32_t gpu, uint32_t chunk, const MscclppPlace& place) {
    for (const auto& [to, slot] : std::exchange(held_[gpu][chunk], {})) {
      const auto at = slots_[to].find(slot);
      if (at == slots_[to].end()) continue;
      Value& value = at->second;
      const bool waits = value.holder == gpu && !value.is_own && value.chunk == chunk &&
                         !value.is_sent && !value.is_read &&
                         value.version == kept_[gpu][chunk].version;
      if (!waits) continue;
      if (!Send(gpu, to, value, place)) return false;
      value.is_sent = true;
      UnderWay(gpu, to, chunk).push_back({.slot = slot, .step = lanes_[gpu].size() - 1});
    }
    return true;
  }
  std::deque<Message>& UnderWay(uint32_t from, uint32_t to, uint32_t chunk) {
    return under_way_[{from, to, chunk}];
  }
  // Sends the value of a slot to its GPU, unless that has been done. What two GPUs have of one
  // chunk is received in the order in which it was sent.
  bool SendToSlot(uint32_t gpu, const Slot& slot, const Value& value, const MscclppPlace& place) {
    if (!value.is_sent) return SendNow(*value.holder, gpu, value, place);
    std::deque<Message>& sent = UnderWay(*value.holder, gpu, value.chunk);
    if (sent.front().slot != slot) return FailOvertaken(*value.holder, value, place);
    sent.pop_front();
    return true;
  }
  bool SendNow(uint32_t from, uint32_t to, const Value& value, const MscclppPlace& place) {
    if (!UnderWay(from, to, value.chunk).empty()) return FailOvertaken(from, value, place);
    return Send(from, to, value, place);
  }
  bool FailOvertaken(uint32_t holder, const Value& value, const MscclppPlace& place) {
    return Fail(place, fmt::format("needs chunk {} of GPU {} before what was put of it earlier, "
                                   "and that GPU has kept anew since",
                                   value.chunk, holder));
  }
  // Sends what another GPU holds to the slot's GPU, which keeps it.
  bool Fetch(uint32_t gpu, const Slot& slot, Value& value, const MscclppPlace& place) {
    const uint32_t holder = *value.holder;
    ExplicitStep step = StepOn(value.chunk);
    step.step.recv_from = static_cast<int32_t>(holder);
    step.step.keep = true;
    if (!SendHeld(gpu, value.chunk, place) || !SendToSlot(gpu, slot, value, place) ||
        !AddStep(gpu, step, place)) {
      return false;
    }
    value = Keep(gpu, value.chunk);
    slots_[gpu][slot] = value;
    return true;
  }

  // --- Operations --------------------------------------------------------------------------------
  Turn Move(const MscclppOperation& operation, BlockState& state) {
    const MscclppChunks& source = operation.sources[state.source];
    const Slot slot = SlotOf(source.gpu, source.buffer, source.index + state.element);
    auto value = ValueAt(source.gpu, slot);
    if (!value) return Missing(operation, source, state);
    Turn turn = Turn::kDone;
    if (value->holder) {
      if (!Fetch(source.gpu, slot, *value, operation.place)) return Turn::kFailed;
      turn = Turn::kMoved;
    }
    const bool is_only = operation.sources.size() == 1;
    for (size_t i = 0; i < operation.targets.size(); ++i) {
      if (is_only || i == state.source) {
        Write(operation.targets[i], state.element, source.gpu, *value);
      }
    }
    if (++state.source == operation.sources.size()) {
      state.source = 0;
      ++state.element;
    }
    return turn;
  }

  // Moves to the target what another GPU has put there; it is sent when it is needed.
  Turn Receive(const MscclppOperation& operation, uint32_t gpu, BlockState& state) {
    const MscclppChunks& source = operation.sources.front();
    const MscclppChunks& target = operation.targets.front();
    const Slot from = SlotOf(gpu, source.buffer, source.index + state.element);
    const auto at = slots_[gpu].find(from);
    if (at == slots_[gpu].end()) return Turn::kBlocked;
    const Slot to = SlotOf(gpu, target.buffer, target.index + state.element);
    ++state.element;
    if (to == from) return Turn::kDone;
    const Value value = at->second;
    slots_[gpu].erase(at);
    Replace(gpu, to, value);
    if (value.is_own || !value.holder) return Turn::kDone;
    held_[*value.holder][value.chunk].emplace_back(gpu, to);
    for (Message& message : UnderWay(*value.holder, gpu, value.chunk)) {
      if (message.slot == from) message.slot = to;
    }
    return Turn::kDone;
  }

  Turn Missing(const MscclppOperation& operation, const MscclppChunks& source,
               const BlockState& state) {
    if (operation.waits_for_data) return Turn::kBlocked;
    Fail(operation.place, fmt::format("reads chunk {} of a buffer of GPU {}, in which nothing is",
                                      source.index + state.element, source.gpu));
    return Turn::kFailed;
  }

  const MscclppChunks& OperandOf(const MscclppOperation& operation, const BlockState& state) const {
    const auto& instead = operation.instead_of_first;
    if (state.source == 0 && instead &&
        ValueAt(instead->gpu,
                SlotOf(instead->gpu, instead->buffer, instead->index + state.element))) {
      return *instead;
    }
    return operation.sources[state.source];
  }

  // Adds one source; those of other GPUs are messages.
  Turn Reduce(const MscclppOperation& operation, uint32_t gpu, BlockState& state) {
    if (state.source == operation.sources.size()) return FinishReduction(operation, gpu, state);
    const MscclppChunks& source = OperandOf(operation, state);
    const Slot slot = SlotOf(source.gpu, source.buffer, source.index + state.element);
    auto value = ValueAt(source.gpu, slot);
    if (!value) return Missing(operation, source, state);
    const bool is_empty = !state.adds_own && !state.adds_kept;
    if (!is_empty && value->chunk != state.sum.chunk) {
      Fail(operation.place,
           fmt::format("reduces chunk {} with chunk {}", state.sum.chunk, value->chunk));
      return Turn::kFailed;
    }
    if (source.gpu != gpu && value->holder && !Fetch(source.gpu, slot, *value, operation.place)) {
      return Turn::kFailed;
    }
    ++state.source;
    if (source.gpu == gpu && !value->holder) return AddLocal(operation, gpu, *value, state);
    const uint32_t holder = value->holder.value_or(source.gpu);
    const bool is_sent = value->holder ? SendToSlot(gpu, slot, *value, operation.place)
                                       : SendNow(holder, gpu, *value, operation.place);
    if (!is_sent) return Turn::kFailed;
    if (value->holder) {  // whoever reads it again receives it again
      value->is_sent = false;
      value->is_read = true;
      slots_[gpu][slot] = *value;
    }
    ExplicitStep step = Sum(state, value->chunk);
    step.step.recv_from = static_cast<int32_t>(holder);
    step.step.reduce = !is_empty;
    return KeepSum(operation, gpu, step, state) ? Turn::kMoved : Turn::kFailed;
  }

  Turn AddLocal(const MscclppOperation& operation, uint32_t gpu, const Value& value,
                BlockState& state) {
    bool& adds = value.is_own ? state.adds_own : state.adds_kept;
    if (adds) {
      Fail(operation.place, "reduces two values of one chunk that the GPU itself holds");
      return Turn::kFailed;
    }
    if (!IsCurrent(gpu, value, operation.place)) return Turn::kFailed;
    adds = true;
    state.sum = value;
    if (!value.is_own) state.kept_version = value.version;
    return Turn::kDone;
  }

  static ExplicitStep Sum(const BlockState& state, uint32_t chunk) {
    ExplicitStep step = StepOn(chunk);
    step.step.load_local = state.adds_own;
    step.step.load_kept = state.adds_kept;
    step.step.keep = true;
    return step;
  }
  bool KeepSum(const MscclppOperation& operation, uint32_t gpu, const ExplicitStep& step,
               BlockState& state) {
    const Value kept{.chunk = step.chunk, .version = state.kept_version};
    if (state.adds_kept && !IsCurrent(gpu, kept, operation.place)) return false;
    if (!SendHeld(gpu, step.chunk, operation.place) || !AddStep(gpu, step, operation.place)) {
      return false;
    }
    state.sum = Keep(gpu, step.chunk);
    state.kept_version = state.sum.version;
    state.adds_own = false;
    state.adds_kept = true;
    return true;
  }

  Turn FinishReduction(const MscclppOperation& operation, uint32_t gpu, BlockState& state) {
    if (state.adds_own && state.adds_kept) {
      ExplicitStep step = Sum(state, state.sum.chunk);
      step.step.reduce = true;
      if (!KeepSum(operation, gpu, step, state)) return Turn::kFailed;
    }
    for (const MscclppChunks& target : operation.targets) {
      Write(target, state.element, gpu, state.sum);
    }
    state.source = 0;
    ++state.element;
    state.adds_own = state.adds_kept = false;
    return Turn::kDone;
  }

  // --- Synchronization
  // -----------------------------------------------------------------------------
  void Signal(const MscclppOperation& operation, uint32_t gpu) {
    for (const MscclppChannel& channel : operation.channels) {
      ++signals_[{gpu, channel.peer, channel.is_port, channel.number}];
    }
  }
  bool Wait(const MscclppOperation& operation, uint32_t gpu) {
    const auto signals = [&](const MscclppChannel& channel) -> int64_t& {
      return signals_[{channel.peer, gpu, channel.is_port, channel.number}];
    };
    for (const MscclppChannel& channel : operation.channels) {
      if (signals(channel) == 0) return false;
    }
    for (const MscclppChannel& channel : operation.channels) --signals(channel);
    return true;
  }
  bool Barrier(const MscclppOperation& operation, uint32_t gpu, BlockState& state) {
    uint64_t& arrivals = arrivals_[gpu][operation.numbers.front()];
    const uint64_t count = std::max<uint64_t>(1, operation.block_count);
    if (!state.generation) state.generation = arrivals++ / count;
    if (arrivals < (*state.generation + 1) * count) return false;
    state.generation.reset();
    return true;
  }
  bool Acquire(const MscclppOperation& operation, uint32_t gpu) {
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
  Turn RunElement(const MscclppOperation& operation, uint32_t gpu, BlockState& state) {
    if (operation.kind == MscclppKind::kMove) return Move(operation, state);
    if (operation.kind == MscclppKind::kReceive) return Receive(operation, gpu, state);
    return Reduce(operation, gpu, state);
  }

  // Goes on until a message is on its way, or the block has to wait or has ended.
  Turn RunBlock(uint32_t gpu, uint32_t block) {
    const std::vector<MscclppOperation>& operations = plan_.gpus[gpu][block];
    BlockState& state = blocks_[gpu][block];
    bool has_moved = false;
    while (state.operation < operations.size()) {
      const MscclppOperation& operation = operations[state.operation];
      if (HasData(operation) && state.element < operation.sources.front().size) {
        if (++turn_count_ > kStepsMax) {
          Fail(operation.place, fmt::format("is behind {} operations on one chunk", kStepsMax));
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
  bool PassSynchronization(const MscclppOperation& operation, uint32_t gpu, BlockState& state) {
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
      round_begin_ = step_count_;
      for (uint32_t block = 0; block < blocks_max; ++block) {
        for (uint32_t gpu = 0; gpu < gpu_count_; ++gpu) {
          if (block >= plan_.gpus[gpu].size()) continue;
          if (++block_turn_count_ > kBlockTurnsMax) {
            return Fail({},
                        fmt::format("needs more than {} turns of thread blocks", kBlockTurnsMax));
          }
          const Turn turn = RunBlock(gpu, block);
          if (turn == Turn::kFailed) return false;
          has_moved = has_moved || turn == Turn::kMoved;
          is_done = is_done && turn == Turn::kDone;
        }
      }
    }
    if (is_done) return true;
    for (uint32_t gpu = 0; gpu < gpu_count_; ++gpu) {
      for (size_t block = 0; block < plan_.gpus[gpu].size(); ++block) {
        const auto& operations = plan_.gpus[gpu][block];
        if (blocks_[gpu][block].operation == operations.size()) continue;
        return Fail(operations[blocks_[gpu][block].operation].place, "waits for ever");
      }
    }
    return false;
  }

  // --- The result --------------------------------------------------------------------------------
  // Each rank begins with another chunk, so that transfers that only the result needs are spread.
  bool StoreResults() {
    const uint32_t chunks = chunks_.OutputCount();
    for (uint32_t i = 0; i < chunks; ++i) {
      for (uint32_t gpu = 0; gpu < gpu_count_; ++gpu) {
        const uint64_t first = uint64_t{gpu} * chunks / gpu_count_;
        const auto index = static_cast<uint32_t>((first + i) % chunks);
        if (!StoreResult(gpu, SlotOf(gpu, MscclppBuffer::kOutput, index), index)) return false;
      }
    }
    return true;
  }
  bool StoreResult(uint32_t gpu, const Slot& slot, uint32_t index) {
    const MscclppPlace& place = gpu_places_[gpu];
    auto value = ValueAt(gpu, slot);
    if (!value) return Fail(place, fmt::format("chunk {} of the result is not written", index));
    const uint32_t expected = chunks_.OfOutput(gpu, index);
    if (value->chunk != expected) {
      return Fail(place, fmt::format("leaves chunk {} in slot {} of the result (expected chunk {})",
                                     value->chunk, index, expected));
    }
    if (value->holder && !Fetch(gpu, slot, *value, place)) return false;
    if (value->is_own && algorithm_->is_in_place) return true;
    if (value->is_own) {
      ExplicitStep step = StepOn(value->chunk);
      step.step.load_local = step.step.store = true;
      return AddStep(gpu, step, place);
    }
    if (!IsCurrent(gpu, *value, place)) return false;
    lanes_[gpu][kept_[gpu][value->chunk].step].made.step.store = true;
    return true;
  }

  // Removes messages that nobody has read by the end.
  void DropUnread() {
    for (const auto& [connection, messages] : under_way_) {
      for (const Message& message : messages) {
        unread_[std::get<0>(connection)].insert(message.step);
      }
    }
    for (const auto& [gpu, steps] : unread_) {
      std::vector<TimedStep> rest;
      for (size_t i = 0; i < lanes_[gpu].size(); ++i) {
        if (!steps.contains(i)) rest.push_back(lanes_[gpu][i]);
      }
      lanes_[gpu] = std::move(rest);
    }
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

  const std::string& path_;
  const MscclppPlan plan_;
  Diagnostics& diagnostics_;
  const uint32_t gpu_count_;
  const BufferChunks chunks_;
  std::shared_ptr<ExplicitAlgorithm> algorithm_ = std::make_shared<ExplicitAlgorithm>();
  std::vector<std::vector<BlockState>> blocks_;
  std::vector<std::map<Slot, Value>> slots_;    // by GPU; own contributions left out
  std::vector<std::map<uint32_t, Kept>> kept_;  // by GPU and chunk
  // By GPU and chunk: slots of others that it is to send to, and may have been written since.
  std::vector<std::map<uint32_t, std::vector<std::pair<uint32_t, Slot>>>> held_;
  // By sender, receiver and chunk: messages that were sent and not received yet.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::deque<Message>> under_way_;
  std::map<uint32_t, std::set<size_t>> unread_;  // steps that send in vain, by GPU
  std::vector<std::vector<TimedStep>> lanes_;    // by GPU
  std::map<std::tuple<uint32_t, uint32_t, bool, uint32_t>, int64_t> signals_;  // not waited for yet
  std::vector<std::map<uint32_t, uint64_t>> arrivals_;                         // by GPU and barrier
  std::vector<std::vector<int64_t>> semaphores_;
  std::vector<MscclppPlace> gpu_places_;     // "gpus[0]"
  std::vector<const MscclppPlace*> places_;  // of steps, by ExplicitStep::source less one
  uint64_t step_count_ = 0;
  uint64_t round_begin_ = 0;  // the number of steps before the thread blocks' current turns
  uint64_t turn_count_ = 0;   // of operations on a chunk
  uint64_t block_turn_count_ = 0;
};

}  // namespace

std::shared_ptr<ExplicitAlgorithm> RunMscclppPlan(const std::string& path, MscclppPlan plan,
                                                  Diagnostics& diagnostics) {
  return PlanRunner(path, std::move(plan), diagnostics).RunAndCheck();
}

}  // namespace railyard
