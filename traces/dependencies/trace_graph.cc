// SPDX-License-Identifier: GPL-2.0-only
#include "traces/dependencies/trace_graph.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "traces/dependencies/precedence.h"

namespace railyard {
namespace {

// Operations of one rank, with what each waits for reduced to what the others do not imply.
class RankGraphBuilder {
 public:
  RankGraphBuilder(const Trace& trace, const TraceGraphOptions& options, GlobalRank rank)
      : trace_(trace), options_(options), rank_(rank) {}

  std::vector<GraphOperation> Build() {
    const auto& operations = trace_.operations[rank_];
    ends_.resize(operations.size());
    for (size_t i = 0; i < operations.size(); ++i) {
      if (group_of_.contains(GroupKey(operations[i]))) {
        JoinGroup(i);
      } else {
        Add(i);
      }
    }
    return std::move(nodes_);
  }

 private:
  using Nodes = WaitList;

  static std::pair<uint32_t, uint32_t> GroupKey(const TraceOperation& operation) {
    return {operation.group, operation.group == 0 ? 0 : operation.communicator};
  }

  // A group waits for what its first call waits for, and ends with its last.
  void JoinGroup(size_t i) {
    const TraceOperation& operation = trace_.operations[rank_][i];
    const size_t first = group_of_.at(GroupKey(operation));
    Nodes nodes = ends_[first];
    if (MembersOf(operation)[operation.peer] == rank_) {  // a copy within the rank
      ends_[i] = nodes;
      return;
    }
    const uint32_t node =
        AddNode(MessageOf(operation), step_of_[nodes.front()], nodes_[nodes.front()].waits_for);
    nodes.push_back(node);
    last_of_stream_[operation.stream] = nodes;
    last_of_communicator_[operation.communicator] = nodes;
    for (size_t k = first; k <= i; ++k) {
      if (GroupKey(trace_.operations[rank_][k]) == GroupKey(operation)) ends_[k] = nodes;
    }
  }

  void Add(size_t i) {
    const TraceOperation& operation = trace_.operations[rank_][i];
    Nodes waits_for = last_of_stream_[operation.stream];
    if (operation.after != 0) Append(ends_[operation.after - 1], waits_for);
    const bool is_call = operation.kind != CollectiveKind::kCompute;
    const int64_t half = options_.time_unit_ps / 2;
    const int64_t gap_ps =
        (operation.compute_before_ps + half) / options_.time_unit_ps * options_.time_unit_ps;
    if (gap_ps > 0) {
      GraphOperation gap;
      gap.duration_ps = std::min(gap_ps, kGraphDurationMaxPs);
      waits_for = {AddStep(gap, waits_for)};
    }
    if (is_call) {
      Append(last_of_communicator_[operation.communicator], waits_for);
      waits_for = AddCall(operation, waits_for);
      last_of_communicator_[operation.communicator] = waits_for;
      if (operation.group != 0 && MembersOf(operation)[operation.peer] != rank_) {
        group_of_[GroupKey(operation)] = i;
      }
    }
    ends_[i] = waits_for;
    last_of_stream_[operation.stream] = std::move(waits_for);
  }

  static void Append(const Nodes& more, Nodes& nodes) {
    nodes.insert(nodes.end(), more.begin(), more.end());
  }

  const std::vector<GlobalRank>& MembersOf(const TraceOperation& operation) const {
    return trace_.communicators[trace_.CommunicatorOf(rank_, operation.communicator)].ranks;
  }

  GraphOperation MessageOf(const TraceOperation& operation) const {
    return Message(operation.kind, operation, MembersOf(operation)[operation.peer],
                   operation.count * DatatypeBytes(operation.datatype));
  }

  GraphOperation Message(CollectiveKind kind, const TraceOperation& operation, GlobalRank peer,
                         uint64_t bytes) const {
    GraphOperation message;
    message.kind = kind;
    message.count = bytes;
    message.peer = peer;
    message.tag = trace_.CommunicatorOf(rank_, operation.communicator);
    return message;
  }

