// SPDX-License-Identifier: GPL-2.0-only
// Holds what the buffers of a plan's GPUs have while it is executed, and the steps of the lanes
// that this takes.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/scenario/schedule_files/buffer_chunks.h"
#include "simulator/scenario/schedule_files/mscclpp_plan.h"
#include "simulator/scenario/schedule_files/timed_steps.h"
#include "simulator/units/rank_index.h"
#include "workloads/collectives/explicit_schedule.h"

namespace railyard {

inline constexpr uint64_t kPlanStepsMax = 10'000'000;  // over all ranks and channels

// Follows the contents of the slots of all GPUs while a plan's operations are turned into steps. A
// GPU keeps one value of each chunk besides its own contribution. A value that a GPU puts into
// another GPU's slot becomes a message, which is sent when its receiver needs it, or before the
// sender replaces the value that it keeps.
class PlanMemory {
 public:
  // Describes the contents of a slot: the rank's own contribution to a chunk, or one version of the
  // value that its lane keeps. `holder` is the GPU that holds the value as long as the slot's GPU
  // has not kept it; `is_sent` says that the holder has sent it, `is_read` that the slot's GPU has
  // received it into a sum.
  struct Value {
    uint32_t chunk = 0;
    bool is_own = false;
    uint64_t version = 0;
    std::optional<RankIndex> holder = {};
    bool is_sent = false;
    bool is_read = false;
    uint64_t put_at = 0;  // the number of steps after which it could be sent
  };
  using Slot = std::pair<MscclppBuffer, uint32_t>;

  // Both must outlive this.
  PlanMemory(const std::string& path, const MscclppPlan& plan, Diagnostics& diagnostics);

  // Adds an error at that place and returns false.
  bool Fail(const MscclppPlace& place, const std::string& what);

  // Returns the slot of a buffer. In place, chunks of the smaller buffer lie in the larger one.
  Slot SlotOf(RankIndex gpu, MscclppBuffer buffer, uint32_t index) const;
  // Returns what is in a slot; nullopt if it has not been written.
  std::optional<Value> ValueAt(RankIndex gpu, const Slot& slot) const;
  // Puts a value into a slot for one of `chunks`, by a GPU that holds it.
  void Write(const MscclppChunks& chunks, uint32_t element, RankIndex by, Value value);
  // Moves what another GPU has put into a slot to another slot; returns false if it is not there
  // yet.
  bool Take(RankIndex gpu, const Slot& from, const Slot& to);
  // Notes that a message of a slot was received into a sum: whoever reads it again receives it
  // again.
  void NoteRead(RankIndex gpu, const Slot& slot, Value value);
  // Adds a step of the GPU; returns false with a finding if there are too many. `place`, as that of
  // the functions that send, must outlive this.
  bool AddStep(RankIndex gpu, ExplicitStep step, const MscclppPlace& place);
  // Returns the value that the last step of the GPU keeps.
  Value Keep(RankIndex gpu, uint32_t chunk);
  // Returns false with a finding if the GPU has kept the chunk anew since.
  bool IsCurrent(RankIndex gpu, const Value& value, const MscclppPlace& place);
  // Sends the values of a chunk that lie in slots of other GPUs, before the GPU replaces the value
  // that it keeps. They receive them when they need them.
  bool SendHeld(RankIndex gpu, uint32_t chunk, const MscclppPlace& place);
  // Sends the value of a slot to its GPU, unless that has been done. Two GPUs receive
  // their messages of one chunk in the order in which they were sent.
  bool SendToSlot(RankIndex gpu, const Slot& slot, const Value& value, const MscclppPlace& place);
  // Sends a value that is in no slot of the receiver. Returns false with a finding if an earlier
  // message of the chunk is under way.
  bool SendNow(RankIndex from, RankIndex to, const Value& value, const MscclppPlace& place);
  // Sends what another GPU holds to the slot's GPU, which keeps it.
  bool Fetch(RankIndex gpu, const Slot& slot, Value& value, const MscclppPlace& place);
  // Begins the next turns of the thread blocks, which put and read at the same time.
  void BeginRound() { round_begin_ = step_count_; }
  // Ends the plan: has each GPU keep its result. Returns false with a finding if it is wrong. Each
  // rank begins with another chunk, so that transfers that only the result needs are spread.
  bool StoreResults();
  // Returns the steps of each GPU, without messages that nobody has read.
  std::vector<std::vector<TimedStep>> TakeSteps();
  // Returns what a step is from, by its ExplicitStep::source.
  MscclppPlace PlaceOf(uint32_t source) const;

 private:
  // A message that was sent before its receiver needed it, by its slot there and the sender's step.
  struct Message {
    Slot slot;
    size_t step = 0;
  };
  struct Kept {
    uint64_t version = 0;
    size_t step = 0;  // that made it
  };

  // Writes a slot. A message that was to be received there is not sent, since nobody has read it.
  void Replace(RankIndex gpu, const Slot& slot, const Value& value);
  bool Send(RankIndex from, RankIndex to, const Value& value, const MscclppPlace& place);
  // Thread blocks put and read at the same time in a round, if their values are there.
  uint64_t PossibleAt(RankIndex gpu, const Value& value) const;
  std::deque<Message>& UnderWay(RankIndex from, RankIndex to, uint32_t chunk);
  bool FailOvertaken(RankIndex holder, const Value& value, const MscclppPlace& place);
  bool StoreResult(RankIndex gpu, const Slot& slot, uint32_t index);

  const std::string& path_;
  const MscclppPlan& plan_;
  Diagnostics& diagnostics_;
  const uint32_t gpu_count_;
  const BufferChunks chunks_;
  std::vector<std::map<Slot, Value>> slots_;    // by GPU; own contributions left out
  std::vector<std::map<uint32_t, Kept>> kept_;  // by GPU and chunk
  // By GPU and chunk: slots of others that it is to send to, and may have been written since.
  std::vector<std::map<uint32_t, std::vector<std::pair<RankIndex, Slot>>>> held_;
  // By sender, receiver and chunk: messages that were sent and not received yet.
  std::map<std::tuple<RankIndex, RankIndex, uint32_t>, std::deque<Message>> under_way_;
  std::map<RankIndex, std::set<size_t>> unread_;  // steps that send in vain, by GPU
  std::vector<std::vector<TimedStep>> steps_;     // by GPU
  std::vector<MscclppPlace> gpu_places_;          // "gpus[0]"
  std::vector<const MscclppPlace*> places_;       // of steps, by ExplicitStep::source less one
  uint64_t step_count_ = 0;
  uint64_t round_begin_ = 0;  // the number of steps before the thread blocks' current turns
};

}  // namespace railyard
