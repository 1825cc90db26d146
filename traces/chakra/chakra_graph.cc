// SPDX-License-Identifier: GPL-2.0-only
#include "traces/chakra/chakra_graph.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "simulator/units/units.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

constexpr uint32_t kNodesMax = 100'000'000;  // of a rank

bool IsDivided(CollectiveKind kind) {
  return kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllToAll ||
         kind == CollectiveKind::kScatter;
}

}  // namespace

void ChakraGraph::BeginRank(uint32_t rank, uint32_t file) {
  rank_ = &ranks_[rank];
  rank_number_ = rank;
  file_ = file;
  highest_rank_ = std::max(highest_rank_, rank);
}

bool ChakraGraph::Add(ChakraNode&& node) {
  if (node.is(ChakraNodeType::kMetadata)) return true;
  const auto error = [&](const std::string& what) {
    diagnostics_.Error({.file = report_.files[file_].path}, "", what);
    return false;
  };
  const auto index = static_cast<uint32_t>(rank_->operations.size());
  if (index == kNodesMax) return error(fmt::format("more than {} nodes", kNodesMax));
  if (!operation_of_.try_emplace(node.id, index).second) {
    return error(fmt::format("node {} is there twice (expected each id once)", node.id));
  }
  GraphOperation operation;
  operation.source_file = file_;
  if (node.IsCall()) AddCall(node, operation);
  if (operation.kind == CollectiveKind::kCompute) {
    operation.duration_ps = static_cast<int64_t>(
        std::min(node.duration_us, static_cast<uint64_t>(kGraphDurationMaxPs) / kPsPerUs) *
        kPsPerUs);
  }
  rank_->operations.push_back(std::move(operation));
  data_deps_.push_back(std::move(node.data_deps));
  ctrl_deps_.push_back(std::move(node.ctrl_deps));
  return true;
}

void ChakraGraph::AddCall(const ChakraNode& node, GraphOperation& operation) {
  ++report_.files[file_].calls_seen;
  if (const auto why = FillCall(node, operation)) {
    report_.Drop(*why, file_, 0, fmt::format("node {}, {}", node.id, node.name.substr(0, 80)));
    operation.kind = CollectiveKind::kCompute;
    return;
  }
  if (!node.is(ChakraNodeType::kCollective)) {
    has_messages_ = true;
    highest_rank_ = std::max(highest_rank_, operation.peer);
    return;
  }
  rank_->collectives.push_back({.operation = static_cast<uint32_t>(rank_->operations.size()),
                                .group = node.group,
                                .root = node.root,
                                .leaves_out_dimension = node.leaves_out_dimension});
  std::vector<uint32_t>& users = users_[node.group];
  if (users.empty() || users.back() != rank_number_) users.push_back(rank_number_);
}

std::optional<CallDropReason> ChakraGraph::FillCall(const ChakraNode& node,
                                                    GraphOperation& operation) {
  if (!node.comm_size) return CallDropReason::kSizesNotRecorded;
  if (*node.comm_size == 0) return CallDropReason::kZeroCount;
  if (*node.comm_size > kOperationBytesMax / 2) return CallDropReason::kOutOfRange;
  operation.count = *node.comm_size;
  operation.stated_bytes = *node.comm_size;
  if (node.is(ChakraNodeType::kCollective)) {
    if (!node.comm_type) return CallDropReason::kKindNotRecorded;
    const auto kind = ChakraKindOf(*node.comm_type);
    if (!kind) return CallDropReason::kUnsupportedKind;
    operation.kind = *kind;
    return std::nullopt;
  }
  const bool is_send = node.is(ChakraNodeType::kSend);
  const std::optional<uint64_t>& peer = is_send ? node.comm_dst : node.comm_src;
  if (!peer) return CallDropReason::kMalformedRecord;
  if (*peer >= kTraceRanksMax || *peer == rank_number_) return CallDropReason::kOutOfRange;
  operation.kind = is_send ? CollectiveKind::kSend : CollectiveKind::kRecv;
  operation.peer = static_cast<uint32_t>(*peer);
  operation.tag = node.comm_tag;
  return std::nullopt;
}

