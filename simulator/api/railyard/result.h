// SPDX-License-Identifier: GPL-2.0-only
// Provides the measurements of a run (RunResult), the figures that are derived from them (Stretch,
// BusbwGBps, …), their table for a terminal (PrintRunTable) and their files (WriteResults).
#pragma once

#include "analysis/metrics/run_metrics.h"   // IWYU pragma: export
#include "analysis/result/run_result.h"     // IWYU pragma: export
#include "analysis/tables/run_table.h"      // IWYU pragma: export
#include "analysis/writers/result_files.h"  // IWYU pragma: export
