// SPDX-License-Identifier: GPL-2.0-only
#include "traces/chakra/chakra_writer.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/units/units.h"
#include "traces/chakra/chakra_message.h"
#include "traces/dependencies/trace_graph.h"

namespace railyard {
namespace {

bool IsWorld(const std::vector<GlobalRank>& ranks, size_t rank_count) {
  if (ranks.size() != rank_count) return false;
  for (uint32_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] != i) return false;
  }
  return true;
}

class ChakraWriter {
 public:
  explicit ChakraWriter(DependencyGraph graph) : graph_(std::move(graph)) {}

  std::string FileOf(uint32_t rank) {
    std::string bytes;
    AppendChakraMetadata(bytes);
    for (uint32_t i = 0; i < graph_.ranks[rank].size(); ++i) {
      AppendChakraNode(NodeOf(rank, i), bytes);
    }
    // ASTRA-sim's feeder takes a file without a node that can begin for a deadlock.
    if (graph_.ranks[rank].empty()) AppendChakraNode(Computation(0, 0), bytes);
    return bytes;
  }

  std::string Groups() const {
    std::string text;
    for (size_t i = 0; i < groups_.size(); ++i) {
      text += fmt::format("{}\"{}\": [{}]", i == 0 ? "{" : ", ", i + 1,
                          fmt::join(graph_.communicators[groups_[i]].ranks, ", "));
    }
    return groups_.empty() ? text : text + "}\n";
  }

 private:
  static ChakraNode Computation(uint32_t i, int64_t duration_ps) {
    ChakraNode node;
    node.id = i;
    node.type = static_cast<uint64_t>(ChakraNodeType::kCompute);
    node.name = fmt::format("COMP_NODE_{}", i);
    node.duration_us = static_cast<uint64_t>(duration_ps / kPsPerUs);
    return node;
  }

  ChakraNode NodeOf(uint32_t rank, uint32_t i) {
    const GraphOperation& operation = graph_.ranks[rank][i];
    ChakraNode node;
    if (operation.kind == CollectiveKind::kCompute) node = Computation(i, operation.duration_ps);
    node.id = i;
    node.data_deps.assign(operation.waits_for.begin(), operation.waits_for.end());
    switch (operation.kind) {
      case CollectiveKind::kCompute:
        return node;
      case CollectiveKind::kSend:
        node.type = static_cast<uint64_t>(ChakraNodeType::kSend);
        node.name = fmt::format("COMM_SEND_NODE_{}", i);
        node.comm_src = rank;
        node.comm_dst = operation.peer;
        break;
      case CollectiveKind::kRecv:
        node.type = static_cast<uint64_t>(ChakraNodeType::kRecv);
        node.name = fmt::format("COMM_RECV_NODE_{}", i);
        node.comm_src = operation.peer;
        node.comm_dst = rank;
        break;
      default:
        node.type = static_cast<uint64_t>(ChakraNodeType::kCollective);
        node.name = fmt::format("COMM_COLL_NODE_{}", i);
        node.comm_type = ChakraCommType(operation.kind);
        node.root = operation.root;
        node.group = GroupOf(operation.communicator);
        node.comm_size = SizeOf(operation);
        return node;
    }
    node.comm_tag = operation.tag;
    node.comm_size = operation.count;
    return node;
  }

  // Returns the bytes that a rank sends.
  uint64_t SizeOf(const GraphOperation& operation) const {
    const bool is_divided = operation.kind == CollectiveKind::kReduceScatter ||
                            operation.kind == CollectiveKind::kAllToAll ||
                            operation.kind == CollectiveKind::kScatter;
    const uint64_t size = graph_.communicators[operation.communicator].ranks.size();
    return is_divided ? operation.count * size : operation.count;
  }

  // Groups are numbered in the order of their first calls; the first of all ranks has no name.
  std::string GroupOf(uint32_t communicator) {
    if (IsWorld(graph_.communicators[communicator].ranks, graph_.ranks.size()) &&
        communicator == world_.value_or(communicator)) {
      world_ = communicator;
      return {};
    }
    const auto [at, is_new] = number_of_.try_emplace(communicator, groups_.size() + 1);
    if (is_new) groups_.push_back(communicator);
    return std::to_string(at->second);
  }

  DependencyGraph graph_;
  std::vector<uint32_t> groups_;
  std::map<uint32_t, size_t> number_of_;
  std::optional<uint32_t> world_;  // the communicator without a name
};

}  // namespace

bool WriteChakra(const Trace& trace, const std::string& prefix, const std::string& file,
                 const std::function<void(const std::string&, const std::string&)>& write,
                 Diagnostics& diagnostics) {
  auto graph = GraphOfTrace(trace, {.time_unit_ps = kPsPerUs}, file, diagnostics);
  if (!graph) return false;
  ChakraWriter writer(*std::move(graph));
  for (uint32_t rank = 0; rank < trace.rank_count; ++rank) {
    write(fmt::format("{}.{}.et", prefix, rank), writer.FileOf(rank));
  }
  if (const std::string groups = writer.Groups(); !groups.empty()) {
    write(prefix + ".comm_groups.json", groups);
  }
  return true;
}

}  // namespace railyard
