// SPDX-License-Identifier: GPL-2.0-only
#include "traces/dependencies/trace_graph.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace railyard {
namespace {

// Operations of one rank, with what each waits for reduced to what the others do not imply.
class RankGraphBuilder {
 public:
  RankGraphBuilder(const Trace& trace, const TraceGraphOptions& options, uint32_t rank)
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
  // One step of a stream: nodes that run side by side.
  struct Step {
    uint32_t stream = 0;
    uint32_t position = 0;
  };

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
    const uint32_t node = AddNode(MessageOf(operation), steps_[nodes.front()],
                                  nodes_[nodes.front()].waits_for, clocks_[nodes.front()]);
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

  const std::vector<uint32_t>& MembersOf(const TraceOperation& operation) const {
    return trace_.communicators[trace_.CommunicatorOf(rank_, operation.communicator)].ranks;
  }

  GraphOperation MessageOf(const TraceOperation& operation) const {
    return Message(operation.kind, operation, MembersOf(operation)[operation.peer],
                   operation.count * DatatypeBytes(operation.datatype));
  }

  GraphOperation Message(CollectiveKind kind, const TraceOperation& operation, uint32_t peer,
                         uint64_t bytes) const {
    GraphOperation message;
    message.kind = kind;
    message.count = bytes;
    message.peer = peer;
    message.tag = trace_.CommunicatorOf(rank_, operation.communicator);
    return message;
  }

  Nodes AddCall(const TraceOperation& operation, const Nodes& waits_for) {
    const std::vector<uint32_t>& members = MembersOf(operation);
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

  Nodes Expand(const TraceOperation& operation, const std::vector<uint32_t>& members,
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
  Nodes Ring(const TraceOperation& operation, const std::vector<uint32_t>& members, uint32_t own,
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
  Nodes Chain(const TraceOperation& operation, const std::vector<uint32_t>& members, uint32_t place,
              uint32_t own, const Nodes& waits_for) {
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

  Nodes Pairs(const TraceOperation& operation, const std::vector<uint32_t>& members, uint32_t own,
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
    std::vector<uint32_t> clock;
    for (const uint32_t node : waits_for) {
      Raise(clocks_[node], clock);
      Raise(steps_[node], clock);
    }
    Nodes needed;
    for (const uint32_t node : waits_for) {
      const auto implies = [&](uint32_t other) {
        const std::vector<uint32_t>& known = clocks_[other];
        const Step step = steps_[node];
        return step.stream < known.size() && known[step.stream] > step.position;
      };
      if (std::none_of(waits_for.begin(), waits_for.end(), implies)) needed.push_back(node);
    }
    std::sort(needed.begin(), needed.end());
    needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
    // Each node is a separate lane for its dependents: nodes of one step may run concurrently.
    const uint32_t lane = LaneOf(needed);
    const uint32_t node =
        AddNode(std::move(operation), {.stream = lane, .position = next_position_[lane]++},
                std::move(needed), std::move(clock));
    if (last != nullptr) *last = node;
    return node;
  }

  // The lane of the last node that it waits for and that is the last of its lane, else a new one.
  uint32_t LaneOf(const Nodes& needed) {
    for (size_t i = needed.size(); i > 0; --i) {
      const Step step = steps_[needed[i - 1]];
      if (next_position_[step.stream] == step.position + 1) return step.stream;
    }
    next_position_.push_back(0);
    return static_cast<uint32_t>(next_position_.size() - 1);
  }

  uint32_t AddNode(GraphOperation operation, Step step, Nodes waits_for,
                   std::vector<uint32_t> clock) {
    operation.waits_for = std::move(waits_for);
    nodes_.push_back(std::move(operation));
    steps_.push_back(step);
    clocks_.push_back(std::move(clock));
    return static_cast<uint32_t>(nodes_.size() - 1);
  }

  // Clocks hold, by lane, one more than the last position that is done before.
  static void Raise(const std::vector<uint32_t>& other, std::vector<uint32_t>& clock) {
    if (clock.size() < other.size()) clock.resize(other.size(), 0);
    for (size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
  }
  static void Raise(Step step, std::vector<uint32_t>& clock) {
    if (clock.size() <= step.stream) clock.resize(step.stream + 1, 0);
    clock[step.stream] = std::max(clock[step.stream], step.position + 1);
  }

  const Trace& trace_;
  const TraceGraphOptions& options_;
  const uint32_t rank_;
  std::vector<GraphOperation> nodes_;
  std::vector<Step> steps_;
  std::vector<std::vector<uint32_t>> clocks_;
  std::vector<uint32_t> next_position_;  // by lane
  std::vector<Nodes> ends_;              // by operation of the trace
  std::map<std::tuple<CollectiveKind, uint32_t, uint64_t>, uint32_t> last_message_;
  std::map<uint32_t, Nodes> last_of_stream_;
  std::map<uint32_t, Nodes> last_of_communicator_;            // by its number in the program
  std::map<std::pair<uint32_t, uint32_t>, size_t> group_of_;  // its first call
};

uint64_t OperationsOf(const Trace& trace, bool expand_collectives) {
  uint64_t count = 0;
  for (uint32_t rank = 0; rank < trace.rank_count; ++rank) {
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

// Until here the tag of a message is its communicator. Those of a pair are numbered in the order of
// its first Sends on them.
void NumberTags(DependencyGraph& graph) {
  std::map<std::pair<uint32_t, uint32_t>, std::map<uint64_t, uint64_t>> tags;
  for (const CollectiveKind kind : {CollectiveKind::kSend, CollectiveKind::kRecv}) {
    for (uint32_t rank = 0; rank < graph.ranks.size(); ++rank) {
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
  for (uint32_t rank = 0; rank < trace.rank_count; ++rank) {
    graph.ranks.push_back(RankGraphBuilder(trace, options, rank).Build());
  }
  NumberTags(graph);
  return graph;
}

}  // namespace railyard
