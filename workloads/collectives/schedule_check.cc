// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/schedule_check.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "workloads/collectives/contributions.h"
#include "workloads/collectives/schedule_buffer.h"
#include "workloads/collectives/schedule_result.h"
#include "workloads/collectives/schedule_step_check.h"

namespace railyard {
namespace {

// NOLINTNEXTLINE(bugprone-exception-escape): to move Parts throws nothing
struct Message {
  Step sent;  // what the sender made of it
  Parts parts;
};

class ScheduleRun {
 public:
  ScheduleRun(const ScheduleSubject& subject, uint32_t rank_count,
              const std::function<const CollectiveSchedule&(RankIndex)>& schedule_of,
              uint32_t slots)
      : subject_(subject),
        rank_count_(rank_count),
        slots_(slots),
        buffer_bytes_(BufferBytes(subject, rank_count)),
        result_(subject, rank_count) {
    for (RankIndex rank{0}; rank < rank_count; ++rank) schedules_.push_back(&schedule_of(rank));
  }

  std::string Check() {
    Start();
    while (error_.empty() && !ready_.empty()) {
      const size_t lane = ready_.back();
      ready_.pop_back();
      RunLane(lane);
    }
    if (error_.empty()) CheckFinished();
    for (RankIndex rank{0}; error_.empty() && rank < rank_count_; ++rank) {
      error_ = result_.Check(rank);
      if (!error_.empty()) place_.lane.rank = rank;
    }
    return error_;
  }
  const SchedulePlace& place() const { return place_; }

 private:
  static constexpr size_t kNoLane = SIZE_MAX;

  struct Lane {
    LaneId id;
    LanePeers peers;  // by rank
    uint64_t step = 0;
    uint64_t step_count = 0;
    size_t program = 0;
  };
  // The batches that one rank runs on one channel, one after the other.
  struct Program {
    RankIndex rank{0};
    uint32_t channel = 0;
    uint32_t batch = 0;
    uint32_t batch_count = 0;
    uint32_t running = 0;  // lanes of the batch that are not done
  };
  struct Connection {
    std::deque<Message> messages;
    size_t waiting = kNoLane;       // for a message
    size_t waiting_slot = kNoLane;  // for a slot
  };

  void Start() {
    for (RankIndex rank{0}; rank < rank_count_; ++rank) {
      const CollectiveSchedule& schedule = *schedules_[rank];
      for (uint32_t channel = 0; channel < schedule.channel_count(); ++channel) {
        const uint32_t batches = schedule.BatchCount(rank, channel);
        if (batches == 0) continue;
        programs_.push_back({rank, channel, 0, batches, 0});
        StartBatches(programs_.size() - 1);
      }
    }
  }

  // Starts the program's current batch, or the first later one that has steps.
  void StartBatches(size_t index) {
    Program& program = programs_[index];
    const CollectiveSchedule& schedule = *schedules_[program.rank];
    for (; program.batch < program.batch_count; ++program.batch) {
      const uint32_t lanes = schedule.LaneCount(program.rank, program.channel, program.batch);
      for (uint32_t lane = 0; lane < lanes; ++lane) {
        const LaneId id{program.rank, program.channel, program.batch, lane};
        const uint64_t steps = schedule.StepCount(id);
        if (steps == 0) continue;
        ready_.push_back(lanes_.size());
        lanes_.push_back({id, ByRank(schedule.PeersOf(id)), 0, steps, index});
        ++program.running;
      }
      if (program.running != 0) return;
    }
  }

  // Runs a lane until it has to wait for a message or ends.
  void RunLane(size_t index) {
    const CollectiveSchedule& schedule = *schedules_[lanes_[index].id.rank];
    while (error_.empty() && lanes_[index].step < lanes_[index].step_count) {
      const Lane& lane = lanes_[index];
      const Step step = schedule.StepAt(lane.id, lane.step);
      const std::string wrong = CheckStep(subject_, rank_count_, lane.id.rank, lane.peers, step);
      if (!wrong.empty()) {
        Fail(lane, wrong);
        return;
      }
      const std::vector<LanePeer> senders = SendersOf(lane, step);
      const auto silent = std::find_if(senders.begin(), senders.end(), [&](const LanePeer& sender) {
        return ConnectionOf(lane.id.channel, sender.rank, lane.id.rank, sender.use)
            .messages.empty();
      });
      if (silent != senders.end()) {
        WaitFor(index, *silent);
        return;
      }
      if (const LanePeer* const full = FullReceiver(lane, step)) {
        ConnectionOf(lane.id.channel, lane.id.rank, full->rank, full->use).waiting_slot = index;
        return;
      }
      std::optional<Parts> received;
      for (const LanePeer& sender : senders) Receive(lane, step, sender, received);
      if (!error_.empty()) return;
      Execute(index, step, std::move(received));
      ++lanes_[index].step;
    }
    if (!error_.empty()) return;
    const size_t program = lanes_[index].program;
    if (--programs_[program].running == 0) {
      ++programs_[program].batch;
      StartBatches(program);
    }
  }

