// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/schedule_check.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/container/small_vector.hpp>
#include <fmt/format.h>

namespace railyard {
namespace {

// The ranks whose contribution a piece of data has, each once.
class Contributors {
 public:
  Contributors() = default;
  Contributors(uint32_t rank_count, uint32_t rank) : words_((rank_count + 63) / 64) { Add(rank); }

  // False if it was there already.
  bool Add(uint32_t rank) {
    uint64_t& word = words_[rank / 64];
    const uint64_t bit = uint64_t{1} << rank % 64;
    const bool is_new = (word & bit) == 0;
    word |= bit;
    return is_new;
  }
  bool Has(uint32_t rank) const { return (words_[rank / 64] >> rank % 64 & 1) != 0; }
  // A rank that is in both; -1 if there is none, and then those of `other` are added.
  int64_t Merge(const Contributors& other) {
    for (size_t i = 0; i < words_.size(); ++i) {
      const uint64_t both = words_[i] & other.words_[i];
      if (both != 0) return static_cast<int64_t>(i) * 64 + std::countr_zero(both);
    }
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return -1;
  }
  bool operator==(const Contributors&) const = default;

 private:
  std::vector<uint64_t> words_;
};

// A run of bytes of a chunk, in the order of its pieces, that hold the same contributions.
struct Part {
  uint64_t bytes = 0;
  Contributors contributors;
};
// All of a chunk; nothing of an empty one.
using Parts = boost::container::small_vector<Part, 1>;

void Append(Parts& parts, uint64_t bytes, const Contributors& contributors) {
  if (bytes == 0) return;
  if (!parts.empty() && parts.back().contributors == contributors) {
    parts.back().bytes += bytes;
  } else {
    parts.push_back({bytes, contributors});
  }
}

// Both operands' contributions to each byte; or a rank that both have, which must not be. Only one
// of the two is set. Precondition: as many bytes.
struct Sum {
  Parts parts;
  int64_t twice = -1;
};
Sum Add(const Parts& a, const Parts& b) {
  Sum sum;
  uint64_t a_left = 0;
  uint64_t b_left = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a_left == 0) a_left = a[i].bytes;
    if (b_left == 0) b_left = b[j].bytes;
    Contributors both = a[i].contributors;
    sum.twice = both.Merge(b[j].contributors);
    if (sum.twice >= 0) return sum;
    const uint64_t bytes = std::min(a_left, b_left);
    Append(sum.parts, bytes, both);
    a_left -= bytes;
    b_left -= bytes;
    if (a_left == 0) ++i;
    if (b_left == 0) ++j;
  }
  return sum;
}

struct Message {
  Step sent;  // what the sender made of it
  Parts parts;
};

// What a lane keeps: by where it begins, where it ends and what it is made of.
struct Kept {
  uint64_t end = 0;
  Contributors contributors;
};
using KeptRanges = std::map<uint64_t, Kept>;

// Cuts ranges in two where one goes across.
void CutAt(KeptRanges& ranges, uint64_t at) {
  auto next = ranges.upper_bound(at);
  if (next == ranges.begin()) return;
  const auto range = std::prev(next);
  if (range->first == at || range->second.end <= at) return;
  ranges.emplace_hint(next, at, range->second);
  range->second.end = at;
}

// A part of a result that a step stored; of ring collectives all have peer 0.
struct StoredRange {
  uint32_t peer = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

bool IsPointToPoint(CollectiveKind kind) {
  return kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kGather ||
         kind == CollectiveKind::kScatter || kind == CollectiveKind::kSend;
}

class ScheduleRun {
 public:
  ScheduleRun(const ScheduleSubject& subject, uint32_t rank_count,
              const std::function<const CollectiveSchedule&(uint32_t)>& schedule_of, uint32_t slots)
      : subject_(subject),
        rank_count_(rank_count),
        slots_(slots),
        point_to_point_(IsPointToPoint(subject.kind)),
        all_(rank_count, 0),
        stored_(rank_count) {
    for (uint32_t rank = 0; rank < rank_count; ++rank) {
      all_.Add(rank);
      schedules_.push_back(&schedule_of(rank));
    }
  }

