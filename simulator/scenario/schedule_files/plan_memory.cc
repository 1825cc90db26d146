// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/schedule_files/plan_memory.h"

#include <algorithm>

#include <fmt/format.h>

namespace railyard {
PlanMemory::PlanMemory(const std::string& path, const MscclppPlan& plan, Diagnostics& diagnostics)
    : path_(path),
      plan_(plan),
      diagnostics_(diagnostics),
      gpu_count_(static_cast<uint32_t>(plan.gpus.size())),
      chunks_(plan.kind, gpu_count_, plan.chunk_count),
      slots_(gpu_count_),
      kept_(gpu_count_),
      held_(gpu_count_),
      steps_(gpu_count_) {
  for (RankIndex gpu{0}; gpu < gpu_count_; ++gpu) {
    gpu_places_.push_back({.name = fmt::format("gpus[{}]", gpu)});
  }
}

bool PlanMemory::Fail(const MscclppPlace& place, const std::string& what) {
  diagnostics_.Error({.file = path_, .line = place.line, .column = place.line > 0 ? 1 : 0},
                     place.name, what);
  return false;
}

PlanMemory::Slot PlanMemory::SlotOf(RankIndex gpu, MscclppBuffer buffer, uint32_t index) const {
  if (!plan_.is_in_place || buffer != MscclppBuffer::kOutput) return {buffer, index};
  const uint32_t block = gpu * plan_.chunk_count;
  if (chunks_.InputCount() == chunks_.OutputCount()) return {MscclppBuffer::kInput, index};
  if (plan_.kind == CollectiveKind::kReduceScatter) return {MscclppBuffer::kInput, block + index};
  if (index < block || index >= block + plan_.chunk_count) return {buffer, index};
  return {MscclppBuffer::kInput, index - block};
}

std::optional<PlanMemory::Value> PlanMemory::ValueAt(RankIndex gpu, const Slot& slot) const {
  const auto at = slots_[gpu].find(slot);
  if (at != slots_[gpu].end()) return at->second;
  if (slot.first != MscclppBuffer::kInput || slot.second >= chunks_.InputCount()) {
    return std::nullopt;
  }
  return Value{.chunk = chunks_.OfInput(gpu, slot.second), .is_own = true};
}

void PlanMemory::Write(const MscclppChunks& chunks, uint32_t element, RankIndex by, Value value) {
  const Slot slot = SlotOf(chunks.gpu, chunks.buffer, chunks.index + element);
  if (chunks.gpu != by) {
    value.holder = by;
    value.is_sent = value.is_read = false;
    value.put_at = PossibleAt(by, value);
    if (!value.is_own) held_[by][value.chunk].emplace_back(chunks.gpu, slot);
  }
  Replace(chunks.gpu, slot, value);
}

void PlanMemory::Replace(RankIndex gpu, const Slot& slot, const Value& value) {
  const auto [at, is_new] = slots_[gpu].try_emplace(slot, value);
  if (is_new) return;
  const Value before = std::exchange(at->second, value);
  if (!before.is_sent) return;
  std::deque<Message>& sent = UnderWay(*before.holder, gpu, before.chunk);
  const auto message = std::ranges::find(sent, slot, &Message::slot);
  unread_[*before.holder].insert(message->step);
  sent.erase(message);
}

bool PlanMemory::Take(RankIndex gpu, const Slot& from, const Slot& to) {
  const auto at = slots_[gpu].find(from);
  if (at == slots_[gpu].end()) return false;
  if (to == from) return true;
  const Value value = at->second;
  slots_[gpu].erase(at);
  Replace(gpu, to, value);
  if (value.is_own || !value.holder) return true;
  held_[*value.holder][value.chunk].emplace_back(gpu, to);
  for (Message& message : UnderWay(*value.holder, gpu, value.chunk)) {
    if (message.slot == from) message.slot = to;
  }
  return true;
}

void PlanMemory::NoteRead(RankIndex gpu, const Slot& slot, Value value) {
  value.is_sent = false;
  value.is_read = true;
  slots_[gpu][slot] = value;
}

bool PlanMemory::AddStep(RankIndex gpu, ExplicitStep step, const MscclppPlace& place) {
  if (++step_count_ > kPlanStepsMax) {
    return Fail(place, fmt::format("more than {} steps", kPlanStepsMax));
  }
  if (place.line != 0 || !place.name.empty()) {
    if (places_.empty() || places_.back() != &place) places_.push_back(&place);
    step.source = static_cast<uint32_t>(places_.size());
  }
  steps_[gpu].push_back({.made = step, .at = step_count_, .possible_at = step_count_});
  return true;
}

PlanMemory::Value PlanMemory::Keep(RankIndex gpu, uint32_t chunk) {
  Kept& kept = kept_[gpu][chunk];
  ++kept.version;
  kept.step = steps_[gpu].size() - 1;
  return {.chunk = chunk, .version = kept.version};
}

bool PlanMemory::IsCurrent(RankIndex gpu, const Value& value, const MscclppPlace& place) {
  if (value.is_own || kept_[gpu][value.chunk].version == value.version) return true;
  return Fail(place, fmt::format("needs chunk {} of GPU {} as it was before it was reduced or "
                                 "received again",
                                 value.chunk, gpu));
}

bool PlanMemory::Send(RankIndex from, RankIndex to, const Value& value, const MscclppPlace& place) {
  if (!IsCurrent(from, value, place)) return false;
  ExplicitStep step{.chunk = value.chunk};
  step.step.send_to = static_cast<int32_t>(to);
  step.step.load_local = value.is_own;
  step.step.load_kept = !value.is_own;
  if (!AddStep(from, step, place)) return false;
  steps_[from].back().possible_at = value.holder ? value.put_at : PossibleAt(from, value);
  return true;
}

uint64_t PlanMemory::PossibleAt(RankIndex gpu, const Value& value) const {
  if (value.is_own) return round_begin_;
  return std::max(round_begin_, steps_[gpu][kept_[gpu].at(value.chunk).step].at);
}

bool PlanMemory::SendHeld(RankIndex gpu, uint32_t chunk, const MscclppPlace& place) {
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
    UnderWay(gpu, to, chunk).push_back({.slot = slot, .step = steps_[gpu].size() - 1});
  }
  return true;
}

