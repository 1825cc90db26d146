// SPDX-License-Identifier: GPL-2.0-only
#include "traces/pytorch_et/pytorch_et_reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "traces/pytorch/comms_record.h"
#include "traces/pytorch_et/execution_node.h"
#include "traces/reading/captured_job.h"
#include "traces/reading/value.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

bool LooksLikeExecutionTrace(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && head[first] == '{' &&
         head.find("\"schema\"") != std::string_view::npos &&
         head.find("\"nodes\"") != std::string_view::npos &&
         head.find("\"start_ts\"") != std::string_view::npos;
}

bool HasRoot(std::string_view collective) {
  const auto kind = PytorchKind(collective);
  return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce ||
         kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
}

bool IsPointToPoint(std::string_view collective) {
  const auto kind = PytorchKind(collective);
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv;
}

struct PlacedNode {
  CommsNode node;
  uint64_t line = 0;
};

struct TraceFile {
  std::string schema;
  std::vector<PlacedNode> nodes;
  std::map<std::string, ProcessGroup> groups;  // by name and by pointer
  std::optional<uint32_t> rank;
};

class ExecutionTraceImport {
 public:
  ExecutionTraceImport(const ImportOptions& options, ImportReport& report, Diagnostics& diagnostics)
      : options_(options), report_(report), diagnostics_(diagnostics) {}

  void ReadFile(InputStream& stream) {
    const auto index = static_cast<uint32_t>(report_.files.size());
    report_.files.push_back({.path = stream.name()});
    TraceFile file;
    const auto visit = [&](std::string_view key, const Value& value, uint64_t line) {
      if (key == "schema") file.schema = value.text;
      if (key == "nodes") AddNode(value, line, index, file);
    };
    ForEachJsonItem(stream, "nodes", visit, diagnostics_);
    report_.files[index].bytes_read = stream.bytes_read();
    AddCalls(file, index);
  }

  std::optional<Trace> Finish() {
    for (CapturedFile& file : captured_) {
      for (const auto& [place, record] : file.records) {
        CapturedCall call;
        CommsRecord sized = record;
        if (sized.group_size == 0) sized.group_size = SizeOf(record.group_name);
        if (auto defect = CallOfRecord(sized, job_, call)) {
          report_.Drop(defect->reason, file.index, place, std::move(defect->detail));
          continue;
        }
        call.operation.stream = job_.StreamOf(file.rank, call.operation.communicator);
        call.operation.source_file = file.index;
        call.operation.source_line = static_cast<uint32_t>(std::min<uint64_t>(place, UINT32_MAX));
        job_.Add(file.rank, std::move(call));
      }
    }
    if (!captured_.empty()) {
      report_.assumed.push_back(
          "an execution trace has no times: the calls of a group follow each other");
    }
    return BuildTrace(std::move(job_), options_, report_, diagnostics_);
  }

 private:
  struct CapturedRecord {
    uint64_t line = 0;
    CommsRecord record;
  };
  struct CapturedFile {
    uint32_t index = 0;
    uint32_t rank = 0;
    std::vector<CapturedRecord> records;
  };

  void AddNode(const Value& value, uint64_t line, uint32_t index, TraceFile& file) {
    const std::string name = value.TextOf("name");
    if (name.starts_with("## process_group:init")) {
      for (const ProcessGroup& group : ParseProcessGroups(value)) {
        file.groups[group.name] = group;
        if (!group.pointer.empty()) file.groups[group.pointer] = group;
      }
    }
    if (name != "record_param_comms") return;
    auto node = ParseCommsNode(value);
    if (!node) {
      ++report_.files[index].calls_seen;
      report_.Drop(CallDropReason::kMalformedRecord, index, line,
                   "record_param_comms with arguments in no known order");
      return;
    }
    const std::string& collective = node->record.collective;
    // The rank argument of a rooted collective is its root, and that of a Send or Recv its peer.
    const bool is_own_rank = !HasRoot(collective) && !IsPointToPoint(collective);
    if (is_own_rank && !file.rank) file.rank = node->rank_argument;
    if (IsPseudoCollective(collective)) return;
    ++report_.files[index].calls_seen;
    if (!is_own_rank) node->record.root_or_peer = node->rank_argument;
    file.nodes.push_back({.node = *std::move(node), .line = line});
  }

