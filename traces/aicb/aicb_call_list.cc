// SPDX-License-Identifier: GPL-2.0-only
#include "traces/aicb/aicb_call_list.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/units/number.h"
#include "simulator/units/units.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

constexpr double kTimeMaxPs = 1e18;  // 12 days

struct NamedKind {
  std::string_view name;
  CollectiveKind kind;
};
constexpr NamedKind kCallListKinds[] = {{"all_reduce", CollectiveKind::kAllReduce},
                                        {"all_gather", CollectiveKind::kAllGather},
                                        {"all_gather_into_tensor", CollectiveKind::kAllGather},
                                        {"reduce_scatter", CollectiveKind::kReduceScatter},
                                        {"reduce_scatter_tensor", CollectiveKind::kReduceScatter},
                                        {"all_to_all", CollectiveKind::kAllToAll},
                                        {"broadcast", CollectiveKind::kBroadcast},
                                        {"reduce", CollectiveKind::kReduce}};

struct NamedGroup {
  std::string_view name;
  AicbGroup group;
};
constexpr NamedGroup kGroups[] = {{"tp_group", AicbGroup::kTensor},
                                  {"dp_group", AicbGroup::kData},
                                  {"ep_group", AicbGroup::kExpert},
                                  {"ep_dp_group", AicbGroup::kExpertData},
                                  {"all", AicbGroup::kAll}};

// Sizes of a computation are tuples, "((4096, 1, 5120), (5120, 1920))", which AICB does not quote.
std::vector<std::string_view> CellsOf(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::string_view> cells;
  size_t begin = 0;
  int depth = 0;
  for (size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (c == '(' || c == '[') ++depth;
    if ((c == ')' || c == ']') && depth > 0) --depth;
    if (c != ',' || depth > 0) continue;
    cells.push_back(line.substr(begin, at - begin));
    begin = at + 1;
  }
  cells.push_back(line.substr(begin));
  return cells;
}

// Sizes that AICB scales by the bytes of an FP8 element with its share of a scale have a fraction:
// "30277632.0".
bool ParseBytes(std::string_view text, uint64_t& bytes) {
  if (ParseNumber(text, bytes)) return true;
  double scaled = 0;
  constexpr double kBytesMax = 1ull << 53;
  if (!ParseNumber(text, scaled) || !(scaled >= 0) || scaled > kBytesMax) return false;
  bytes = static_cast<uint64_t>(std::llround(scaled));
  return true;
}

std::string_view WithoutPrefix(std::string_view text, std::string_view prefix) {
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return text;
}

}  // namespace

bool IsAicbCallListHead(std::string_view line) {
  return line.starts_with("comm_type,comm_group,") || line.starts_with("[rank0 ~ rank");
}

bool AicbCallListParser::Error(std::string what) {
  diagnostics_.Error({.file = file_, .line = line_}, "", std::move(what));
  return false;
}

std::string_view AicbCallListParser::Cell(const std::vector<std::string_view>& cells,
                                          std::string_view column) const {
  for (size_t i = 0; i < columns_.size() && i < cells.size(); ++i) {
    if (columns_[i] == column) return cells[i];
  }
  return {};
}

bool AicbCallListParser::ReadLine(std::string_view line) {
  ++line_;
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return true;
  if (line.starts_with("[rank")) {
    std::string_view last = line.substr(line.rfind('k') + 1);
    uint32_t rank = 0;
    if (!ParseNumber(last.substr(0, last.find(']')), rank) || rank >= kTraceRanksMax) {
      return Error("names no last rank (expected [rank0 ~ rankN])");
    }
    ranks_ = rank + 1;
    return true;
  }
  const std::vector<std::string_view> cells = CellsOf(line);
  if (!columns_.empty()) return ReadRow(cells);
  columns_.assign(cells.begin(), cells.end());
  for (const char* const column : {"comm_type", "comm_group", "comm_group_size", "msg_size"}) {
    if (std::find(columns_.begin(), columns_.end(), column) == columns_.end()) {
      return Error(fmt::format("column {} is missing (expected AICB's head of a table)", column));
    }
  }
  return true;
}

