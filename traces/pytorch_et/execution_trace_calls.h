// SPDX-License-Identifier: GPL-2.0-only
// Collects the calls of the execution traces of a job's ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/pytorch/comms_record.h"
#include "traces/reading/input_stream.h"
#include "traces/reading/value.h"
#include "traces/trace/import_report.h"

namespace railyard {

// Returns true if a file that begins with `head` is an execution trace.
bool LooksLikeExecutionTrace(std::string_view head);

class ExecutionTraceCalls {
 public:
  struct Call {
    uint64_t line = 0;
    CommsRecord record;
    // Shared by the Sends and Recvs that PyTorch made in one batch, each of which is also one
    // kernel; 0 for other calls.
    uint32_t batch = 0;
    uint32_t step = 0;  // how many of the profiler's steps have begun before it
  };
  struct Defect {
    uint64_t line = 0;
    CommsDefect defect;
  };
  struct File {
    uint32_t rank = 0;
    std::vector<Call> calls;      // in the order in which the process made them
    std::vector<Defect> defects;  // records that are not calls
    uint32_t steps = 0;           // of the profiler
  };

  // Reads the file to its end, adds it and returns it, without the sizes of groups. Assumptions are
  // added to `report`.
  File& ReadFile(InputStream& stream, ImportReport& report, Diagnostics& diagnostics);
  // Sets the size of groups for which no record states it to the number of all ranks: `rank_count`,
  // or more if the traces have more. Must be called after the last file.
  void SizeGroups(uint32_t rank_count = 0);

  std::vector<File>& files() { return files_; }

 private:
  struct Nodes;

  void AddNode(const Value& value, uint64_t line, Nodes& nodes, File& file) const;
  uint32_t RankOf(const Nodes& nodes, const std::string& path, ImportReport& report) const;
  void PlaceGroup(const Nodes& nodes, CommsRecord& record, ImportReport& report);
  uint32_t SizeOf(const std::string& group, uint32_t rank_count) const;

  std::vector<File> files_;
  std::map<std::pair<size_t, std::string>, size_t> number_of_pointer_;  // by file and pointer
  std::map<size_t, size_t> pointers_of_file_;
  std::map<std::string, uint32_t> size_of_group_;
  bool has_numbered_groups_ = false;
};

}  // namespace railyard
