// SPDX-License-Identifier: GPL-2.0-only
// Makes report.html: one file that contains its data, style and scripts, for a browser without a
// network.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/store/result_store.h"
#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

// Returns whether the program was built with ECharts.
bool CanWriteReports();
inline constexpr std::string_view kNoEcharts =
    "this program was built without Apache ECharts (docs/building.md says how to build it in)";

// Adds the error that `directory` is not the result of a run.
void AddNoResult(const std::string& directory, const UnreadableResult& unreadable,
                 Diagnostics& diagnostics);

// Opens a result directory and reports what is wrong with it in `diagnostics`.
std::optional<ResultStore> OpenResult(const std::string& directory, Diagnostics& diagnostics);

// Returns the whole page. Throws UnreadableResult if the store does not hold the tables that a run
// writes, and EnvironmentError if !CanWriteReports().
std::string ReportPage(const ResultStore& store);

// Returns the page of `directory`, which this program has just written.
std::string ReportOfOwnResult(const std::string& directory);

}  // namespace railyard
