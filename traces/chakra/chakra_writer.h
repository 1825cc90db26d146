// SPDX-License-Identifier: GPL-2.0-only
// Writes traces as Chakra execution traces, with which ASTRA-sim reads them.
#pragma once

#include <functional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"

namespace railyard {

// Shows the name ("PREFIX.3.et") and the bytes of each rank's file, and of
// "PREFIX.comm_groups.json", ASTRA-sim's groups, where not all communicators are of all ranks in
// order. Gaps are COMP_NODEs of whole microseconds, collectives of bytes. False where that is too
// much, which is an error at `file`.
bool WriteChakra(const Trace& trace, const std::string& prefix, const std::string& file,
                 const std::function<void(const std::string&, const std::string&)>& write,
                 Diagnostics& diagnostics);

}  // namespace railyard
