// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/schedule_step_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "workloads/collectives/schedule_buffer.h"

namespace railyard {
namespace {

// Returns the first entry of that rank, or nullptr.
const LanePeer* FindPeer(uint32_t rank, const std::vector<LanePeer>& by_rank) {
  const auto at =
      std::lower_bound(by_rank.begin(), by_rank.end(), rank,
                       [](const LanePeer& peer, uint32_t wanted) { return peer.rank < wanted; });
  return at != by_rank.end() && at->rank == rank ? &*at : nullptr;
}

bool IsOwnBlock(const ScheduleSubject& subject, uint32_t rank_count, RankIndex rank,
                uint64_t offset) {
  const uint64_t block = offset / subject.block_bytes;
  return (subject.kind == CollectiveKind::kAllToAll ? block % rank_count : block) == rank;
}

// The pieces lie in the buffer, and what is loaded of an AllGather or AllToAll in the rank's own
// blocks, but for what switches gather, where nothing of others' is loaded.
std::string CheckPlaces(const ScheduleSubject& subject, uint32_t rank_count, RankIndex rank,
                        const Step& step) {
  if (IsPointToPoint(subject)) return {};
  const uint64_t buffer_bytes = BufferBytes(subject, rank_count);
  const bool has_owners =
      subject.kind == CollectiveKind::kAllGather || subject.kind == CollectiveKind::kAllToAll;
  std::string error;
  ForEachPiece(step, buffer_bytes, [&](uint64_t offset, uint64_t bytes) {
    if (!error.empty()) return;
    if (offset > buffer_bytes || bytes > buffer_bytes - offset) {
      error = fmt::format("reaches offset {} of a buffer of {} B", offset + bytes, buffer_bytes);
    } else if (has_owners && step.load_local && !step.gathers && bytes != 0 &&
               (!IsOwnBlock(subject, rank_count, rank, offset) ||
                !IsOwnBlock(subject, rank_count, rank, offset + bytes - 1))) {
      error = "loads data outside its own block";
    }
  });
  return error;
}

// Checks pieces that the network's switches take from one rank, or give to one: they lie in that
// rank's block, and all ranks take part.
std::string CheckOwners(const ScheduleSubject& subject, const LanePeers& peers, const Step& step) {
  const bool sends = step.send_to == kAllPeers && !peers.send_to.empty() &&
                     peers.send_to.front().use == ConnectionUse::kNetworkSum;
  const bool receives = step.recv_from == kAllPeers && !peers.recv_from.empty() &&
                        peers.recv_from.front().use == ConnectionUse::kNetworkSum;
  if (sends == receives) return "has the network's switches gather or scatter what it does not";
  const std::vector<LanePeer>& members = sends ? peers.send_to : peers.recv_from;
  auto owner = std::ranges::find_if(members, [&](const LanePeer& member) {
    return static_cast<int32_t>(member.rank) == step.owner;
  });
  const uint64_t bytes = step.bytes / step.pieces;
  uint64_t offset = step.offset_bytes;
  for (uint32_t piece = 0; piece < step.pieces && bytes != 0; ++piece, ++owner) {
    if (owner == members.end()) return "gathers or scatters more pieces than there are owners";
    if (offset / subject.block_bytes != owner->rank ||
        (offset + bytes - 1) / subject.block_bytes != owner->rank) {
      return fmt::format("has rank {} own offset {}", owner->rank, offset);
    }
    offset += step.stride_bytes;
  }
  return {};
}

}  // namespace

std::vector<LanePeer> PeersNamed(int32_t named, const std::vector<LanePeer>& by_rank) {
  if (named == kNoPeer) return {};
  if (named == kAllPeers) return by_rank;
  if (const LanePeer* peer = FindPeer(static_cast<uint32_t>(named), by_rank)) return {*peer};
  return {{RankIndex{named}, ConnectionUse::kRing}};
}

std::string CheckStep(const ScheduleSubject& subject, uint32_t rank_count, RankIndex rank,
                      const LanePeers& peers, const Step& step) {
  // Only peers that the lane lists, each another rank.
  const auto is_peer = [&](int32_t named, const std::vector<LanePeer>& listed) {
    const std::vector<LanePeer> ranks = PeersNamed(named, listed);
    return std::all_of(ranks.begin(), ranks.end(), [&](const LanePeer& peer) {
      const bool by_switch = peer.use == ConnectionUse::kSwitchOperand ||
                             peer.use == ConnectionUse::kSwitchResult ||
                             peer.use == ConnectionUse::kNetworkSum;
      return peer.rank < rank_count && (by_switch || peer.rank != rank) &&
             FindPeer(peer.rank, listed) != nullptr;
    });
  };
  const bool receives = step.recv_from != kNoPeer;
  const bool several = step.recv_from == kAllPeers && peers.recv_from.size() > 1;
  const int operands = (several    ? 2
                        : receives ? 1
                                   : 0) +
                       (step.load_local ? 1 : 0) + (step.load_kept ? 1 : 0);
  if (!is_peer(step.recv_from, peers.recv_from) || !is_peer(step.send_to, peers.send_to)) {
    return fmt::format("names peer {} or {}, which is not another rank that the lane lists",
                       step.recv_from, step.send_to);
  }
  if (step.reduce && operands < 2) return "reduces without a second operand";
  if (several && !step.reduce)
    return "receives from several without reducing: all but one are lost";
  if (operands > 1 && !step.reduce)
    return "takes several operands without reducing: all but one are lost";
  if (operands == 0) return "has no data: it neither receives nor loads";
  if (step.pieces == 0 || step.bytes % step.pieces != 0) {
    return fmt::format("divides {} B among {} pieces", step.bytes, step.pieces);
  }
  if (step.gathers || step.scatters) {
    if (std::string wrong = CheckOwners(subject, peers, step); !wrong.empty()) return wrong;
  }
  return CheckPlaces(subject, rank_count, rank, step);
}

}  // namespace railyard