  Nodes AddCall(const TraceOperation& operation, const Nodes& waits_for) {
    const std::vector<GlobalRank>& members = MembersOf(operation);
    if (operation.kind == CollectiveKind::kSend || operation.kind == CollectiveKind::kRecv) {
      if (members[operation.peer] == rank_) return waits_for;  // a copy within the rank
      return {AddStep(MessageOf(operation), waits_for)};
    }
    if (options_.expand_collectives) return Expand(operation, members, waits_for);
    GraphOperation call;
    call.kind = operation.kind;
    call.count = operation.count * DatatypeBytes(operation.datatype);
    call.communicator = trace_.CommunicatorOf(rank_, operation.communicator);
    call.root = operation.root;
    return {AddStep(call, waits_for)};
  }

  Nodes Expand(const TraceOperation& operation, const std::vector<GlobalRank>& members,
               const Nodes& waits_for) {
    const auto size = static_cast<uint32_t>(members.size());
    const auto own =
        static_cast<uint32_t>(std::find(members.begin(), members.end(), rank_) - members.begin());
    const uint64_t bytes = operation.count * DatatypeBytes(operation.datatype);
    if (size == 1) return waits_for;
    switch (operation.kind) {
      case CollectiveKind::kAllReduce:
        return Ring(operation, members, own, 2 * (size - 1), bytes, waits_for);
      case CollectiveKind::kReduceScatter:
      case CollectiveKind::kAllGather:
        return Ring(operation, members, own, size - 1, bytes * size, waits_for);
      case CollectiveKind::kBroadcast:
        return Chain(operation, members, (own + size - operation.root) % size, own, waits_for);
      case CollectiveKind::kReduce:
        return Chain(operation, members, (own + size - operation.root - 1) % size, own, waits_for);
      default:
        return Pairs(operation, members, own, bytes, waits_for);
    }
  }

  // In step s a rank sends block (own - s) to the next and receives the one before from the one
  // before it, which it sends in the next step. Blocks divide the buffer as evenly as bytes allow.
  Nodes Ring(const TraceOperation& operation, const std::vector<GlobalRank>& members, uint32_t own,
             uint32_t steps, uint64_t buffer_bytes, const Nodes& waits_for) {
    const auto size = static_cast<uint32_t>(members.size());
    const auto bytes_of = [&](uint32_t block) {
      const uint64_t each = buffer_bytes / size;
      return each + (block < buffer_bytes % size ? 1 : 0);
    };
    Nodes ends;
    Nodes received = waits_for;
    for (uint32_t step = 0; step < steps; ++step) {
      const uint32_t block = (own + 2 * size - step % size) % size;
      const uint32_t before = (block + size - 1) % size;
      Nodes sent;
      if (bytes_of(block) > 0) {
        sent.push_back(AddStep(
            Message(CollectiveKind::kSend, operation, members[(own + 1) % size], bytes_of(block)),
            received));
        ends.push_back(sent.back());
      }
      if (bytes_of(before) > 0) {
        received = {AddStep(Message(CollectiveKind::kRecv, operation,
                                    members[(own + size - 1) % size], bytes_of(before)),
                            waits_for)};
        ends.push_back(received.back());
      }
    }
    return ends.empty() ? waits_for : ends;
  }

  // The place of a rank in the chain is its distance from the beginning; each sends to the next.
  Nodes Chain(const TraceOperation& operation, const std::vector<GlobalRank>& members,
              uint32_t place, uint32_t own, const Nodes& waits_for) {
    const auto size = static_cast<uint32_t>(members.size());
    const uint64_t bytes = operation.count * DatatypeBytes(operation.datatype);
    Nodes ends = waits_for;
    if (place > 0) {
      ends = {AddStep(
          Message(CollectiveKind::kRecv, operation, members[(own + size - 1) % size], bytes),
          ends)};
    }
    if (place + 1 < size) {
      ends = {AddStep(Message(CollectiveKind::kSend, operation, members[(own + 1) % size], bytes),
                      ends)};
    }
    return ends;
  }

