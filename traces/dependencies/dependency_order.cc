// SPDX-License-Identifier: GPL-2.0-only
#include "traces/dependencies/dependency_order.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

namespace railyard {
namespace {

bool IsMessage(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv;
}

// One end of a message.
struct End {
  GlobalRank source{};
  GlobalRank target{};
  uint64_t tag = 0;
  GraphPlace place;
};

auto Direction(const End& end) { return std::tie(end.source, end.target, end.tag); }

bool ComesBefore(const End& a, const End& b) { return Direction(a) < Direction(b); }

// Orders units: an operation, or the Send and the Recv of a message, which end together. With eager
// Sends a separate unit represents the dependencies of their dependents.
class JobOrderer {
 public:
  JobOrderer(const DependencyGraph& graph, const MatchedMessages& messages, SendsAre sends)
      : graph_(graph), messages_(messages), sends_(sends) {}

  JobOrder Run(OrderIs preferred) {
    // Without messages ranks do not wait for each other.
    if (!HasMessages() && IsInOrder()) return InNumberOrder();
    MakeUnits();
    MakeEdges();
    if (preferred == OrderIs::kByNumber) {
      if (std::optional<JobOrder> by_number = OrderByNumber()) return *std::move(by_number);
    }
    return Sort();
  }

 private:
  struct Unit {
    GraphPlace place;       // of the Send, for a message
    bool is_issue = false;  // where a Send is begun, for those that wait for it
    uint32_t waits = 0;     // edges that lead to it
  };

  const GraphOperation& At(GraphPlace place) const {
    return graph_.ranks[place.rank][place.operation];
  }

  void MakeUnits() {
    unit_of_.resize(graph_.ranks.size());
    for (GlobalRank rank{0}; rank < graph_.ranks.size(); ++rank) {
      unit_of_[rank].resize(graph_.ranks[rank].size());
    }
    for (GlobalRank rank{0}; rank < graph_.ranks.size(); ++rank) {
      for (uint32_t i = 0; i < graph_.ranks[rank].size(); ++i) {
        const auto& partner = messages_.partner[rank][i];
        if (partner && graph_.ranks[rank][i].kind == CollectiveKind::kRecv) continue;
        const auto unit = static_cast<uint32_t>(units_.size());
        units_.push_back({.place = {rank, i}});
        unit_of_[rank][i] = unit;
        if (partner) unit_of_[partner->rank][partner->operation] = unit;
      }
    }
    if (sends_ == SendsAre::kSynchronous) return;
    issue_of_.resize(graph_.ranks.size());
    for (GlobalRank rank{0}; rank < graph_.ranks.size(); ++rank) {
      issue_of_[rank].resize(graph_.ranks[rank].size());
      for (uint32_t i = 0; i < graph_.ranks[rank].size(); ++i) {
        issue_of_[rank][i] = unit_of_[rank][i];
        if (graph_.ranks[rank][i].kind != CollectiveKind::kSend) continue;
        issue_of_[rank][i] = static_cast<uint32_t>(units_.size());
        units_.push_back({.place = {rank, i}, .is_issue = true});
      }
    }
  }

  void AddEdge(uint32_t from, uint32_t to) {
    edges_.emplace_back(from, to);
    ++units_[to].waits;
  }

  void MakeEdges() {
    for (GlobalRank rank{0}; rank < graph_.ranks.size(); ++rank) {
      for (uint32_t i = 0; i < graph_.ranks[rank].size(); ++i) {
        const bool is_eager = !issue_of_.empty();
        const uint32_t unit = is_eager ? issue_of_[rank][i] : unit_of_[rank][i];
        for (const uint32_t other : graph_.ranks[rank][i].waits_for) {
          AddEdge(is_eager ? issue_of_[rank][other] : unit_of_[rank][other], unit);
        }
        if (unit != unit_of_[rank][i]) AddEdge(unit, unit_of_[rank][i]);
      }
    }
  }

  std::optional<JobOrder> OrderByNumber() {
    const size_t edges_before = edges_.size();
    const std::vector<Unit> units_before = units_;
    if (!IsInOrder() || !AddPairEdges()) return std::nullopt;
    JobOrder sorted = Sort();
    edges_.resize(edges_before);
    units_ = units_before;
    if (sorted.in_cycle) return std::nullopt;
    return InNumberOrder();
  }

  JobOrder InNumberOrder() const {
    JobOrder result;
    for (GlobalRank rank{0}; rank < graph_.ranks.size(); ++rank) {
      for (uint32_t i = 0; i < graph_.ranks[rank].size(); ++i) result.order.push_back({rank, i});
    }
    return result;
  }

  bool HasMessages() const {
    const auto has_any = [](const std::vector<std::optional<GraphPlace>>& partners) {
      return std::any_of(partners.begin(), partners.end(),
                         [](const std::optional<GraphPlace>& partner) { return partner; });
    };
    return std::any_of(messages_.partner.begin(), messages_.partner.end(), has_any);
  }

  bool IsInOrder() const {
    for (const std::vector<GraphOperation>& rank : graph_.ranks) {
      for (uint32_t i = 0; i < rank.size(); ++i) {
        const auto is_later = [&](uint32_t other) { return other > i; };
        if (std::any_of(rank[i].waits_for.begin(), rank[i].waits_for.end(), is_later)) return false;
      }
    }
    return true;
  }

