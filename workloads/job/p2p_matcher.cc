// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/job/p2p_matcher.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "simulator/units/mix64.h"
#include "workloads/job/call_place.h"

namespace railyard {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr size_t kUnmatchedShown = 20;

template <typename Endpoint>
auto Direction(const Endpoint& endpoint) {
  return std::tie(endpoint.communicator, endpoint.source, endpoint.target);
}

}  // namespace

P2pMatcher::P2pMatcher(const Trace& trace, std::vector<JobCollective>& collectives,
                       std::vector<P2pCall>& calls, Diagnostics& diagnostics)
    : trace_(trace), collectives_(collectives), calls_(calls), diagnostics_(diagnostics) {
  size_t size_max = 0;
  for (const auto& communicator : trace.communicators) {
    size_max = std::max(size_max, communicator.ranks.size());
  }
  seen_.resize(size_max, kNone);
}

void P2pMatcher::Reserve(size_t groups, size_t sends, size_t recvs) {
  groups_.reserve(groups);
  parent_.reserve(groups);
  sends_.reserve(sends);
  recvs_.reserve(recvs);
}

uint32_t P2pMatcher::Add(const TraceOperation& operation, CommunicatorIndex communicator,
                         RankIndex rank, std::vector<JobOperation>& operations,
                         std::vector<CollectiveIndex>& called) {
  uint32_t index = static_cast<uint32_t>(groups_.size());
  if (operation.group != 0) {
    const uint64_t key = uint64_t{operation.group} << 32 | communicator;
    index = open_groups_.try_emplace(key, index).first->second;
  }
  if (index == groups_.size()) {
    groups_.push_back({.collective = CollectiveIndex{collectives_.size()},
                       .communicator = communicator,
                       .rank = rank,
                       .all_to_all = operation.all_to_all});
    parent_.push_back(index);
    JobCollective collective;
    collective.kind = CollectiveKind::kSend;
    collective.communicator = communicator;
    collective.datatype = operation.datatype;
    collective.expert_kernel = operation.expert.kernel;
    collective.source_file = operation.source_file;
    collective.source_line = operation.source_line;
    collectives_.push_back(collective);
    group_operations_.push_back(static_cast<uint32_t>(operations.size()));
    JobOperation entry;
    entry.call = static_cast<uint32_t>(called.size());
    entry.communicator = operation.communicator;
    entry.stream = operation.stream;
    entry.is_p2p = true;
    operations.push_back(entry);
    called.push_back(groups_.back().collective);
  }
  const uint32_t added_to = group_operations_[index - first_group_];
  operations[added_to].compute_before_ps += operation.compute_before_ps;
  groups_[index].measured_ps = std::max(groups_[index].measured_ps, operation.measured_ps);

  const uint64_t bytes = operation.count * DatatypeBytes(operation.datatype);
  const bool is_send = operation.kind == CollectiveKind::kSend;
  const RankIndex peer{operation.peer};
  pending_.push_back({index, {is_send, peer, bytes, operation.expert}});
  Endpoint endpoint;
  endpoint.communicator = communicator;
  endpoint.source = is_send ? rank : peer;
  endpoint.target = is_send ? peer : rank;
  endpoint.group = index;
  endpoint.bytes = bytes;
  endpoint.source_file = operation.source_file;
  endpoint.source_line = operation.source_line;
  (is_send ? sends_ : recvs_).push_back(endpoint);
  return added_to;
}

void P2pMatcher::FinishRank(std::vector<JobOperation>& operations) {
  // The calls of a group next to one another, in their order.
  const auto by_group = [](const PendingCall& a, const PendingCall& b) {
    return a.group < b.group;
  };
  if (!std::is_sorted(pending_.begin(), pending_.end(), by_group)) {
    std::stable_sort(pending_.begin(), pending_.end(), by_group);
  }
  for (size_t i = 0; i < pending_.size();) {
    Group& group = groups_[pending_[i].group];
    JobOperation& operation = operations[group_operations_[pending_[i].group - first_group_]];
    const size_t first = i;
    while (i < pending_.size() && pending_[i].group == pending_[first].group) ++i;
    operation.p2p_first = Keep(std::span(pending_).subspan(first, i - first));
    operation.p2p_count = static_cast<uint32_t>(i - first);
    Summarize(group, calls_.data() + operation.p2p_first, operation.p2p_count);
  }
  pending_.clear();
  open_groups_.clear();
  group_operations_.clear();
  first_group_ = static_cast<uint32_t>(groups_.size());
}

