// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_tests/nccl_tests_text.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

namespace railyard {
namespace {

struct NamedTest {
  std::string_view name;
  NcclTest test;
};
// Longer names come first, because "reduce_perf" ends "all_reduce_perf".
constexpr NamedTest kTests[] = {{"reduce_scatter_perf", NcclTest::kReduceScatter},
                                {"all_gather_perf", NcclTest::kAllGather},
                                {"all_reduce_perf", NcclTest::kAllReduce},
                                {"broadcast_perf", NcclTest::kBroadcast},
                                {"hypercube_perf", NcclTest::kUnsupported},
                                {"alltoallv_perf", NcclTest::kUnsupported},
                                {"alltoall_perf", NcclTest::kAllToAll},
                                {"sendrecv_perf", NcclTest::kSendRecv},
                                {"scatter_perf", NcclTest::kScatter},
                                {"gather_perf", NcclTest::kGather},
                                {"reduce_perf", NcclTest::kReduce}};

// Returns the number after the word, with or without blanks between them.
template <typename Number>
std::optional<Number> NumberAfter(std::string_view text, std::string_view word) {
  const size_t at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + word.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  Number number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<NcclTest> FindNcclTest(std::string_view text) {
  for (const NamedTest& known : kTests) {
    if (text.find(known.name) != std::string_view::npos) return known.test;
  }
  return std::nullopt;
}

NcclTestsText::LineKind NcclTestsText::Take(std::string_view line) {
  line = WithoutLauncherPrefix(line);
  const size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos) return LineKind::kOther;
  if (line[first] != '#') return TakeText(line);
  TakeComment(line.substr(first));
  return LineKind::kOther;
}

NcclTestsText::LineKind NcclTestsText::TakeText(std::string_view line) {
  if (const auto row = ParseNcclTestsLine(line, columns_)) {
    row_ = *row;
    return LineKind::kRow;
  }
  if (const auto test = FindNcclTest(line)) {
    named_before_ = test;  // by the command, which a job script prints
    return LineKind::kOther;
  }
  if (!is_in_table_) return LineKind::kOther;
  auto defect = FindDefectOfRow(line, columns_);
  if (!defect) return LineKind::kOther;
  defect_ = *std::move(defect);
  return LineKind::kDefectiveRow;
}

void NcclTestsText::TakeComment(std::string_view comment) {
  if (comment.starts_with("# Collective test starting: ")) {
    named_before_ = FindNcclTest(comment).value_or(NcclTest::kUnsupported);
  } else if (comment.starts_with("# nThread ")) {
    StartTable(comment);
  } else if (comment.starts_with("# nccl-tests version ")) {
    const auto version = NumberAfter<uint64_t>(comment, "nccl-library=");
    if (version) nccl_version_ = version;
  } else if (comment.starts_with("# Out of bounds values") ||
             comment.starts_with("# Avg bus bandwidth")) {
    is_in_table_ = false;
  } else if (!TakeNcclTestsHeader(comment, columns_)) {
    TakeRank(comment);
  }
}

void NcclTestsText::StartTable(std::string_view comment) {
  test_ = std::exchange(named_before_, std::nullopt);
  columns_ = {};
  group_.reset();
  listed_ranks_ = 0;
  ranks_of_process_ = uint64_t{NumberAfter<uint32_t>(comment, "# nThread ").value_or(1)} *
                      NumberAfter<uint32_t>(comment, " nGpus ").value_or(1);
  processes_.clear();
  is_list_cut_ = false;
  is_in_table_ = true;
}

// "#  Rank  0 Group  0 Pid   1584 on host device  0 [0x07] NVIDIA A100"; older ones have no
// group. Rows are of the first group. A list that is too long ends "...", in any column.
void NcclTestsText::TakeRank(std::string_view comment) {
  if (!NumberAfter<uint32_t>(comment, " Rank ")) return;
  if (comment.substr(0, comment.find_last_not_of(" \t\r") + 1).ends_with("...")) {
    is_list_cut_ = true;
    has_cut_devices_ = true;
    return;  // the process has listed its first device before
  }
  const size_t process = comment.find(" Pid ");
  if (process == std::string_view::npos) return;
  const uint32_t group = NumberAfter<uint32_t>(comment, " Group ").value_or(0);
  if (!group_) group_ = group;
  if (group != *group_) return;
  ++listed_ranks_;
  const std::string_view host = comment.substr(process, comment.find(" device ") - process);
  if (!processes_.contains(host)) processes_.emplace(host);
}

NcclTestsTable NcclTestsText::table() const {
  const uint64_t ranks = is_list_cut_ ? processes_.size() * ranks_of_process_ : listed_ranks_;
  return {.test = test_, .ranks = static_cast<uint32_t>(std::min<uint64_t>(ranks, UINT32_MAX))};
}

}  // namespace railyard