  Nodes Pairs(const TraceOperation& operation, const std::vector<GlobalRank>& members, uint32_t own,
              uint64_t bytes, const Nodes& waits_for) {
    const bool is_root = own == operation.root;
    const bool is_all = operation.kind == CollectiveKind::kAllToAll;
    const bool sends_to_all = is_all || (is_root && operation.kind == CollectiveKind::kScatter);
    const bool receives_all = is_all || (is_root && operation.kind == CollectiveKind::kGather);
    Nodes ends;
    for (uint32_t i = 0; i < members.size(); ++i) {
      if (i == own) continue;
      const bool is_with_root = !is_all && !is_root && i == operation.root;
      const bool sends =
          sends_to_all || (is_with_root && operation.kind == CollectiveKind::kGather);
      const bool receives =
          receives_all || (is_with_root && operation.kind == CollectiveKind::kScatter);
      if (sends) {
        ends.push_back(
            AddStep(Message(CollectiveKind::kSend, operation, members[i], bytes), waits_for));
      }
      if (receives) {
        ends.push_back(
            AddStep(Message(CollectiveKind::kRecv, operation, members[i], bytes), waits_for));
      }
    }
    return ends.empty() ? waits_for : ends;
  }

  // Messages of a pair on one communicator follow one another.
  uint32_t AddStep(GraphOperation operation, Nodes waits_for) {
    uint32_t* last = nullptr;
    if (operation.kind == CollectiveKind::kSend || operation.kind == CollectiveKind::kRecv) {
      const auto [at, is_first] = last_message_.try_emplace(
          {operation.kind, operation.peer, operation.tag}, static_cast<uint32_t>(nodes_.size()));
      if (!is_first) waits_for.push_back(at->second);
      last = &at->second;
    }
    std::sort(waits_for.begin(), waits_for.end());
    waits_for.erase(std::unique(waits_for.begin(), waits_for.end()), waits_for.end());
    std::vector<uint32_t> steps;
    for (const uint32_t node : waits_for) steps.push_back(step_of_[node]);
    const std::vector<uint32_t> after = precedence_.Latest(std::move(steps));
    const auto is_implied = [&](uint32_t node) {
      return !std::ranges::binary_search(after, step_of_[node], std::greater<>());
    };
    waits_for.erase(std::remove_if(waits_for.begin(), waits_for.end(), is_implied),
                    waits_for.end());
    const uint32_t step = precedence_.Add(LaneBehind(after), after);
    const uint32_t node = AddNode(std::move(operation), step, std::move(waits_for));
    if (last != nullptr) *last = node;
    return node;
  }

  // Returns the lane of the last of these steps that is the last one there, else one whose last
  // step they follow, else a new one.
  uint32_t LaneBehind(const std::vector<uint32_t>& steps) {
    for (const uint32_t step : steps) {
      if (precedence_.IsLastOfLane(step)) return precedence_.LaneOf(step);
    }
    const std::optional<uint32_t> lane = precedence_.LaneBehind(steps);
    return lane ? *lane : precedence_.NewLane();
  }

  uint32_t AddNode(GraphOperation operation, uint32_t step, Nodes waits_for) {
    operation.waits_for = std::move(waits_for);
    nodes_.push_back(std::move(operation));
    step_of_.push_back(step);
    return static_cast<uint32_t>(nodes_.size() - 1);
  }

  const Trace& trace_;
  const TraceGraphOptions& options_;
  const GlobalRank rank_;
  std::vector<GraphOperation> nodes_;
  std::vector<uint32_t> step_of_;  // by node: its step, of nodes that run side by side
  Precedence precedence_;          // of steps
  std::vector<Nodes> ends_;        // by operation of the trace
  std::map<std::tuple<CollectiveKind, GlobalRank, uint64_t>, uint32_t> last_message_;
  std::map<uint32_t, Nodes> last_of_stream_;
  std::map<uint32_t, Nodes> last_of_communicator_;            // by its number in the program
  std::map<std::pair<uint32_t, uint32_t>, size_t> group_of_;  // its first call
};

uint64_t OperationsOf(const Trace& trace, bool expand_collectives) {
  uint64_t count = 0;
  for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
    for (const TraceOperation& operation : trace.operations[rank]) {
      count += 2;
      if (!expand_collectives || operation.kind == CollectiveKind::kCompute) continue;
      count +=
          4 * trace.communicators[trace.CommunicatorOf(rank, operation.communicator)].ranks.size();
      if (count > kTraceGraphOperationsMax) return count;
    }
  }
  return count;
}

// Gives the operations of a rank the form in which a reader's trace is written again: computations
// that nothing but each other separates are one, and a computation for which one call alone waits,
// and that call for nothing else, stands before it, as the gap that readers take it for.
class ComputationJoiner {
 public:
  explicit ComputationJoiner(std::vector<GraphOperation> nodes)
      : nodes_(std::move(nodes)),
        dependent_of_(nodes_.size(), kNone),
        gap_of_(nodes_.size(), kNone) {
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      for (const uint32_t other : nodes_[i].waits_for) {
        dependent_of_[other] = dependent_of_[other] == kNone ? i : kSeveral;
      }
    }
  }

