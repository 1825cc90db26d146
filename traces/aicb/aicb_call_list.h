// SPDX-License-Identifier: GPL-2.0-only
// Parses AICB's CSV of the calls of one rank, written before or after they were run: kind, group,
// group size, bytes, position in the step, peers, and the measured duration.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/aicb/aicb_job.h"
#include "traces/trace/import_report.h"

namespace railyard {

bool IsAicbCallListHead(std::string_view line);

class AicbCallListParser {
 public:
  // Calls that are not collectives of a known group are counted in `report` (file 0) and dropped.
  AicbCallListParser(const std::string& file, ImportReport& report, Diagnostics& diagnostics)
      : file_(file), report_(report), diagnostics_(diagnostics) {}
  // Returns false after an error.
  bool ReadLine(std::string_view line);
  // Must be called after the last line. Returns false after an error.
  bool Finish();

  const std::vector<AicbCall>& calls() const { return calls_; }
  // Returns the size of a group as rows state it; 0 if no row does.
  uint32_t size_of(AicbGroup group) const { return sizes_[static_cast<size_t>(group)]; }
  // Returns the number of ranks in "[rank0 ~ rank127]" above the table; 0 if there is no such line.
  uint32_t ranks() const { return ranks_; }

 private:
  bool Error(std::string what);
  bool ReadRow(const std::vector<std::string_view>& cells);
  bool ReadCall(const std::vector<std::string_view>& cells, CollectiveKind kind);
  // Returns _elapsed_time of a row, 0 if it states none; nullopt after an error.
  std::optional<double> Elapsed(const std::vector<std::string_view>& cells);
  std::string_view Cell(const std::vector<std::string_view>& cells, std::string_view column) const;

  const std::string& file_;
  ImportReport& report_;
  Diagnostics& diagnostics_;
  std::vector<std::string> columns_;
  std::vector<AicbCall> calls_;
  std::array<uint32_t, kAicbGroupCount> sizes_{};
  uint32_t ranks_ = 0;
  struct Computation {
    size_t call = 0;  // its place in `calls_`
    double elapsed = 0;
  };
  std::vector<Computation> computations_;
  bool has_measured_calls_ = false;
  bool ends_iteration_ = false;
  int line_ = 0;
};

}  // namespace railyard