void ChakraGraph::EndRank() {
  const auto has_any = [](const std::vector<uint64_t>& deps) { return !deps.empty(); };
  const bool has_data_deps = std::any_of(data_deps_.begin(), data_deps_.end(), has_any);
  const bool has_ctrl_deps = std::any_of(ctrl_deps_.begin(), ctrl_deps_.end(), has_any);
  took_ctrl_deps_ |= !has_data_deps && has_ctrl_deps;
  for (uint32_t i = 0; i < rank_->operations.size(); ++i) {
    std::vector<uint32_t>& waits_for = rank_->operations[i].waits_for;
    for (const uint64_t id : has_data_deps ? data_deps_[i] : ctrl_deps_[i]) {
      const auto at = operation_of_.find(id);
      if (at == operation_of_.end() || at->second == i) {
        ++missing_dependencies_;
      } else {
        waits_for.push_back(at->second);
      }
    }
  }
  operation_of_.clear();
  data_deps_.clear();
  ctrl_deps_.clear();
}

std::optional<uint32_t> ChakraGraph::CommunicatorOf(const std::string& group, uint32_t ranks,
                                                    const ChakraGroups& groups) {
  if (const auto at = communicator_of_.find(group); at != communicator_of_.end()) return at->second;
  TraceCommunicator communicator;
  communicator.name = group.empty() ? "world" : group;
  const auto stated = groups.find(group);
  if (stated != groups.end()) {
    communicator.ranks = stated->second;
    for (const uint32_t rank : communicator.ranks) {
      if (rank >= ranks) return std::nullopt;
    }
  } else if (group.empty() || users_[group].size() == ranks_.size()) {
    for (uint32_t rank = 0; rank < ranks; ++rank) communicator.ranks.push_back(rank);
  } else if (ranks_.size() == ranks) {
    communicator.ranks = users_[group];
    took_groups_from_use_ = true;
  } else {
    return std::nullopt;  // which of the ranks without a file are in it, nothing says
  }
  const auto index = static_cast<uint32_t>(communicators_.size());
  communicators_.push_back(std::move(communicator));
  communicator_of_.emplace(group, index);
  return index;
}

void ChakraGraph::Place(uint32_t rank, Call& call, uint32_t ranks, const ChakraGroups& groups) {
  GraphOperation& operation = ranks_[rank].operations[call.operation];
  const auto drop = [&](CallDropReason reason, std::string detail) {
    report_.Drop(reason, operation.source_file, 0, std::move(detail));
    operation.kind = CollectiveKind::kCompute;
  };
  std::optional<uint32_t> communicator;
  if (!call.leaves_out_dimension || !call.group.empty()) {
    communicator = CommunicatorOf(call.group, ranks, groups);
  }
  if (!communicator) {
    drop(CallDropReason::kAmbiguousCommunicator,
         call.group.empty() ? "some dimensions of a topology that the file does not have"
                            : fmt::format("group {}", call.group.substr(0, 80)));
    return;
  }
  const std::vector<uint32_t>& members = communicators_[*communicator].ranks;
  const bool is_member =
      members.size() == ranks || std::find(members.begin(), members.end(), rank) != members.end();
  if (call.root >= members.size() || !is_member) {
    drop(CallDropReason::kOutOfRange, "its rank or root is not in the group");
    return;
  }
  // As the limit of a trace counts it: over all ranks of the communicator.
  const uint64_t size = members.size();
  if (operation.count > kOperationBytesMax / size && !IsDivided(operation.kind)) {
    drop(CallDropReason::kOutOfRange, fmt::format("{} bytes", operation.count));
    return;
  }
  if (IsDivided(operation.kind)) operation.count = (operation.count + size - 1) / size;
  operation.communicator = *communicator;
  operation.root = static_cast<uint32_t>(call.root);
}

DependencyGraph ChakraGraph::Take(uint32_t ranks, const ChakraGroups& groups) {
  DependencyGraph graph;
  graph.origin = "chakra";
  for (const ImportedFile& file : report_.files) graph.source_files.push_back(file.path);
  graph.ranks.resize(ranks);
  for (auto& [rank, read] : ranks_) {
    for (Call& call : read.collectives) Place(rank, call, ranks, groups);
    graph.ranks[rank] = std::move(read.operations);
  }
  graph.communicators = std::move(communicators_);
  return graph;
}

}  // namespace railyard
