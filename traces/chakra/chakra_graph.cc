// SPDX-License-Identifier: GPL-2.0-only
#include "traces/chakra/chakra_graph.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "simulator/units/divide_up.h"
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

bool ChakraGraph::Error(const std::string& what) {
  diagnostics_.Error({.file = report_.files[file_].path}, "", what);
  return false;
}

bool ChakraGraph::IsTwice(uint64_t id) {
  return Error(fmt::format("node {} is there twice (expected each id once)", id));
}

bool ChakraGraph::Add(const ChakraNode& node) {
  if (node.is(ChakraNodeType::kMetadata)) return true;
  if (rank_->operations.size() == kNodesMax) {
    return Error(fmt::format("more than {} nodes", kNodesMax));
  }
  if (const auto twice = ids_.Add(node.id)) return IsTwice(*twice);
  GraphOperation operation;
  operation.source_file = file_;
  if (node.IsCall()) AddCall(node, operation);
  if (operation.kind == CollectiveKind::kCompute) {
    constexpr uint64_t kDurationUsMax = static_cast<uint64_t>(kGraphDurationMaxPs) / kPsPerUs;
    shortened_durations_ += node.duration_us > kDurationUsMax ? 1 : 0;
    operation.duration_ps =
        static_cast<int64_t>(std::min(node.duration_us, kDurationUsMax) * kPsPerUs);
  }
  rank_->operations.push_back(std::move(operation));
  data_deps_.Add(node.data_deps);
  ctrl_deps_.Add(node.ctrl_deps);
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
    highest_rank_ = std::max<uint32_t>(highest_rank_, operation.peer);
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
  operation.peer = GlobalRank{*peer};
  operation.tag = node.comm_tag;
  return std::nullopt;
}

bool ChakraGraph::EndRank() {
  if (const auto twice = ids_.Sort()) return IsTwice(*twice);
  const bool takes_ctrl_deps = data_deps_.ids.empty() && !ctrl_deps_.ids.empty();
  took_ctrl_deps_ |= takes_ctrl_deps;
  const NodeDependencies& deps = takes_ctrl_deps ? ctrl_deps_ : data_deps_;
  size_t next = 0;
  for (uint32_t i = 0; i < rank_->operations.size(); ++i) {
    WaitList& waits_for = rank_->operations[i].waits_for;
    waits_for.reserve(deps.ends[i] - next);
    for (; next < deps.ends[i]; ++next) {
      const std::optional<uint32_t> other = ids_.Find(deps.ids[next]);
      if (!other || *other == i) {
        ++missing_dependencies_;
      } else {
        waits_for.push_back(*other);
      }
    }
  }
  ids_.Clear();
  data_deps_ = {};
  ctrl_deps_ = {};
  return true;
}

std::optional<uint32_t> ChakraGraph::CommunicatorOf(const std::string& group, uint32_t ranks,
                                                    const ChakraGroups& groups) {
  if (const auto at = communicator_of_.find(group); at != communicator_of_.end()) return at->second;
  TraceCommunicator communicator;
  communicator.name = group.empty() ? "world" : group;
  const auto stated = groups.find(group);
  if (stated != groups.end()) {
    communicator.ranks = GlobalRanksOf(stated->second);
    for (const GlobalRank rank : communicator.ranks) {
      if (rank >= ranks) return std::nullopt;
    }
  } else if (group.empty() || users_[group].size() == ranks_.size()) {
    for (GlobalRank rank{0}; rank < ranks; ++rank) communicator.ranks.push_back(rank);
    took_groups_from_one_ = took_groups_from_one_ || (!group.empty() && ranks_.size() < ranks);
  } else if (ranks_.size() == ranks) {
    communicator.ranks = GlobalRanksOf(users_[group]);
    took_groups_from_use_ = true;
  } else {
    return std::nullopt;  // which of the ranks without a file are in it, nothing says
  }
  const auto index = static_cast<uint32_t>(communicators_.size());
  communicators_.push_back(std::move(communicator));
  communicator_of_.emplace(group, index);
  return index;
}

void ChakraGraph::Place(GlobalRank rank, Call& call, uint32_t ranks, const ChakraGroups& groups) {
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
  const std::vector<GlobalRank>& members = communicators_[*communicator].ranks;
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
  if (IsDivided(operation.kind)) operation.count = DivideUp(operation.count, size);
  operation.communicator = *communicator;
  operation.root = static_cast<uint32_t>(call.root);
}

DependencyGraph ChakraGraph::Take(uint32_t ranks, const ChakraGroups& groups) {
  DependencyGraph graph;
  graph.origin = "chakra";
  for (const ImportedFile& file : report_.files) graph.source_files.push_back(file.path);
  graph.ranks.resize(ranks);
  for (auto& [rank, read] : ranks_) {
    for (Call& call : read.collectives) Place(GlobalRank{rank}, call, ranks, groups);
    graph.ranks[rank] = std::move(read.operations);
  }
  graph.communicators = std::move(communicators_);
  return graph;
}

}  // namespace railyard
