// SPDX-License-Identifier: GPL-2.0-only
// Writes traces as Chakra execution traces, which ASTRA-sim reads.
#pragma once

#include <functional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"

namespace railyard {

// Passes the name ("PREFIX.3.et") and the bytes of each rank's file to `write`, and those of
// "PREFIX.comm_groups.json", ASTRA-sim's groups, unless all communicators have all ranks in order.
// Gaps become COMP_NODEs of whole microseconds, and the sizes of collectives are in bytes. Returns
// false if the trace is too large, which is an error at `file`.
bool WriteChakra(const Trace& trace, const std::string& prefix, const std::string& file,
                 const std::function<void(const std::string&, const std::string&)>& write,
                 Diagnostics& diagnostics);

}  // namespace railyard
