// SPDX-License-Identifier: GPL-2.0-only
// Follows the text that test programs of nccl-tests and rccl-tests print, line by line: which test
// the next rows are of, over how many ranks, and where their columns are (src/common.cu and
// src/util.cu of nccl-tests 2.13 to 2.18).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "traces/nccl_tests/nccl_tests_line.h"

namespace railyard {

// Names a test program of nccl-tests, without its "_perf".
enum class NcclTest : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kGather,
  kScatter,
  kSendRecv,
  kUnsupported,  // hypercube
};
// Returns the program whose "NAME_perf" is in a line or path; nullopt if there is none.
std::optional<NcclTest> FindNcclTest(std::string_view text);

// Describes one run of a test program, as far as its output states it.
struct NcclTestsTable {
  std::optional<NcclTest> test;
  uint32_t ranks = 0;  // 0 if not stated
};

class NcclTestsText {
 public:
  enum class LineKind : uint8_t { kOther, kRow, kDefectiveRow };

  // Takes the next line, with what a launcher wrote before it. Texts of the row and of the defect
  // point into the line.
  LineKind Take(std::string_view line);
  // Precondition: Take() has returned kRow.
  const NcclTestsLine& row() const { return row_; }
  // Precondition: Take() has returned kDefectiveRow.
  const DefectiveRow& defect() const { return defect_; }

  // Returns the run that the last line belongs to.
  NcclTestsTable table() const;
  // Returns whether the run's times are those of launches on the CPU (-C 1).
  bool has_cpu_times() const { return columns_.are_cpu_times; }
  // Returns whether a program has cut a list of devices short, as it does after 2,048 bytes for
  // each process; ranks are then counted by processes.
  bool has_cut_devices() const { return has_cut_devices_; }
  // Returns NCCL's version as nccl.h has it, such as 22903; nullopt until it is stated.
  std::optional<uint64_t> nccl_version() const { return nccl_version_; }

 private:
  LineKind TakeText(std::string_view line);
  void TakeComment(std::string_view comment);
  void StartTable(std::string_view comment);
  void TakeRank(std::string_view comment);

  NcclTestsLine row_;
  DefectiveRow defect_;
  NcclTestsColumns columns_;
  std::optional<NcclTest> test_;
  std::optional<NcclTest> named_before_;  // the test of the next table
  std::optional<uint32_t> group_;         // of the ranks that are counted
  uint32_t listed_ranks_ = 0;
  uint64_t ranks_of_process_ = 1;
  std::set<std::string, std::less<>> processes_;  // of the group, by identifier and host
  bool is_list_cut_ = false;
  bool is_in_table_ = false;  // between its first comment and its last
  bool has_cut_devices_ = false;
  std::optional<uint64_t> nccl_version_;
};

}  // namespace railyard
