// SPDX-License-Identifier: GPL-2.0-only
// Provides the readers of captured jobs: ImportFiles() makes the trace that
// ScenarioBuilder::Calls() takes, and a report of what the files held; TraceReaders() lists the
// formats.
#pragma once

#include "traces/import/import.h"         // IWYU pragma: export
#include "traces/import/trace_readers.h"  // IWYU pragma: export
