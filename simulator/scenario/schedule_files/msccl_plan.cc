// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/schedule_files/msccl_plan.h"

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace railyard {
namespace {

constexpr int64_t kMessagesMax = 10'000'000;  // of one chunk each, to a GPU

class PlanWriter {
 public:
  PlanWriter(const std::string& path, const MscclProgram& program, Diagnostics& diagnostics)
      : path_(path), program_(program), diagnostics_(diagnostics) {}

  std::optional<MscclppPlan> Write() {
    plan_.kind = program_.kind;
    plan_.protocol = program_.protocol;
    plan_.is_in_place = program_.is_in_place;
    plan_.chunk_count = program_.ChunksOfBlock();
    plan_.semaphores.resize(program_.gpus.size());
    if (!FindConnections() || !PlaceMailboxes()) return std::nullopt;
    for (RankIndex gpu{0}; gpu < program_.gpus.size(); ++gpu) {
      NumberDependencies(gpu);
      auto& blocks = plan_.gpus.emplace_back();
      for (const auto& [id, block] : program_.gpus[gpu]) {
        operations_ = &blocks.emplace_back();
        for (size_t i = 0; i < block.steps.size(); ++i) {
          Acquire({id, static_cast<int64_t>(i)}, block.steps[i]);
          WriteStep(gpu, block, block.steps[i]);
          Release({id, static_cast<int64_t>(i)}, block.steps[i]);
        }
      }
    }
    return std::move(plan_);
  }

 private:
  // Names sender, receiver and channel.
  using ConnectionId = std::tuple<RankIndex, RankIndex, int64_t>;
  using StepId = std::pair<int64_t, int64_t>;  // thread block and step of a GPU

  // One of the two ends: which thread block uses it, and the chunks that pass there.
  struct End {
    std::optional<int64_t> block = {};
    int64_t chunks = 0;
    int line = 0;  // of the first step
  };
  struct Connection {
    End sent;
    End received;
    uint32_t mailbox = 0;  // the receiver's slot of its first chunk
    uint32_t next_sent = 0;
    uint32_t next_received = 0;
  };

  bool Error(int line, const std::string& what) {
    diagnostics_.Error({.file = path_, .line = line, .column = 1}, "", what);
    return false;
  }

  bool FindConnections() {
    for (RankIndex gpu{0}; gpu < program_.gpus.size(); ++gpu) {
      for (const auto& [id, block] : program_.gpus[gpu]) {
        for (const MscclStep& step : block.steps) {
          if (step.sends &&
              !Use(connections_[{gpu, RankIndex{block.send}, block.channel}].sent, id, step)) {
            return false;
          }
          if (step.receives &&
              !Use(connections_[{RankIndex{block.recv}, gpu, block.channel}].received, id, step)) {
            return false;
          }
        }
      }
    }
    return true;
  }
  bool Use(End& end, int64_t block, const MscclStep& step) {
    if (!end.block) end = {.block = block, .line = step.line};
    end.chunks += step.count;
    return *end.block == block ||
           Error(step.line, fmt::format("uses a connection of thread block {} (expected another "
                                        "channel: the order of their messages is undefined)",
                                        *end.block));
  }

  bool PlaceMailboxes() {
    std::map<RankIndex, int64_t> slots;  // by receiver
    for (auto& [id, connection] : connections_) {
      const auto& [from, to, channel] = id;
      if (connection.sent.chunks > connection.received.chunks) {
        return Error(
            connection.sent.line,
            fmt::format("GPU {} sends {} chunks to GPU {} on channel {}, which receives {}", from,
                        connection.sent.chunks, to, channel, connection.received.chunks));
      }
      int64_t& next = slots[to];
      connection.mailbox = static_cast<uint32_t>(next);
      next += connection.received.chunks;
      if (next > kMessagesMax) {
        return Error(
            connection.received.line,
            fmt::format("more than {} messages of one chunk each to GPU {}", kMessagesMax, to));
      }
    }
    return true;
  }

  void NumberDependencies(RankIndex gpu) {
    numbers_.clear();
    waited_for_.clear();
    int64_t count = 0;
    for (const auto& [id, block] : program_.gpus[gpu]) {
      for (size_t i = 0; i < block.steps.size(); ++i) {
        const MscclStep& step = block.steps[i];
        if (step.after_block < 0 || step.after_step < 0) continue;
        numbers_[{id, static_cast<int64_t>(i)}] = static_cast<uint32_t>(count);
        waited_for_[{step.after_block, step.after_step}].push_back(static_cast<uint32_t>(count));
        ++count;
      }
    }
    plan_.semaphores[gpu].assign(static_cast<size_t>(count), 0);
  }
  void Acquire(const StepId& id, const MscclStep& step) {
    const auto number = numbers_.find(id);
    if (number != numbers_.end()) Add(step, MscclppKind::kAcquire).numbers = {number->second};
  }
  void Release(const StepId& id, const MscclStep& step) {
    const auto numbers = waited_for_.find(id);
    if (numbers != waited_for_.end()) Add(step, MscclppKind::kRelease).numbers = numbers->second;
  }

  MscclppOperation& Add(const MscclStep& step, MscclppKind kind) {
    return operations_->emplace_back(MscclppOperation{.kind = kind, .place = {.line = step.line}});
  }
  void AddData(const MscclStep& step, MscclppKind kind, std::vector<MscclppChunks> sources,
               const MscclppChunks& target) {
    MscclppOperation& operation = Add(step, kind);
    operation.sources = std::move(sources);
    operation.targets = {target};
  }

  static MscclppChunks ChunksAt(RankIndex gpu, const MscclSlot& slot, int64_t count) {
    return {.gpu = gpu,
            .buffer = slot.buffer == 'i'   ? MscclppBuffer::kInput
                      : slot.buffer == 'o' ? MscclppBuffer::kOutput
                                           : MscclppBuffer::kScratch,
            .index = static_cast<uint32_t>(slot.offset),
            .size = static_cast<uint32_t>(count)};
  }

  void WriteStep(RankIndex gpu, const MscclBlock& block, const MscclStep& step) {
    if (step.count == 0 || (step.is_local() && !step.keeps)) return;
    const MscclppChunks source = ChunksAt(gpu, step.source, step.count);
    const MscclppChunks target = ChunksAt(gpu, step.target, step.count);
    MscclppChunks outcome = step.keeps ? target : source;
    if (step.receives) {
      Connection& connection = connections_.at({RankIndex{block.recv}, gpu, block.channel});
      const MscclppChunks arrived =
          InMailbox(connection, gpu, step.count, connection.next_received);
      // A message stays in the mailbox until it is reduced.
      AddData(step, MscclppKind::kReceive, {arrived}, step.reduces ? arrived : target);
      if (step.reduces) outcome = Reduce(step, {source, arrived}, target);
    } else if (step.is_local()) {
      if (step.reduces) {
        AddData(step, MscclppKind::kReduce, {target, source}, target);
      } else {
        AddData(step, MscclppKind::kMove, {source}, target);
      }
    }
    if (!step.sends) return;
    const RankIndex to{block.send};
    Connection& connection = connections_.at({gpu, to, block.channel});
    AddData(step, MscclppKind::kMove, {outcome},
            InMailbox(connection, to, step.count, connection.next_sent));
  }

  // Returns where the sum is. One that is only sent is left in the mailbox.
  MscclppChunks Reduce(const MscclStep& step, std::vector<MscclppChunks> operands,
                       const MscclppChunks& target) {
    const MscclppChunks sum = step.keeps ? target : operands.back();
    AddData(step, MscclppKind::kReduce, std::move(operands), sum);
    if (step.ReadsTarget()) operations_->back().instead_of_first = target;
    return sum;
  }

  static MscclppChunks InMailbox(const Connection& connection, RankIndex gpu, int64_t count,
                                 uint32_t& next) {
    const uint32_t index = connection.mailbox + next;
    next += static_cast<uint32_t>(count);
    return {.gpu = gpu,
            .buffer = MscclppBuffer::kMailbox,
            .index = index,
            .size = static_cast<uint32_t>(count)};
  }

  const std::string& path_;
  const MscclProgram& program_;
  Diagnostics& diagnostics_;
  MscclppPlan plan_;
  std::map<ConnectionId, Connection> connections_;
  // Semaphores of the current GPU: which number a step waits for, and which wait for a step.
  std::map<StepId, uint32_t> numbers_;
  std::map<StepId, std::vector<uint32_t>> waited_for_;
  std::vector<MscclppOperation>* operations_ = nullptr;  // of the current thread block
};

}  // namespace

std::optional<MscclppPlan> PlanOf(const std::string& path, const MscclProgram& program,
                                  Diagnostics& diagnostics) {
  return PlanWriter(path, program, diagnostics).Write();
}

}  // namespace railyard
