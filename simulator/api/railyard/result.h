// SPDX-License-Identifier: GPL-2.0-only
// This header brings what a run measured (RunResult), the figures that are derived from it
// (Stretch, BusbwGBps, …), its table for a terminal (PrintRunTable) and its files (WriteResults).
#pragma once

#include "analysis/metrics/run_metrics.h"   // IWYU pragma: export
#include "analysis/result/run_result.h"     // IWYU pragma: export
#include "analysis/tables/run_table.h"      // IWYU pragma: export
#include "analysis/writers/result_files.h"  // IWYU pragma: export
