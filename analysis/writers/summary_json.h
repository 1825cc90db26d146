// SPDX-License-Identifier: GPL-2.0-only
// Writes summary.json, one object whose keys docs/results.md describes.
#pragma once

#include <string>

#include "analysis/result/run_result.h"

namespace railyard {

inline constexpr int kSummarySchemaVersion = 1;

// Returns the same text for equal results: numbers are written in their shortest exact form,
// independent of the locale. A figure that does not exist (a stretch without a paired run) is null.
std::string SummaryJson(const RunResult& result);

}  // namespace railyard
