// SPDX-License-Identifier: GPL-2.0-only
// Parses the rows of the tables that nccl-tests and rccl-tests print, and the lines above them that
// name their columns (writeResultHeader and writeBenchmarkLineBody in src/util.cu of
// nccl-tests 2.13 to 2.18).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace railyard {

// Holds the fields that are read; texts point into the line.
struct NcclTestsLine {
  uint64_t bytes = 0;
  uint64_t count = 0;
  std::string_view type;             // "float"
  std::string_view root;             // "-1" if the collective has none
  std::string_view out_of_place_us;  // time, or "N/A"; empty if the row has no such half
  std::string_view in_place_us;
};

// Holds the places of a table's columns, in words; by default those of a table without options.
struct NcclTestsColumns {
  size_t type = 2;
  size_t root = 4;  // 0: there is none
  size_t first_time = 5;
  size_t second_time = 0;          // 0: it is not stated
  bool has_in_place_only = false;  // of the two halves
  bool are_cpu_times = false;      // the halves begin with `cputime` instead of `time`
};
// Takes a comment above the rows. Returns false if it names no columns.
bool TakeNcclTestsHeader(std::string_view comment, NcclTestsColumns& columns);

// Returns nullopt for any other line. A row begins with a size and a count and has two halves of at
// least four columns, or one (`-O` of rccl-tests), which is taken to be out of place unless the
// header says otherwise. Time stamps and names of algorithms may follow.
std::optional<NcclTestsLine> ParseNcclTestsLine(std::string_view line,
                                                const NcclTestsColumns& columns = {});

// Describes a line that begins with a number, as rows do, but is no row.
struct DefectiveRow {
  bool is_truncated = false;  // it has too few columns
  std::string detail;
};
// Returns nullopt for rows, and for lines that do not begin with a number.
std::optional<DefectiveRow> FindDefectOfRow(std::string_view line,
                                            const NcclTestsColumns& columns = {});

// Returns the line without what a launcher or a log writes before it: "0: " (srun -l), "[0] "
// (mpirun -l), "[1,0]<stdout>:" (mpirun --tag-output) and, where a comment or a size and a count
// follow, "node1: " (pdsh), "[pod/name/container] " (kubectl logs --prefix), "name-1  | " (docker
// compose), "2026-01-31T12:00:00.000000000Z stdout F " (containerd), and any other time stamp.
std::string_view WithoutLauncherPrefix(std::string_view line);

// The smallest and largest time that a row may state: no collective takes less than a nanosecond,
// and errors relative to the time stay finite.
inline constexpr double kMeasuredUsMin = 1e-3;
inline constexpr double kMeasuredUsMax = 1e12;
// Returns a time in microseconds; nullopt if the text is not a number in this range.
std::optional<double> ParseMeasuredUs(std::string_view text);

}  // namespace railyard