  std::vector<GraphOperation> Join() {
    std::vector<bool> is_moved(nodes_.size(), false);
    for (uint32_t i = 0; i < nodes_.size(); ++i) is_moved[i] = JoinWithDependent(i);
    std::vector<GraphOperation> joined;
    std::vector<uint32_t> number_of(nodes_.size());
    const auto put = [&](uint32_t i) {
      for (uint32_t& other : nodes_[i].waits_for) other = number_of[other];
      std::sort(nodes_[i].waits_for.begin(), nodes_[i].waits_for.end());
      number_of[i] = static_cast<uint32_t>(joined.size());
      joined.push_back(std::move(nodes_[i]));
    };
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (gap_of_[i] != kNone) put(gap_of_[i]);
      if (!is_moved[i]) put(i);
    }
    return joined;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kSeveral = UINT32_MAX - 1;

  // Returns false if the operation remains where it is.
  bool JoinWithDependent(uint32_t i) {
    GraphOperation& node = nodes_[i];
    const uint32_t dependent = dependent_of_[i];
    if (node.kind != CollectiveKind::kCompute || dependent >= nodes_.size()) return false;
    GraphOperation& next = nodes_[dependent];
    if (next.waits_for.size() != 1) return false;
    if (next.kind != CollectiveKind::kCompute) {
      if (node.waits_for.size() > 1) return false;
      gap_of_[dependent] = i;
      return true;
    }
    if (node.duration_ps > kGraphDurationMaxPs - next.duration_ps) return false;
    next.duration_ps += node.duration_ps;
    next.waits_for = std::move(node.waits_for);
    for (const uint32_t other : next.waits_for) {
      if (dependent_of_[other] == i) dependent_of_[other] = dependent;
    }
    return true;
  }

  std::vector<GraphOperation> nodes_;
  std::vector<uint32_t> dependent_of_;  // by operation: what waits for it, if that is one
  std::vector<uint32_t> gap_of_;        // by call: the computation that is to stand before it
};

// Until here the tag of a message is its communicator. Those of a pair are numbered in the order of
// its first Sends on them.
void NumberTags(DependencyGraph& graph) {
  std::map<std::pair<GlobalRank, GlobalRank>, std::map<uint64_t, uint64_t>> tags;
  for (const CollectiveKind kind : {CollectiveKind::kSend, CollectiveKind::kRecv}) {
    for (GlobalRank rank{0}; rank < graph.ranks.size(); ++rank) {
      for (GraphOperation& operation : graph.ranks[rank]) {
        if (operation.kind != kind) continue;
        const bool is_send = kind == CollectiveKind::kSend;
        auto& known =
            tags[is_send ? std::pair(rank, operation.peer) : std::pair(operation.peer, rank)];
        operation.tag = known.try_emplace(operation.tag, known.size()).first->second;
      }
    }
  }
}

}  // namespace

std::optional<DependencyGraph> GraphOfTrace(const Trace& trace, const TraceGraphOptions& options,
                                            const std::string& file, Diagnostics& diagnostics) {
  if (OperationsOf(trace, options.expand_collectives) > kTraceGraphOperationsMax) {
    diagnostics.Error({.file = file}, "",
                      fmt::format("more than {} operations in this format (expected fewer ranks or "
                                  "calls: railyard trace cut)",
                                  kTraceGraphOperationsMax));
    return std::nullopt;
  }
  DependencyGraph graph;
  graph.origin = trace.origin;
  graph.source_files = trace.source_files;
  graph.communicators = trace.communicators;
  for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
    graph.ranks.push_back(ComputationJoiner(RankGraphBuilder(trace, options, rank).Build()).Join());
  }
  NumberTags(graph);
  return graph;
}

}  // namespace railyard