// Returns the index of the list in calls_. Equal lists are stored once, for many are equal.
uint32_t P2pMatcher::Keep(std::span<const PendingCall> list) {
  uint64_t hash = list.size();
  for (const PendingCall& pending : list) {
    hash = Mix64(hash ^ (uint64_t{pending.call.peer} << 1 | (pending.call.is_send ? 1 : 0)));
    hash = Mix64(hash ^ pending.call.bytes);
    if (const ExpertCall& expert = pending.call.expert; expert.kernel != ExpertKernel::kNone) {
      hash = Mix64(hash ^ (uint64_t{expert.relayed_for} << 32 | expert.token_bytes));
    }
  }
  const auto [begin, end] = kept_.equal_range(hash);
  const auto known = std::find_if(begin, end, [&](const auto& entry) {
    const auto first = calls_.begin() + entry.second.first;
    return std::equal(first, first + entry.second.count, list.begin(), list.end(),
                      [](const P2pCall& a, const PendingCall& b) { return a == b.call; });
  });
  if (known != end) return known->second.first;
  const auto first = static_cast<uint32_t>(calls_.size());
  for (const PendingCall& pending : list) calls_.push_back(pending.call);
  kept_.emplace(hash, KeptList{first, static_cast<uint32_t>(list.size())});
  return first;
}

void P2pMatcher::Summarize(Group& group, const P2pCall* calls, uint32_t call_count) {
  const size_t size = trace_.communicators[group.communicator].ranks.size();
  const uint32_t index = static_cast<uint32_t>(&group - groups_.data());
  size_t peer_count = 0;
  group.exchange = true;
  for (uint32_t i = 0; i < call_count; ++i) {
    const P2pCall& call = calls[i];
    if (call.peer == group.rank) {
      group.sends_to_itself |= call.is_send;
      continue;
    }
    if (!call.is_send) {
      group.received_bytes += call.bytes;
      continue;
    }
    if (peer_count == 0) group.exchanged_bytes = call.bytes;
    if (seen_[call.peer] == index || call.bytes != group.exchanged_bytes) group.exchange = false;
    seen_[call.peer] = index;
    ++peer_count;
    group.sent_bytes += call.bytes;
  }
  // Two ranks that send each other something are a SendRecv; those of an AllToAll send to
  // themselves as well (nccl-tests, PyTorch).
  const bool is_all_to_all = size > 2 || (size == 2 && group.sends_to_itself);
  group.exchange = group.exchange && is_all_to_all && peer_count == size - 1;
}

std::vector<uint32_t> P2pMatcher::Match() {
  const auto by_direction = [](const Endpoint& a, const Endpoint& b) {
    return Direction(a) < Direction(b);
  };
  std::stable_sort(sends_.begin(), sends_.end(), by_direction);
  std::stable_sort(recvs_.begin(), recvs_.end(), by_direction);
  size_t s = 0;
  size_t r = 0;
  while (s < sends_.size() || r < recvs_.size()) {
    // The messages of one direction of one pair.
    const Endpoint& first =
        r == recvs_.size() || (s < sends_.size() && Direction(sends_[s]) <= Direction(recvs_[r]))
            ? sends_[s]
            : recvs_[r];
    const auto same = [&](const std::vector<Endpoint>& all, size_t at) {
      return at < all.size() && Direction(all[at]) == Direction(first);
    };
    size_t index = 0;
    for (; same(sends_, s) && same(recvs_, r); ++s, ++r, ++index) Join(sends_[s], recvs_[r]);
    if (same(sends_, s)) Unmatched(sends_[s], true, index);
    if (same(recvs_, r)) Unmatched(recvs_[r], false, index);
    while (same(sends_, s)) ++s;
    while (same(recvs_, r)) ++r;
  }
  if (unmatched_count_ > kUnmatchedShown) {
    diagnostics_.Error(PlaceOf(trace_, 0, 0), "",
                       fmt::format("{} more pairs of ranks with a Send or Recv without its partner",
                                   unmatched_count_ - kUnmatchedShown));
  }
  JoinAllToAlls();
  DescribeCollectives();

  std::vector<uint32_t> remap(collectives_.size());
  for (uint32_t i = 0; i < remap.size(); ++i) remap[i] = i;
  for (uint32_t i = 0; i < groups_.size(); ++i) {
    remap[groups_[i].collective] = groups_[FindRoot(i)].collective;
  }
  return remap;
}

void P2pMatcher::Unmatched(const Endpoint& endpoint, bool is_send, size_t index) {
  if (++unmatched_count_ > kUnmatchedShown) return;
  diagnostics_.Error(
      PlaceOf(trace_, endpoint.source_file, endpoint.source_line), "",
      fmt::format("{} {} from rank {} to rank {} of communicator {} has no {} (each Send needs a "
                  "Recv on the other rank, in the same order)",
                  is_send ? "Send" : "Recv", index + 1, endpoint.source, endpoint.target,
                  trace_.communicators[endpoint.communicator].name, is_send ? "Recv" : "Send"));
}

