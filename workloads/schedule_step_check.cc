// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/schedule_step_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "workloads/schedule_buffer.h"

namespace railyard {
namespace {

// The first that is listed with that rank; nullptr: none.
const LanePeer* FindPeer(uint32_t rank, const std::vector<LanePeer>& by_rank) {
  const auto at =
      std::lower_bound(by_rank.begin(), by_rank.end(), rank,
                       [](const LanePeer& peer, uint32_t wanted) { return peer.rank < wanted; });
  return at != by_rank.end() && at->rank == rank ? &*at : nullptr;
}

// The pieces lie in the buffer, and what is loaded of an AllGather in the rank's own block.
std::string CheckPlaces(const ScheduleSubject& subject, uint32_t rank_count, uint32_t rank,
                        const Step& step) {
  if (IsPointToPoint(subject.kind)) return {};
  const uint64_t block = subject.block_bytes;
  const uint64_t buffer_bytes = BufferBytes(subject, rank_count);
  std::string error;
  ForEachPiece(step, buffer_bytes, [&](uint64_t offset, uint64_t bytes) {
    if (!error.empty()) return;
    if (offset > buffer_bytes || bytes > buffer_bytes - offset) {
      error = fmt::format("reaches offset {} of a buffer of {} B", offset + bytes, buffer_bytes);
    } else if (subject.kind == CollectiveKind::kAllGather && step.load_local && bytes != 0 &&
               (offset < rank * block || offset + bytes > (rank + 1) * block)) {
      error = "loads data outside its own block";
    }
  });
  return error;
}

}  // namespace

std::vector<LanePeer> PeersNamed(int32_t named, const std::vector<LanePeer>& by_rank) {
  if (named == kNoPeer) return {};
  if (named == kAllPeers) return by_rank;
  if (const LanePeer* peer = FindPeer(static_cast<uint32_t>(named), by_rank)) return {*peer};
  return {{static_cast<uint32_t>(named), ConnectionUse::kRing}};
}

std::string CheckStep(const ScheduleSubject& subject, uint32_t rank_count, uint32_t rank,
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
  return CheckPlaces(subject, rank_count, rank, step);
}

}  // namespace railyard
