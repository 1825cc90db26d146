// SPDX-License-Identifier: GPL-2.0-only
#include "traces/pytorch_et/execution_trace_calls.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "traces/pytorch/message_batches.h"
#include "traces/pytorch_et/execution_node.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

bool IsRooted(std::string_view collective) {
  const auto kind = PytorchKind(collective);
  return kind && HasRoot(*kind);
}

bool IsPointToPoint(std::string_view collective) {
  const auto kind = PytorchKind(collective);
  return kind && IsSendOrRecv(*kind);
}

}  // namespace

struct ExecutionTraceCalls::Nodes {
  struct PlacedNode {
    CommsNode node;
    uint64_t line = 0;
  };
  struct RankInGroup {
    std::string group;
    std::vector<uint32_t> members;  // that the record lists itself
    uint32_t rank = 0;
  };

  std::vector<PlacedNode> nodes;
  std::vector<std::pair<uint64_t, std::string>> marks;  // id and title of works
  std::vector<uint64_t> steps;                          // ids of the profiler's steps
  std::map<std::string, ProcessGroup> groups;           // by name and by pointer
  std::vector<RankInGroup> ranks;                       // that the process states of itself
};

bool LooksLikeExecutionTrace(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && head[first] == '{' &&
         head.find("\"schema\"") != std::string_view::npos &&
         head.find("\"nodes\"") != std::string_view::npos &&
         head.find("\"start_ts\"") != std::string_view::npos;
}

ExecutionTraceCalls::File& ExecutionTraceCalls::ReadFile(InputStream& stream, ImportReport& report,
                                                         Diagnostics& diagnostics) {
  Nodes nodes;
  File file;
  const auto visit = [&](std::string_view key, const Value& value, uint64_t line) {
    if (key == "nodes") AddNode(value, line, nodes, file);
  };
  ForEachJsonItem(stream, "nodes", visit, diagnostics);
  std::stable_sort(
      nodes.nodes.begin(), nodes.nodes.end(),
      [](const Nodes::PlacedNode& a, const Nodes::PlacedNode& b) { return a.node.id < b.node.id; });
  std::stable_sort(nodes.marks.begin(), nodes.marks.end());
  std::sort(nodes.steps.begin(), nodes.steps.end());
  file.steps = static_cast<uint32_t>(nodes.steps.size());
  file.rank = RankOf(nodes, stream.name(), report);
  MessageBatches batches;
  auto mark = nodes.marks.begin();
  std::optional<uint64_t> last_id;
  for (Nodes::PlacedNode& placed : nodes.nodes) {
    if (last_id == placed.node.id) {
      file.defects.push_back(
          {placed.line, {CallDropReason::kRecordedTwice, fmt::format("node {}", placed.node.id)}});
      continue;
    }
    last_id = placed.node.id;
    for (; mark != nodes.marks.end() && mark->first < placed.node.id; ++mark) {
      batches.AddMark(mark->second);
    }
    CommsRecord record = std::move(placed.node.record);
    PlaceGroup(nodes, record, report);
    if (IsPointToPoint(record.collective)) {
      batches.AddMessage(record.group_name, placed.node.message_sequence);
    }
    const auto next = std::lower_bound(nodes.steps.begin(), nodes.steps.end(), placed.node.id);
    file.calls.push_back({.line = placed.line,
                          .record = std::move(record),
                          .step = static_cast<uint32_t>(next - nodes.steps.begin())});
  }
  for (; mark != nodes.marks.end(); ++mark) batches.AddMark(mark->second);
  const std::vector<uint32_t> numbers = batches.Numbers();
  auto number = numbers.begin();
  for (Call& call : file.calls) {
    if (IsPointToPoint(call.record.collective)) call.batch = *number++;
  }
  return files_.emplace_back(std::move(file));
}