  std::string Check() {
    Start();
    while (error_.empty() && !ready_.empty()) {
      const size_t lane = ready_.back();
      ready_.pop_back();
      RunLane(lane);
    }
    if (error_.empty()) CheckFinished();
    for (uint32_t rank = 0; error_.empty() && rank < rank_count_; ++rank) {
      CheckResult(rank);
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
  // What one rank runs on one channel: batch after batch.
  struct Program {
    uint32_t rank = 0;
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
    for (uint32_t rank = 0; rank < rank_count_; ++rank) {
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
      if (!IsWellFormed(lane, step)) return;
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

  // The first receiver of a step that has no slot left; nullptr: none.
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

  // The first that is listed with that rank; nullptr: none.
  static const LanePeer* Find(uint32_t rank, const std::vector<LanePeer>& by_rank) {
    const auto at =
        std::lower_bound(by_rank.begin(), by_rank.end(), rank,
                         [](const LanePeer& peer, uint32_t wanted) { return peer.rank < wanted; });
    return at != by_rank.end() && at->rank == rank ? &*at : nullptr;
  }

  // Whom a step receives from, or sends to.
  std::vector<LanePeer> PeersOf(int32_t named, const std::vector<LanePeer>& of_lane) const {
    if (named == kNoPeer) return {};
    if (named == kAllPeers) return of_lane;
    if (const LanePeer* peer = Find(static_cast<uint32_t>(named), of_lane)) return {*peer};
    return {{static_cast<uint32_t>(named), ConnectionUse::kRing}};
  }
  std::vector<LanePeer> SendersOf(const Lane& lane, const Step& step) const {
    return PeersOf(step.recv_from, lane.peers.recv_from);
  }
  std::vector<LanePeer> ReceiversOf(const Lane& lane, const Step& step) const {
    return PeersOf(step.send_to, lane.peers.send_to);
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
    Sum sum = Add(*taken, operand);
    if (sum.twice >= 0) {
      Fail(lane, fmt::format("adds the contribution of rank {} a second time", sum.twice));
    }
    taken = std::move(sum.parts);
  }

  // Calls visit(offset, bytes) for each piece of a chunk.
  template <typename Visit>
  void ForEachPiece(const Step& step, const Visit& visit) const {
    const uint64_t bytes = step.bytes / step.pieces;
    uint64_t offset = step.offset_bytes;
    for (uint32_t piece = 0; piece < step.pieces; ++piece) {
      visit(offset, bytes);
      offset += step.stride_bytes;
      if (step.pieces > 1 && bytes > 0) offset %= BufferBytes();
    }
  }

  // What the lane has kept of a chunk.
  Parts LoadKept(size_t lane, const Step& step) {
    Parts parts;
    KeptRanges& ranges = kept_[lane];
    ForEachPiece(step, [&](uint64_t offset, uint64_t bytes) {
      const uint64_t end = offset + bytes;
      CutAt(ranges, offset);
      CutAt(ranges, end);
      uint64_t at = offset;
      for (auto range = ranges.lower_bound(offset); range != ranges.end() && at < end; ++range) {
        if (range->first != at) break;
        Append(parts, range->second.end - at, range->second.contributors);
        at = range->second.end;
      }
      if (at < end) {
        Fail(lanes_[lane], fmt::format("loads offset {}, where it has kept nothing", at));
      }
    });
    return parts;
  }

  void Keep(size_t lane, uint64_t offset, uint64_t bytes, const Contributors& contributors) {
    KeptRanges& ranges = kept_[lane];
    CutAt(ranges, offset);
    CutAt(ranges, offset + bytes);
    ranges.erase(ranges.lower_bound(offset), ranges.lower_bound(offset + bytes));
    ranges[offset] = {offset + bytes, contributors};
  }

  bool IsWellFormed(const Lane& lane, const Step& step) {
    const LanePeers& peers = lane.peers;
    // Only peers that the lane lists, each another rank.
    const auto is_peer = [&](int32_t named, const std::vector<LanePeer>& listed) {
      const std::vector<LanePeer> ranks = PeersOf(named, listed);
      return std::all_of(ranks.begin(), ranks.end(), [&](const LanePeer& peer) {
        const bool by_switch = peer.use == ConnectionUse::kSwitchOperand ||
                               peer.use == ConnectionUse::kSwitchResult ||
                               peer.use == ConnectionUse::kNetworkSum;
        return peer.rank < rank_count_ && (by_switch || peer.rank != lane.id.rank) &&
               Find(peer.rank, listed) != nullptr;
      });
    };
    const bool receives = step.recv_from != kNoPeer;
    const bool several = step.recv_from == kAllPeers && peers.recv_from.size() > 1;
    const int operands = (several    ? 2
                          : receives ? 1
                                     : 0) +
                         (step.load_local ? 1 : 0) + (step.load_kept ? 1 : 0);
    if (!is_peer(step.recv_from, peers.recv_from) || !is_peer(step.send_to, peers.send_to)) {
      Fail(lane, fmt::format("names peer {} or {}, which is not another rank that the lane lists",
                             step.recv_from, step.send_to));
    } else if (step.reduce && operands < 2) {
      Fail(lane, "reduces without a second operand");
    } else if (several && !step.reduce) {
      Fail(lane, "receives from several without reducing: all but one are lost");
    } else if (operands > 1 && !step.reduce) {
      Fail(lane, "takes several operands without reducing: all but one are lost");
    } else if (operands == 0) {
      Fail(lane, "has no data: it neither receives nor loads");
    } else if (step.pieces == 0 || step.bytes % step.pieces != 0) {
      Fail(lane, fmt::format("divides {} B among {} pieces", step.bytes, step.pieces));
    } else {
      CheckPlaces(lane, step);
    }
    return error_.empty();
  }

  // The pieces lie in the buffer, and what is loaded of an AllGather in the rank's own block.
  void CheckPlaces(const Lane& lane, const Step& step) {
    if (point_to_point_) return;
    const uint64_t block = subject_.block_bytes;
    ForEachPiece(step, [&](uint64_t offset, uint64_t bytes) {
      if (offset > BufferBytes() || bytes > BufferBytes() - offset) {
        Fail(lane,
             fmt::format("reaches offset {} of a buffer of {} B", offset + bytes, BufferBytes()));
      } else if (subject_.kind == CollectiveKind::kAllGather && step.load_local && bytes != 0 &&
                 (offset < lane.id.rank * block || offset + bytes > (lane.id.rank + 1) * block)) {
        Fail(lane, "loads data outside its own block");
      }
    });
  }

  void Execute(size_t index, const Step& step, std::optional<Parts> operand) {
    const Lane& lane = lanes_[index];
    const uint32_t rank = lane.id.rank;
    if (step.load_local) {
      Parts own;
      Append(own, step.bytes, Contributors(rank_count_, rank));
      Take(lane, own, operand);
    }
    if (step.load_kept) Take(lane, LoadKept(index, step), operand);
    if (!error_.empty()) return;
    if (step.keep || step.store) {
      // Part by part of each piece.
      auto part = operand->begin();
      uint64_t left = part == operand->end() ? 0 : part->bytes;
      ForEachPiece(step, [&](uint64_t offset, uint64_t bytes) {
        if (step.store && bytes != 0) {
          Store(rank, point_to_point_ ? static_cast<uint32_t>(step.recv_from) : 0, offset, bytes);
        }
        while (bytes > 0) {
          const uint64_t run = std::min(bytes, left);
          if (step.store) CheckStored(lane, offset, run, part->contributors);
          if (step.keep) Keep(index, offset, run, part->contributors);
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

  // What a step stores must be the final value of its place.
  void CheckStored(const Lane& lane, uint64_t offset, uint64_t bytes,
                   const Contributors& contributors) {
    switch (subject_.kind) {
      case CollectiveKind::kAllReduce:
      case CollectiveKind::kReduce:
      case CollectiveKind::kReduceScatter:
        if (contributors == all_) return;
        for (uint32_t rank = 0; rank < rank_count_; ++rank) {
          if (contributors.Has(rank)) continue;
          Fail(lane, fmt::format("stores {} B at offset {} without the contribution of rank {}",
                                 bytes, offset, rank));
          return;
        }
        return;
      case CollectiveKind::kAllGather: {
        const uint64_t block = offset / subject_.block_bytes;
        if (offset + bytes > (block + 1) * subject_.block_bytes) {
          Fail(lane, "stores a chunk that lies in two blocks");
        } else if (contributors != Contributors(rank_count_, static_cast<uint32_t>(block))) {
          Fail(lane, fmt::format("stores at offset {} what is not of rank {}", offset, block));
        }
        return;
      }
      case CollectiveKind::kBroadcast:
        if (contributors != Contributors(rank_count_, subject_.root)) {
          Fail(lane, fmt::format("stores what is not of the root {}", subject_.root));
        }
        return;
      default:
        return;  // a message comes from its sender and nobody else
    }
  }

  void Store(uint32_t rank, uint32_t peer, uint64_t begin, uint64_t bytes) {
    const uint64_t end = begin + bytes;
    auto& ranges = stored_[rank];
    // Rings walk downwards through the vector: most ranges continue the last one.
    if (!ranges.empty() && ranges.back().peer == peer) {
      if (ranges.back().begin == end) {
        ranges.back().begin = begin;
        return;
      }
      if (ranges.back().end == begin) {
        ranges.back().end = end;
        return;
      }
    }
    ranges.push_back({peer, begin, end});
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
      place_.lane.rank = to;
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

  // The stored ranges are the whole result, each byte once.
  void CheckResult(uint32_t rank) {
    const uint64_t block = subject_.block_bytes;
    auto& ranges = stored_[rank];
    std::sort(ranges.begin(), ranges.end(), [](const StoredRange& a, const StoredRange& b) {
      return a.peer != b.peer ? a.peer < b.peer : a.begin < b.begin;
    });
    if (subject_.kind == CollectiveKind::kSend || rank_count_ == 1) return;
    size_t next = 0;
    if (!point_to_point_) {
      uint64_t begin = 0;
      uint64_t end = BufferBytes();
      if (subject_.kind == CollectiveKind::kReduceScatter) {
        begin = rank * block;
        end = begin + block;
      } else if (subject_.kind == CollectiveKind::kReduce && rank != subject_.root) {
        end = 0;
      }
      CheckCoverage(rank, 0, begin, end, next);
    } else {
      for (uint32_t peer = 0; error_.empty() && peer < rank_count_; ++peer) {
        CheckCoverage(rank, peer, 0, ReceivesFrom(rank, peer) ? block : 0, next);
      }
    }
    if (error_.empty() && next < ranges.size()) {
      error_ = fmt::format("rank {} stores bytes {} to {} that are not in its result", rank,
                           ranges[next].begin, ranges[next].end);
    }
  }

  bool ReceivesFrom(uint32_t rank, uint32_t peer) const {
    if (rank == peer) return false;
    if (subject_.kind == CollectiveKind::kGather) return rank == subject_.root;
    if (subject_.kind == CollectiveKind::kScatter) return peer == subject_.root;
    return true;
  }

  void CheckCoverage(uint32_t rank, uint32_t peer, uint64_t begin, uint64_t end, size_t& next) {
    const auto& ranges = stored_[rank];
    const std::string source = point_to_point_ ? fmt::format(" of rank {}", peer) : "";
    for (; next < ranges.size() && ranges[next].peer == peer; ++next) {
      if (ranges[next].end > end || ranges[next].begin < begin) {
        error_ = ranges[next].begin < begin && next > 0 && ranges[next - 1].peer == peer
                     ? fmt::format("rank {} stores bytes{} from {} on twice", rank, source,
                                   ranges[next].begin)
                     : fmt::format("rank {} stores bytes{} {} to {} that are not in its result",
                                   rank, source, ranges[next].begin, ranges[next].end);
        return;
      }
      if (ranges[next].begin > begin) break;
      begin = ranges[next].end;
    }
    if (begin < end) {
      error_ = fmt::format("rank {} never stores the bytes{} from {} on", rank, source, begin);
    }
  }

  uint64_t BufferBytes() const {
    const bool blocks = subject_.kind == CollectiveKind::kAllGather ||
                        subject_.kind == CollectiveKind::kReduceScatter;
    return blocks ? rank_count_ * subject_.block_bytes : subject_.block_bytes;
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
  bool point_to_point_;
  Contributors all_;
  std::vector<const CollectiveSchedule*> schedules_;
  std::vector<Program> programs_;
  std::vector<Lane> lanes_;
  std::vector<size_t> ready_;
  std::unordered_map<uint64_t, Connection> connections_;  // by (channel, from, to, use)
  std::vector<std::vector<StoredRange>> stored_;          // by rank
  std::unordered_map<size_t, KeptRanges> kept_;           // by lane
  std::string error_;
  SchedulePlace place_;
};

}  // namespace

std::string CheckSchedule(const ScheduleSubject& subject, uint32_t rank_count,
                          const std::function<const CollectiveSchedule&(uint32_t)>& schedule_of,
                          SchedulePlace* place, uint32_t slots) {
  ScheduleRun run(subject, rank_count, schedule_of, slots);
  std::string error = run.Check();
  if (place != nullptr) *place = run.place();
  return error;
}

}  // namespace railyard
