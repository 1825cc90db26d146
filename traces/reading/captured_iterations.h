// SPDX-License-Identifier: GPL-2.0-only
// Takes the steps that captures name, such as those of PyTorch's profiler, for the iterations of
// the job.
#pragma once

#include "traces/reading/captured_job.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

// Sets `begins_iteration` of the first call of each step but a rank's first, and adds a sentence to
// `assumed`. Calls before a rank's first step belong to it. Iterations are those of the job: if
// ranks have unequally many steps, or a call belongs to another one on another rank, there are
// none, and the sentence says so. Precondition: the calls that are left match.
void MarkIterations(CapturedJob& job, ImportReport& report);

// Removes the iterations, with a sentence, if ranks whose calls were reconstructed are not in each.
void RemoveUnequalIterations(Trace& trace, ImportReport& report);

}  // namespace railyard
