// SPDX-License-Identifier: GPL-2.0-only
// Describes summary.json, one object whose keys docs/results.md describes.
#pragma once

#include <string>

#include "analysis/result/run_result.h"
#include "analysis/writers/figure_sink.h"

namespace railyard {

inline constexpr int kSummarySchemaVersion = 1;

// Gives the figures of the summary, as one object, to `sink`. A figure that does not exist (a
// stretch without a paired run) is nullopt. Whatever shows the figures by their names gets them
// here, so that all have the same.
void VisitSummary(const RunResult& result, FigureSink& sink);

// Returns the text of summary.json, the same for equal results: numbers are written in their
// shortest exact form, independent of the locale.
std::string SummaryJson(const RunResult& result);

}  // namespace railyard
