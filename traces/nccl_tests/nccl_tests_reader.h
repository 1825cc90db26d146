// SPDX-License-Identifier: GPL-2.0-only
// Reads the output of nccl-tests and rccl-tests: text, even with other output of the job in
// between, and the JSON of `-J`.
#pragma once

#include "traces/reading/trace_reader.h"

namespace railyard {

extern const TraceReader kNcclTestsReader;  // "nccl-tests"

}  // namespace railyard