bool AicbCallListParser::ReadRow(const std::vector<std::string_view>& cells) {
  if (cells.size() != columns_.size()) {
    return Error(fmt::format("{} cells (expected {})", cells.size(), columns_.size()));
  }
  const std::string_view type = WithoutPrefix(Cell(cells, "comm_type"), "CommType.");
  if (type == "epoch_end") {
    ends_iteration_ = true;
    return true;
  }
  if (type == "computation") {
    const std::optional<double> elapsed = Elapsed(cells);
    if (!elapsed) return false;
    if (*elapsed > 0) {
      computations_.push_back({.call = calls_.size(), .elapsed = *elapsed});
      calls_.push_back({.line = static_cast<uint32_t>(line_)});
    }
    return true;
  }
  ++report_.files.front().calls_seen;
  for (const NamedKind& known : kCallListKinds) {
    if (known.name == type) return ReadCall(cells, known.kind);
  }
  if (type == "isend" || type == "irecv") {
    report_.Drop(CallDropReason::kRanksMissing, 0, static_cast<uint64_t>(line_),
                 "the other stages of the pipeline are not in the file");
  } else {
    report_.Drop(CallDropReason::kUnsupportedKind, 0, static_cast<uint64_t>(line_),
                 std::string(type.substr(0, 80)));
  }
  return true;
}

std::optional<double> AicbCallListParser::Elapsed(const std::vector<std::string_view>& cells) {
  const std::string_view text = Cell(cells, "_elapsed_time");
  if (text == "None" || text.empty()) return 0;  // a row that has not been run
  double elapsed = 0;
  if (!ParseNumber(text, elapsed) || !(elapsed >= 0) || elapsed * kPsPerNs > kTimeMaxPs) {
    Error(fmt::format("_elapsed_time {} is no time (expected milliseconds)", Quote(text)));
    return std::nullopt;
  }
  return elapsed;
}

// Before a list is run, _elapsed_time of a computation is what AICB is to sleep for in its place,
// in nanoseconds (_apply_computation in aicb's workload_applyer.py). Times of what has been run are
// in milliseconds.
bool AicbCallListParser::Finish() {
  const auto unit_ps = static_cast<double>(has_measured_calls_ ? kPsPerMs : kPsPerNs);
  for (const Computation& computation : computations_) {
    AicbCall& call = calls_[computation.call];
    if (computation.elapsed * unit_ps > kTimeMaxPs) {
      line_ = static_cast<int>(call.line);
      return Error(fmt::format("_elapsed_time {} is no time (expected at most 12 days)",
                               computation.elapsed));
    }
    call.compute_before_ps = std::llround(computation.elapsed * unit_ps);
  }
  if (!has_measured_calls_ && !computations_.empty()) {
    report_.assumed.push_back(
        "No call has a time: the list has not been run, and computation is in nanoseconds.");
  }
  return true;
}

bool AicbCallListParser::ReadCall(const std::vector<std::string_view>& cells, CollectiveKind kind) {
  AicbCall call;
  call.kind = kind;
  call.line = static_cast<uint32_t>(line_);
  const std::string_view bytes = Cell(cells, "msg_size");
  if (!ParseBytes(bytes, call.bytes)) {
    return Error(fmt::format("msg_size {} is no number of bytes", Quote(bytes)));
  }
  const std::string_view name = WithoutPrefix(Cell(cells, "comm_group"), "CommGroup.");
  const auto group = std::find_if(std::begin(kGroups), std::end(kGroups),
                                  [&](const NamedGroup& known) { return known.name == name; });
  if (group == std::end(kGroups)) {
    report_.Drop(CallDropReason::kAmbiguousCommunicator, 0, call.line,
                 std::string(name.substr(0, 80)));
    return true;
  }
  call.group = group->group;
  const std::optional<double> elapsed = Elapsed(cells);
  if (!elapsed) return false;
  if (*elapsed * kPsPerMs > kTimeMaxPs) {
    return Error(
        fmt::format("_elapsed_time {} ms is no time (expected at most 12 days)", *elapsed));
  }
  call.measured_ps = std::llround(*elapsed * kPsPerMs);
  has_measured_calls_ = has_measured_calls_ || *elapsed > 0;
  const std::string_view size = Cell(cells, "comm_group_size");
  if (size != "None" && !size.empty()) {
    uint32_t ranks = 0;
    uint32_t& known = sizes_[static_cast<size_t>(call.group)];
    if (!ParseNumber(size, ranks) || ranks == 0 || ranks > kTraceRanksMax) {
      return Error(fmt::format("comm_group_size {} is out of range (expected 1 to {})", Quote(size),
                               kTraceRanksMax));
    }
    if (known != 0 && known != ranks) {
      return Error(
          fmt::format("{} has {} ranks here, {} above (expected one size)", name, ranks, known));
    }
    known = ranks;
  }
  const char* const column = kind == CollectiveKind::kReduce ? "dst" : "src";
  const std::string_view root = Cell(cells, column);
  const bool is_rooted = kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce;
  if (is_rooted && root != "None" && !root.empty() && !ParseNumber(root, call.root)) {
    return Error(fmt::format("{} {} is no rank (expected a number or None)", column, Quote(root)));
  }
  call.begins_iteration = std::exchange(ends_iteration_, false);
  calls_.push_back(call);
  return true;
}

}  // namespace railyard