  // From each message of a pair and tag to the next, in the order of Sends; false, and no edges,
  // where the order of Recvs is another.
  bool AddPairEdges() {
    std::map<std::tuple<uint32_t, uint32_t, uint64_t>, GraphPlace> last;  // the Send
    std::vector<std::pair<uint32_t, uint32_t>> added;
    for (GlobalRank rank{0}; rank < graph_.ranks.size(); ++rank) {
      for (uint32_t i = 0; i < graph_.ranks[rank].size(); ++i) {
        const auto& recv = messages_.partner[rank][i];
        if (!recv || graph_.ranks[rank][i].kind != CollectiveKind::kSend) continue;
        const auto [at, is_first] =
            last.try_emplace({rank, recv->rank, graph_.ranks[rank][i].tag}, GraphPlace{rank, i});
        if (is_first) continue;
        const uint32_t before = std::exchange(at->second, {rank, i}).operation;
        if (messages_.partner[rank][before]->operation > recv->operation) return false;
        added.emplace_back(unit_of_[rank][before], unit_of_[rank][i]);
      }
    }
    for (const auto& [from, to] : added) AddEdge(from, to);
    return true;
  }

  // A message counts where its later end stands.
  uint64_t KeyOf(uint32_t unit) const {
    const GraphPlace place = units_[unit].place;
    uint64_t key = place.operation;
    const auto& partner = messages_.partner[place.rank][place.operation];
    if (partner && !units_[unit].is_issue) key = std::max<uint64_t>(key, partner->operation);
    return key << 32 | unit;
  }

  JobOrder Sort() {
    JobOrder result;
    std::vector<std::pair<uint32_t, uint32_t>> edges = edges_;
    std::sort(edges.begin(), edges.end());
    std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> ready;
    for (uint32_t unit = 0; unit < units_.size(); ++unit) {
      if (units_[unit].waits == 0) ready.push(KeyOf(unit));
    }
    size_t taken = 0;
    while (!ready.empty()) {
      const auto unit = static_cast<uint32_t>(ready.top());
      ready.pop();
      ++taken;
      if (!units_[unit].is_issue) {
        const GraphPlace place = units_[unit].place;
        result.order.push_back(place);
        const auto& partner = messages_.partner[place.rank][place.operation];
        if (partner) result.order.push_back(*partner);
      }
      auto edge = std::lower_bound(edges.begin(), edges.end(), std::pair(unit, uint32_t{0}));
      for (; edge != edges.end() && edge->first == unit; ++edge) {
        if (--units_[edge->second].waits == 0) ready.push(KeyOf(edge->second));
      }
    }
    if (taken == units_.size()) return result;
    result.order.clear();
    result.in_cycle = InCycle();
    return result;
  }

  // From any unit that was not reached back along what it waits for: the first one met twice.
  GraphPlace InCycle() const {
    std::vector<uint32_t> waits_for(units_.size(), UINT32_MAX);
    uint32_t at = 0;
    for (const auto& [from, to] : edges_) {
      if (units_[from].waits > 0 && units_[to].waits > 0) waits_for[to] = from;
    }
    while (units_[at].waits == 0) ++at;
    std::vector<bool> is_seen(units_.size(), false);
    while (!is_seen[at]) {
      is_seen[at] = true;
      at = waits_for[at];
    }
    return units_[at].place;
  }

  const DependencyGraph& graph_;
  const MatchedMessages& messages_;
  const SendsAre sends_;
  std::vector<Unit> units_;
  std::vector<std::vector<uint32_t>> unit_of_;
  std::vector<std::vector<uint32_t>> issue_of_;  // empty unless Sends are eager
  std::vector<std::pair<uint32_t, uint32_t>> edges_;
};

}  // namespace

MatchedMessages MatchMessages(const DependencyGraph& graph) {
  MatchedMessages matched;
  matched.partner.resize(graph.ranks.size());
  std::vector<End> sends;
  std::vector<End> recvs;
  for (GlobalRank rank{0}; rank < graph.ranks.size(); ++rank) {
    matched.partner[rank].resize(graph.ranks[rank].size());
    for (uint32_t i = 0; i < graph.ranks[rank].size(); ++i) {
      const GraphOperation& operation = graph.ranks[rank][i];
      if (!IsMessage(operation.kind)) continue;
      const bool is_send = operation.kind == CollectiveKind::kSend;
      (is_send ? sends : recvs)
          .push_back({.source = is_send ? rank : operation.peer,
                      .target = is_send ? operation.peer : rank,
                      .tag = operation.tag,
                      .place = {rank, i}});
    }
  }
  std::stable_sort(sends.begin(), sends.end(), ComesBefore);
  std::stable_sort(recvs.begin(), recvs.end(), ComesBefore);
  size_t s = 0;
  size_t r = 0;
  while (s < sends.size() || r < recvs.size()) {
    if (r == recvs.size() || (s < sends.size() && ComesBefore(sends[s], recvs[r]))) {
      matched.without_partner.push_back(sends[s++].place);
    } else if (s == sends.size() || ComesBefore(recvs[r], sends[s])) {
      matched.without_partner.push_back(recvs[r++].place);
    } else {
      const GraphPlace send = sends[s++].place;
      const GraphPlace recv = recvs[r++].place;
      if (graph.ranks[send.rank][send.operation].count ==
          graph.ranks[recv.rank][recv.operation].count) {
        matched.partner[send.rank][send.operation] = recv;
        matched.partner[recv.rank][recv.operation] = send;
      } else {
        matched.sizes_differ.insert(matched.sizes_differ.end(), {send, recv});
      }
    }
  }
  return matched;
}

JobOrder OrderJob(const DependencyGraph& graph, const MatchedMessages& messages, SendsAre sends,
                  OrderIs preferred) {
  return JobOrderer(graph, messages, sends).Run(preferred);
}

}  // namespace railyard