  // Returns the first receiver of a step that has no slot left, or nullptr.
  const LanePeer* FullReceiver(const Lane& lane, const Step& step) {
    if (slots_ == 0 || step.send_to == kNoPeer) return nullptr;
    for (const LanePeer& peer : lane.peers.send_to) {
      if (step.send_to != kAllPeers && step.send_to != static_cast<int32_t>(peer.rank)) continue;
      const Connection& connection =
          ConnectionOf(lane.id.channel, lane.id.rank, peer.rank, peer.use);
      if (connection.messages.size() >= slots_) return &peer;
    }
    return nullptr;
  }

  static LanePeers ByRank(LanePeers peers) {
    const auto before = [](const LanePeer& a, const LanePeer& b) { return a.rank < b.rank; };
    std::stable_sort(peers.recv_from.begin(), peers.recv_from.end(), before);
    std::stable_sort(peers.send_to.begin(), peers.send_to.end(), before);
    return peers;
  }

  std::vector<LanePeer> SendersOf(const Lane& lane, const Step& step) const {
    return PeersNamed(step.recv_from, lane.peers.recv_from);
  }
  std::vector<LanePeer> ReceiversOf(const Lane& lane, const Step& step) const {
    return PeersNamed(step.send_to, lane.peers.send_to);
  }

  void WaitFor(size_t index, const LanePeer& sender) {
    const Lane& lane = lanes_[index];
    Connection& connection = ConnectionOf(lane.id.channel, sender.rank, lane.id.rank, sender.use);
    if (connection.waiting != kNoLane) {
      Fail(lane, fmt::format("waits for rank {}, as another lane of the channel does: it is "
                             "open which gets the message",
                             sender.rank));
      return;
    }
    connection.waiting = index;
  }

  // Takes the next message of `sender` into `received`, which holds what came from others.
  void Receive(const Lane& lane, const Step& step, const LanePeer& sender,
               std::optional<Parts>& received) {
    Connection& connection = ConnectionOf(lane.id.channel, sender.rank, lane.id.rank, sender.use);
    const Message next = std::move(connection.messages.front());
    connection.messages.pop_front();
    if (connection.waiting_slot != kNoLane) {
      ready_.push_back(connection.waiting_slot);
      connection.waiting_slot = kNoLane;
    }
    const Step& sent = next.sent;
    if (sent.bytes != step.bytes || sent.offset_bytes != step.offset_bytes) {
      Fail(lane,
           fmt::format("receives {} B at offset {} where rank {} sent {} B at offset {}",
                       step.bytes, step.offset_bytes, sender.rank, sent.bytes, sent.offset_bytes));
    } else if (sent.pieces != step.pieces || sent.stride_bytes != step.stride_bytes) {
      Fail(lane, fmt::format("receives {} pieces {} B apart where rank {} sent {}, {} B apart",
                             step.pieces, step.stride_bytes, sender.rank, sent.pieces,
                             sent.stride_bytes));
    } else {
      Take(lane, next.parts, received);
    }
  }

  // Adds an operand of a step to those before it.
  void Take(const Lane& lane, const Parts& operand, std::optional<Parts>& taken) {
    if (!taken) {
      taken = operand;
      return;
    }
    PartsSum sum = AddParts(*taken, operand);
    if (sum.twice >= 0) {
      Fail(lane, fmt::format("adds the contribution of rank {} a second time", sum.twice));
    }
    taken = std::move(sum.parts);
  }

  // Returns the data that the lane has kept of a chunk.
  Parts LoadKept(size_t lane, const Step& step) {
    Parts parts;
    KeptData& kept = kept_[lane];
    ForEachPiece(step, buffer_bytes_, [&](uint64_t offset, uint64_t bytes) {
      const uint64_t end = kept.Load(offset, bytes, parts);
      if (end < offset + bytes) {
        Fail(lanes_[lane], fmt::format("loads offset {}, where it has kept nothing", end));
      }
    });
    return parts;
  }

  bool IsInBlockOf(RankIndex rank, uint64_t offset) const {
    return offset / subject_.block_bytes == rank;
  }

  Parts LoadLocal(RankIndex rank, const Step& step) const {
    Parts parts;
    const Contributors own(rank_count_, rank);
    if (!step.gathers) {
      AppendPart(parts, step.bytes, own);
      return parts;
    }
    ForEachPiece(step, buffer_bytes_, [&](uint64_t offset, uint64_t bytes) {
      AppendPart(parts, bytes,
                 bytes != 0 && IsInBlockOf(rank, offset) ? own : Contributors(rank_count_));
    });
    return parts;
  }

