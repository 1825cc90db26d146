// SPDX-License-Identifier: GPL-2.0-only
// Converts the tables of nccl-tests to a job: all ranks make the collectives of the rows one after
// the other, each with its measured time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/nccl_tests/nccl_tests_text.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

// Holds one half of a row.
struct NcclTestsCall {
  uint64_t bytes = 0;
  uint64_t count = 0;
  std::string_view type;
  std::string_view root;
  bool in_place = false;
  int64_t measured_ps = 0;
  uint32_t file = 0;  // index into ImportReport::files
  uint64_t line = 0;
};

class NcclTestsJob {
 public:
  // The largest number of operations of all ranks together; in a test of Sends and Recvs they are
  // stored for every rank.
  static constexpr uint64_t kSendsMax = 16'000'000;

  explicit NcclTestsJob(ImportReport& report) : report_(report) {}

  // Adds a call that the report has counted as seen: it is kept, or dropped for a reason.
  void Add(const NcclTestsTable& table, const NcclTestsCall& call);
  // Returns the trace, whose calls the report then counts as imported; nullopt without any call, or
  // after an error.
  std::optional<Trace> Finish(Diagnostics& diagnostics);

 private:
  struct PlacedCall {
    NcclTest test = NcclTest::kAllReduce;
    TraceOperation operation;
    uint32_t ranks = 0;
    uint64_t bytes = 0;  // as its row states them
  };
  void AddProgramsOfRanks(Trace& trace) const;

  ImportReport& report_;
  std::vector<PlacedCall> calls_;
  uint32_t rank_count_ = 0;
  uint64_t send_count_ = 0;  // of all ranks
};

}  // namespace railyard