void P2pMatcher::Join(const Endpoint& send, const Endpoint& recv) {
  const auto& name = trace_.communicators[send.communicator].name;
  if (send.bytes != recv.bytes) {
    diagnostics_.Error(PlaceOf(trace_, recv.source_file, recv.source_line), "",
                       fmt::format("Recv of {} B from rank {} by rank {} of communicator {} meets "
                                   "a Send of {} B (they must be equal)",
                                   recv.bytes, recv.source, recv.target, name, send.bytes));
    diagnostics_.Note(PlaceOf(trace_, send.source_file, send.source_line), "",
                      fmt::format("the Send of {} B by rank {} to rank {} of communicator {}",
                                  send.bytes, send.source, send.target, name));
  }
  if (send.source == send.target && send.group != recv.group) {
    diagnostics_.Error(PlaceOf(trace_, send.source_file, send.source_line), "",
                       fmt::format("rank {} of communicator {} sends to itself and receives in "
                                   "another group (both must be in one ncclGroup)",
                                   send.source, name));
    diagnostics_.Note(
        PlaceOf(trace_, recv.source_file, recv.source_line), "",
        fmt::format("the Recv of rank {} of communicator {} from itself", recv.target, name));
  }
  Merge(send.group, recv.group);
}

// The groups of one AllToAllv, though some pairs have nothing to say.
void P2pMatcher::JoinAllToAlls() {
  std::unordered_map<uint64_t, uint32_t> first_group;  // by (all_to_all, communicator)
  for (uint32_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].all_to_all == 0) continue;
    const uint64_t key = uint64_t{groups_[i].all_to_all} << 32 | groups_[i].communicator;
    Merge(i, first_group.try_emplace(key, i).first->second);
  }
}

// The group seen first names the collective.
void P2pMatcher::Merge(uint32_t group, uint32_t other) {
  const uint32_t a = FindRoot(group);
  const uint32_t b = FindRoot(other);
  parent_[std::max(a, b)] = std::min(a, b);
}

uint32_t P2pMatcher::FindRoot(uint32_t group) {
  while (parent_[group] != group) {
    parent_[group] = parent_[parent_[group]];
    group = parent_[group];
  }
  return group;
}

// The size of each collective, and whether it is an AllToAll: one group on every rank of the
// communicator, each with the same bytes for every other rank.
void P2pMatcher::DescribeCollectives() {
  struct Sums {
    uint32_t group_count = 0;
    bool exchange = true;
  };
  std::vector<Sums> sums(groups_.size());
  std::vector<std::tuple<uint32_t, RankIndex, uint32_t>> members;  // root, communicator rank, group
  members.reserve(groups_.size());
  for (uint32_t i = 0; i < groups_.size(); ++i) {
    const uint32_t root = FindRoot(i);
    const Group& group = groups_[i];
    ++sums[root].group_count;
    sums[root].exchange = sums[root].exchange && group.exchange &&
                          group.exchanged_bytes == groups_[root].exchanged_bytes;
    members.emplace_back(root, group.rank, i);
  }
  std::sort(members.begin(), members.end());
  for (size_t i = 0; i < members.size();) {
    const uint32_t root = std::get<0>(members[i]);
    const RankIndex rank = std::get<1>(members[i]);
    uint64_t sent_bytes = 0;
    uint64_t received_bytes = 0;
    int64_t measured_ps = 0;
    for (; i < members.size() && std::get<0>(members[i]) == root && std::get<1>(members[i]) == rank;
         ++i) {
      sent_bytes += groups_[std::get<2>(members[i])].sent_bytes;
      received_bytes += groups_[std::get<2>(members[i])].received_bytes;
      measured_ps += groups_[std::get<2>(members[i])].measured_ps;
    }
    JobCollective& collective = collectives_[groups_[root].collective];
    ++collective.rank_count;
    collective.AddMeasured(measured_ps);
    collective.bytes = groups_[root].all_to_all != 0
                           ? collective.bytes + sent_bytes
                           : std::max({collective.bytes, sent_bytes, received_bytes});
  }
  for (uint32_t i = 0; i < groups_.size(); ++i) {
    if (parent_[i] != i) continue;
    const Group& group = groups_[i];
    const size_t size = trace_.communicators[group.communicator].ranks.size();
    JobCollective& collective = collectives_[group.collective];
    collective.is_all_to_all_v = group.all_to_all != 0;
    if (collective.is_all_to_all_v) continue;
    if (!sums[i].exchange || sums[i].group_count != size || collective.rank_count != size) continue;
    collective.kind = CollectiveKind::kAllToAll;
    collective.count = group.exchanged_bytes / DatatypeBytes(collective.datatype);
    collective.bytes = group.exchanged_bytes * size;
  }
}

}  // namespace railyard