void ExecutionTraceCalls::AddNode(const Value& value, uint64_t line, Nodes& nodes,
                                  File& file) const {
  const std::string name = value.TextOf("name");
  if (name.starts_with("## process_group:init")) {
    for (const ProcessGroup& group : ParseProcessGroups(value)) {
      nodes.groups[group.name] = group;
      if (!group.pointer.empty()) nodes.groups[group.pointer] = group;
    }
  }
  if (name.starts_with("nccl:")) {
    if (const auto id = value.UnsignedOf("id")) nodes.marks.emplace_back(*id, name);
  }
  if (name.starts_with("ProfilerStep#")) {
    if (const auto id = value.UnsignedOf("id")) nodes.steps.push_back(*id);
  }
  if (name != "record_param_comms") return;
  auto node = ParseCommsNode(value);
  if (!node) {
    file.defects.push_back({line,
                            {CallDropReason::kMalformedRecord,
                             "record_param_comms with arguments in no known order"}});
    return;
  }
  const std::string& collective = node->record.collective;
  // The rank argument of a rooted collective is its root, and that of a Send or Recv its peer.
  const bool is_own_rank = !IsRooted(collective) && !IsPointToPoint(collective);
  const auto is_of_group = [&](const Nodes::RankInGroup& stated) {
    return stated.group == node->record.group_name;
  };
  if (is_own_rank && std::ranges::none_of(nodes.ranks, is_of_group)) {
    nodes.ranks.push_back({.group = node->record.group_name,
                           .members = node->record.group_ranks,
                           .rank = node->rank_argument});
  }
  if (IsPseudoCollective(collective)) return;
  if (!is_own_rank) node->record.root_or_peer = node->rank_argument;
  nodes.nodes.push_back({.node = *std::move(node), .line = line});
}

uint32_t ExecutionTraceCalls::RankOf(const Nodes& nodes, const std::string& path,
                                     ImportReport& report) const {
  for (const Nodes::RankInGroup& stated : nodes.ranks) {
    const auto group = nodes.groups.find(stated.group);
    const std::vector<uint32_t>& members = !stated.members.empty() || group == nodes.groups.end()
                                               ? stated.members
                                               : group->second.ranks;
    if (stated.rank < members.size()) return members[stated.rank];
  }
  // A group without a list of its members has all ranks.
  if (!nodes.ranks.empty()) return nodes.ranks.front().rank;
  uint32_t rank = 0;
  const auto is_taken = [&](const File& file) { return file.rank == rank; };
  while (std::any_of(files_.begin(), files_.end(), is_taken)) ++rank;
  report.assumed.push_back(
      fmt::format("{} does not state its rank, it is rank {} by its place", path, rank));
  return rank;
}

// Gives the record the group's members. Pointers differ from process to process, so that groups
// without a name are numbered by their first use.
void ExecutionTraceCalls::PlaceGroup(const Nodes& nodes, CommsRecord& record,
                                     ImportReport& report) {
  const auto group = nodes.groups.find(record.group_name);
  if (group != nodes.groups.end()) {
    record.group_name = group->second.name;
    if (record.group_ranks.empty()) record.group_ranks = group->second.ranks;
    if (record.group_size == 0) record.group_size = group->second.size;
  } else if (record.group_name.starts_with('#')) {
    const size_t file = files_.size();
    const auto [at, is_new] =
        number_of_pointer_.try_emplace({file, record.group_name}, pointers_of_file_[file]);
    if (is_new) ++pointers_of_file_[file];
    record.group_name = fmt::format("group {}", at->second);
    if (!has_numbered_groups_) {
      report.assumed.push_back(
          "groups have no names: the n-th that a rank uses is one on all ranks");
      has_numbered_groups_ = true;
    }
  }
  uint32_t& size = size_of_group_[record.group_name];
  if (record.group_size <= kTraceRanksMax) size = std::max(size, record.group_size);
}

void ExecutionTraceCalls::SizeGroups(uint32_t rank_count) {
  for (File& file : files_) {
    for (Call& call : file.calls) {
      if (call.record.group_size == 0) {
        call.record.group_size = SizeOf(call.record.group_name, rank_count);
      }
    }
  }
}

uint32_t ExecutionTraceCalls::SizeOf(const std::string& group, uint32_t rank_count) const {
  if (const uint32_t stated = size_of_group_.at(group); stated > 0) return stated;
  uint32_t size = std::min(rank_count, kTraceRanksMax);
  for (const auto& [name, stated] : size_of_group_) size = std::max(size, stated);
  for (const File& file : files_) {
    if (file.rank < kTraceRanksMax) size = std::max(size, file.rank + 1);
  }
  return size;
}

}  // namespace railyard
