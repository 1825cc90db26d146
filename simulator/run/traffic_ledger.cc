// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/traffic_ledger.h"

#include <algorithm>
#include <map>
#include <utility>

#include "simulator/units/units.h"

namespace railyard {
namespace {

// While every rank was there and not every one had ended.
TimeInterval RunningOf(const CollectiveTimes& times) {
  if (times.last_end_ps == kNeverPs) return {};
  return {.begin_ps = times.last_start_ps, .end_ps = times.last_end_ps};
}

// A list of sends and receives that several calls may share.
using P2pList = std::pair<uint32_t, uint32_t>;  // first, count

void RecordMessageSizes(const Job& job, const ReplayEngine& replay, TrafficResult& traffic) {
  std::map<uint64_t, uint64_t> count_of_size;
  const auto has_ended = [&](CollectiveIndex collective) {
    return replay.ledger().times()[collective].last_end_ps != kNeverPs;
  };
  for (CollectiveIndex i{}; i < job.collectives.size(); ++i) {
    const JobCollective& collective = job.collectives[i];
    if (!collective.is_p2p() && has_ended(i)) ++count_of_size[collective.bytes];
  }
  // By list and the caller's own rank, which it sends nothing.
  std::map<std::pair<P2pList, RankIndex>, uint64_t> count_of_list;
  for (GlobalRank rank{0}; rank < job.rank_count; ++rank) {
    for (const JobOperation& call : job.operations[rank]) {
      if (call.p2p_count == 0) continue;
      const CollectiveIndex collective = job.CollectiveOf(rank, call);
      if (!has_ended(collective)) continue;
      const RankIndex own = job.CommunicatorRank(job.collectives[collective].communicator, rank);
      ++count_of_list[{{call.p2p_first, call.p2p_count}, own}];
    }
  }
  for (const auto& [key, calls] : count_of_list) {
    const auto& [list, own] = key;
    for (uint32_t i = 0; i < list.second; ++i) {
      const P2pCall& p2p = job.p2p_calls[list.first + i];
      if (p2p.is_send && p2p.peer != own && p2p.bytes > 0) count_of_size[p2p.bytes] += calls;
    }
  }
  for (const auto& [bytes, count] : count_of_size) {
    traffic.message_sizes.push_back({.bytes = bytes, .count = count});
  }
}

}  // namespace

TrafficLedger::TrafficLedger(const Job& job, const ConnectionTable& table, size_t link_count)
    : links_(link_count) {
  std::vector<std::pair<User, ConnectionId>> connections;
  for (ConnectionId id; id < table.connections().size(); ++id) {
    if (table.taken_bytes(id) == 0) continue;
    const Connection& connection = table.connections()[id];
    const JobCollective& collective = job.collectives[connection.collective];
    connections.push_back({{collective.communicator,
                            collective.is_p2p() ? RankOn(connection.from_gpu) : User::kAllRanks},
                           id});
  }
  std::ranges::sort(connections);
  for (const auto& [user, id] : connections) {
    if (users_.empty() || users_.back() != user) users_.push_back(user);
    const auto payload_bytes = static_cast<double>(table.taken_bytes(id));
    for (const LinkShare& part : table.LinkSharesOf(table.connections()[id])) {
      OnLink& link = links_[part.link];
      link.flows.Add(payload_bytes * part.share);
      AddUse(link);
    }
  }
}

// By the last of users_.
void TrafficLedger::AddUse(OnLink& link) {
  const auto user = static_cast<uint32_t>(users_.size() - 1);
  if (link.last_use != kNone && uses_[link.last_use].user == user) return;
  uses_.push_back({.user = user, .before = link.last_use});
  link.last_use = static_cast<uint32_t>(uses_.size() - 1);
}

void TrafficLedger::Record(const Job& job, const ReplayEngine& replay, RunResult& result) const {
  std::map<User, std::vector<TimeInterval>> running;
  for (const User& user : users_) running[user];
  for (CollectiveIndex i{}; i < job.collectives.size(); ++i) {
    const JobCollective& collective = job.collectives[i];
    if (collective.is_p2p()) continue;
    const auto it = running.find({collective.communicator, User::kAllRanks});
    if (it != running.end()) it->second.push_back(RunningOf(replay.ledger().times()[i]));
  }
  for (GlobalRank rank{0}; rank < job.rank_count; ++rank) {
    for (const JobOperation& call : job.operations[rank]) {
      if (call.p2p_count == 0) continue;
      const CollectiveIndex collective = job.CollectiveOf(rank, call);
      const auto it = running.find({job.collectives[collective].communicator, rank});
      if (it != running.end()) it->second.push_back(RunningOf(replay.ledger().times()[collective]));
    }
  }
  std::map<std::vector<uint32_t>, OnOffLoad> load_of_users;  // many links have the same
  std::vector<uint32_t> users;
  for (size_t id = 0; id < links_.size(); ++id) {
    const OnLink& link = links_[id];
    LinkResult& row = result.links[id];
    row.flows = link.flows.parts();
    row.flow_entropy_bits = link.flows.Bits();
    users.clear();
    for (uint32_t use = link.last_use; use != kNone; use = uses_[use].before) {
      users.push_back(uses_[use].user);
    }
    const auto [load, is_new] = load_of_users.try_emplace(users);
    if (is_new) {
      std::vector<TimeInterval> intervals;
      for (const uint32_t user : users) {
        const std::vector<TimeInterval>& more = running.at(users_[user]);
        intervals.insert(intervals.end(), more.begin(), more.end());
      }
      load->second = MeasureOnOff(std::move(intervals));
    }
    row.load = load->second;
  }
  RecordMessageSizes(job, replay, result.traffic);
}

}  // namespace railyard