std::deque<PlanMemory::Message>& PlanMemory::UnderWay(RankIndex from, RankIndex to,
                                                      uint32_t chunk) {
  return under_way_[{from, to, chunk}];
}

bool PlanMemory::SendToSlot(RankIndex gpu, const Slot& slot, const Value& value,
                            const MscclppPlace& place) {
  if (!value.is_sent) return SendNow(*value.holder, gpu, value, place);
  std::deque<Message>& sent = UnderWay(*value.holder, gpu, value.chunk);
  if (sent.front().slot != slot) return FailOvertaken(*value.holder, value, place);
  sent.pop_front();
  return true;
}

bool PlanMemory::SendNow(RankIndex from, RankIndex to, const Value& value,
                         const MscclppPlace& place) {
  if (!UnderWay(from, to, value.chunk).empty()) return FailOvertaken(from, value, place);
  return Send(from, to, value, place);
}

bool PlanMemory::FailOvertaken(RankIndex holder, const Value& value, const MscclppPlace& place) {
  return Fail(place, fmt::format("needs chunk {} of GPU {} before what was put of it earlier, "
                                 "and that GPU has kept anew since",
                                 value.chunk, holder));
}

bool PlanMemory::Fetch(RankIndex gpu, const Slot& slot, Value& value, const MscclppPlace& place) {
  const RankIndex holder = *value.holder;
  ExplicitStep step{.chunk = value.chunk};
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

bool PlanMemory::StoreResults() {
  const uint32_t chunks = chunks_.OutputCount();
  for (uint32_t i = 0; i < chunks; ++i) {
    for (RankIndex gpu{0}; gpu < gpu_count_; ++gpu) {
      const uint64_t first = uint64_t{gpu} * chunks / gpu_count_;
      const auto index = static_cast<uint32_t>((first + i) % chunks);
      if (!StoreResult(gpu, SlotOf(gpu, MscclppBuffer::kOutput, index), index)) return false;
    }
  }
  return true;
}

bool PlanMemory::StoreResult(RankIndex gpu, const Slot& slot, uint32_t index) {
  const MscclppPlace& place = gpu_places_[gpu];
  auto value = ValueAt(gpu, slot);
  if (!value) return Fail(place, fmt::format("chunk {} of the result is not written", index));
  const uint32_t expected = chunks_.OfOutput(gpu, index);
  if (value->chunk != expected) {
    return Fail(place, fmt::format("leaves chunk {} in slot {} of the result (expected chunk {})",
                                   value->chunk, index, expected));
  }
  if (value->holder && !Fetch(gpu, slot, *value, place)) return false;
  if (value->is_own && plan_.kind == CollectiveKind::kAllToAll && plan_.is_in_place) return true;
  if (value->is_own) {
    ExplicitStep step{.chunk = value->chunk};
    step.step.load_local = step.step.store = true;
    return AddStep(gpu, step, place);
  }
  if (!IsCurrent(gpu, *value, place)) return false;
  steps_[gpu][kept_[gpu][value->chunk].step].made.step.store = true;
  return true;
}

std::vector<std::vector<TimedStep>> PlanMemory::TakeSteps() {
  for (const auto& [connection, messages] : under_way_) {
    for (const Message& message : messages) {
      unread_[std::get<0>(connection)].insert(message.step);
    }
  }
  for (const auto& [gpu, steps] : unread_) {
    std::vector<TimedStep> rest;
    for (size_t i = 0; i < steps_[gpu].size(); ++i) {
      if (!steps.contains(i)) rest.push_back(steps_[gpu][i]);
    }
    steps_[gpu] = std::move(rest);
  }
  return std::move(steps_);
}

MscclppPlace PlanMemory::PlaceOf(uint32_t source) const {
  return source == 0 ? MscclppPlace() : *places_[source - 1];
}

}  // namespace railyard
