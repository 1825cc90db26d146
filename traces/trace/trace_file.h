// SPDX-License-Identifier: GPL-2.0-only
// Reads and writes traces on disk: length-delimited protobuf messages (trace.proto), the header
// first, then messages of operations and loops, rank by rank. Files that start with gzip's magic
// number are decompressed while read.
#pragma once

#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"

namespace railyard {

// Writes `trace` to `path`, complete or not at all (temporary file, fsync, rename). Precondition:
// CheckTrace finds no error in it. Throws EnvironmentError if it cannot be written.
void WriteTrace(const std::string& path, const Trace& trace);

// Reads and checks (CheckTrace) a trace. For any input bytes, the result is a trace that passes the
// checks or nullopt with findings that name the byte offset; memory is bounded by the limits of
// trace_check.h. A missing file is a finding; a file that cannot be read throws an
// EnvironmentError.
std::optional<Trace> ReadTrace(const std::string& path, Diagnostics& diagnostics);

}  // namespace railyard