  void Execute(size_t index, const Step& step, std::optional<Parts> operand) {
    const Lane& lane = lanes_[index];
    const RankIndex rank = lane.id.rank;
    if (step.load_local) Take(lane, LoadLocal(rank, step), operand);
    if (step.load_kept) Take(lane, LoadKept(index, step), operand);
    if (!error_.empty()) return;
    if (step.keep || step.store) {
      // Part by part of each piece.
      auto part = operand->begin();
      uint64_t left = part == operand->end() ? 0 : part->bytes;
      ForEachPiece(step, buffer_bytes_, [&](uint64_t offset, uint64_t bytes) {
        const bool stores = step.store && (!step.scatters || IsInBlockOf(rank, offset));
        if (stores && bytes != 0) {
          result_.Store(rank, step.recv_from, offset, bytes);
        }
        while (bytes > 0) {
          const uint64_t run = std::min(bytes, left);
          if (stores) {
            const std::string wrong = result_.CheckValue(offset, run, part->contributors);
            if (!wrong.empty()) Fail(lane, wrong);
          }
          if (step.keep) kept_[index].Keep(offset, run, part->contributors);
          offset += run;
          bytes -= run;
          left -= run;
          if (left == 0 && ++part != operand->end()) left = part->bytes;
        }
      });
    }
    for (const LanePeer& receiver : ReceiversOf(lane, step)) {
      Connection& connection = ConnectionOf(lane.id.channel, rank, receiver.rank, receiver.use);
      connection.messages.push_back({step, *operand});
      if (connection.waiting != kNoLane) {
        ready_.push_back(connection.waiting);
        connection.waiting = kNoLane;
      }
    }
  }

  void CheckFinished() {
    size_t first_stalled = kNoLane;
    for (const auto& [key, connection] : connections_) {
      first_stalled = std::min(first_stalled, connection.waiting_slot);
    }
    if (first_stalled != kNoLane) {
      const Lane& lane = lanes_[first_stalled];
      const Step step = schedules_[lane.id.rank]->StepAt(lane.id, lane.step);
      Fail(lane,
           fmt::format("waits for ever to send to rank {}, which takes none of the {} messages "
                       "that are there already",
                       FullReceiver(lane, step)->rank, slots_));
      return;
    }
    size_t first_waiting = kNoLane;
    for (const auto& [key, connection] : connections_) {
      first_waiting = std::min(first_waiting, connection.waiting);
    }
    if (first_waiting != kNoLane) {
      const Lane& lane = lanes_[first_waiting];
      const Step step = schedules_[lane.id.rank]->StepAt(lane.id, lane.step);
      Fail(lane, fmt::format("waits for ever for a message of {} B from rank {}", step.bytes,
                             SilentSender(lane, step)));
      return;
    }
    for (const auto& [key, connection] : connections_) {
      if (connection.messages.empty()) continue;
      const uint64_t pair = key / kUses;
      const uint32_t from = static_cast<uint32_t>(pair / rank_count_ % rank_count_);
      const uint32_t to = static_cast<uint32_t>(pair % rank_count_);
      place_.lane.rank = RankIndex{to};
      error_ = fmt::format("channel {}: rank {} never receives {} of the messages of rank {}",
                           pair / rank_count_ / rank_count_, to, connection.messages.size(), from);
      return;
    }
  }

  uint32_t SilentSender(const Lane& lane, const Step& step) {
    const std::vector<LanePeer> senders = SendersOf(lane, step);
    return std::find_if(senders.begin(), senders.end(),
                        [&](const LanePeer& sender) {
                          return ConnectionOf(lane.id.channel, sender.rank, lane.id.rank,
                                              sender.use)
                              .messages.empty();
                        })
        ->rank;
  }

  static constexpr uint64_t kUses = 8;
  Connection& ConnectionOf(uint32_t channel, uint32_t from, uint32_t to, ConnectionUse use) {
    const uint64_t pair = (uint64_t{channel} * rank_count_ + from) * rank_count_ + to;
    return connections_[pair * kUses + static_cast<uint64_t>(use)];
  }

  void Fail(const Lane& lane, const std::string& what) {
    if (!error_.empty()) return;
    place_ = {lane.id, lane.step};
    error_ = fmt::format("rank {}, channel {}, batch {}, lane {}, step {}: {}", lane.id.rank,
                         lane.id.channel, lane.id.batch, lane.id.lane, lane.step, what);
  }

  const ScheduleSubject& subject_;
  uint32_t rank_count_;
  uint32_t slots_;  // of a connection; 0: without limit
  uint64_t buffer_bytes_;
  ScheduleResult result_;
  std::vector<const CollectiveSchedule*> schedules_;
  std::vector<Program> programs_;
  std::vector<Lane> lanes_;
  std::vector<size_t> ready_;
  std::unordered_map<uint64_t, Connection> connections_;  // by (channel, from, to, use)
  std::unordered_map<size_t, KeptData> kept_;             // by lane
  std::string error_;
  SchedulePlace place_;
};

}  // namespace

std::string CheckSchedule(const ScheduleSubject& subject, uint32_t rank_count,
                          const std::function<const CollectiveSchedule&(RankIndex)>& schedule_of,
                          SchedulePlace* place, uint32_t slots) {
  ScheduleRun run(subject, rank_count, schedule_of, slots);
  std::string error = run.Check();
  if (place != nullptr) *place = run.place();
  return error;
}

}  // namespace railyard