  void AddCalls(TraceFile& file, uint32_t index) {
    std::stable_sort(
        file.nodes.begin(), file.nodes.end(),
        [](const PlacedNode& a, const PlacedNode& b) { return a.node.id < b.node.id; });
    CapturedFile& captured = captured_.emplace_back();
    captured.index = index;
    captured.rank = RankOf(file, report_.files[index].path);
    job_.AddRank(captured.rank);
    std::optional<uint64_t> last_id;
    for (PlacedNode& placed : file.nodes) {
      if (last_id == placed.node.id) {
        report_.Drop(CallDropReason::kRecordedTwice, index, placed.line,
                     fmt::format("node {}", placed.node.id));
        continue;
      }
      last_id = placed.node.id;
      CommsRecord record = std::move(placed.node.record);
      PlaceGroup(file, record);
      captured.records.push_back({placed.line, std::move(record)});
    }
  }

  uint32_t RankOf(const TraceFile& file, const std::string& path) {
    uint32_t rank = file.rank.value_or(0);
    if (!file.rank) {
      while (job_.calls().contains(rank)) ++rank;
      report_.assumed.push_back(
          fmt::format("{} does not state its rank, it is rank {} by its place", path, rank));
    }
    return rank;
  }

  // Gives the record the group's members. Pointers differ from process to process, so that groups
  // without a name are numbered by their first use.
  void PlaceGroup(const TraceFile& file, CommsRecord& record) {
    const auto group = file.groups.find(record.group_name);
    if (group != file.groups.end()) {
      record.group_name = group->second.name;
      if (record.group_ranks.empty()) record.group_ranks = group->second.ranks;
      if (record.group_size == 0) record.group_size = group->second.size;
    } else if (record.group_name.starts_with('#')) {
      auto& numbers = number_of_pointer_[captured_.size()];
      const auto number = numbers.try_emplace(record.group_name, numbers.size()).first->second;
      record.group_name = fmt::format("group {}", number);
      if (!has_numbered_groups_) {
        report_.assumed.push_back(
            "groups have no names: the n-th that a rank uses is one on all ranks");
        has_numbered_groups_ = true;
      }
    }
    uint32_t& size = size_of_group_[record.group_name];
    if (record.group_size <= kTraceRanksMax) size = std::max(size, record.group_size);
  }

  // Returns the size of a group; if no call states it, the number of all ranks.
  uint32_t SizeOf(const std::string& group) {
    if (const uint32_t stated = size_of_group_[group]; stated > 0) return stated;
    uint32_t size = 0;
    for (const auto& [name, stated] : size_of_group_) size = std::max(size, stated);
    return std::max(size, job_.calls().rbegin()->first + 1);
  }

  const ImportOptions& options_;
  ImportReport& report_;
  Diagnostics& diagnostics_;
  CapturedJob job_{"pytorch-et"};
  std::vector<CapturedFile> captured_;
  std::map<size_t, std::map<std::string, size_t>> number_of_pointer_;  // by file
  std::map<std::string, uint32_t> size_of_group_;
  bool has_numbered_groups_ = false;
};

TraceImport ReadFiles(const InputFiles& files, const ImportOptions& options,
                      Diagnostics& diagnostics) {
  TraceImport import;
  ExecutionTraceImport reader(options, import.report, diagnostics);
  const auto read_file = [&](InputStream& stream) {
    reader.ReadFile(stream);
    return true;
  };
  files.ForEach(read_file, diagnostics);
  import.trace = reader.Finish();
  return import;
}

}  // namespace

TraceReader PytorchEtReader() {
  return {.format = "pytorch-et",
          .description = "execution traces of PyTorch's ExecutionTraceObserver",
          .recognizes = LooksLikeExecutionTrace,
          .read = ReadFiles};
}

}  // namespace railyard
