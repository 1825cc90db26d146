// SPDX-License-Identifier: GPL-2.0-only
// report.html: one file with its data, its style and its programs in it, for a browser without a
// network.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/report/result_store.h"
#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

// Whether this program was built with the library that draws the charts.
bool CanWriteReports();
inline constexpr std::string_view kNoEcharts =
    "this program was built without Apache ECharts (docs/building.md says how to build it in)";

// Adds the error that `directory` is no result of a run.
void AddNoResult(const std::string& directory, const UnreadableResult& unreadable,
                 Diagnostics& diagnostics);

// Opens a result directory; what is wrong with it becomes an error in `diagnostics`.
std::optional<ResultStore> OpenResult(const std::string& directory, Diagnostics& diagnostics);

// The data of the page as JSON: verdict, key figures, charts and notes.
std::string ReportJson(const ResultStore& store);

// The whole page. UnreadableResult where the store does not hold what a run writes;
// EnvironmentError where !CanWriteReports().
std::string ReportPage(const ResultStore& store);

// The page of `directory`, which this program has just written.
std::string ReportOfOwnResult(const std::string& directory);

}  // namespace railyard
