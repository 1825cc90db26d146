// SPDX-License-Identifier: GPL-2.0-only
// Holds a line of the output of NCCL's example profiler plug-in (print_event.cc in its
// plugins/profiler/example): the begin or the end of an event of Chrome's trace format.
//
// NCCL 2.28 printed datatypes and streams without quotation marks, so such a file is not JSON; it
// is read line by line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace railyard {

struct NcclProfilerEvent {
  std::string_view name;      // "AllReduce", "Send", "KernelCh"
  std::string_view category;  // "COLL", "P2P", "GROUP", "COLL_API", "GPU"
  bool is_begin = false;
  uint64_t process = 0;
  std::optional<int64_t> time_ps;  // since the plug-in was loaded
  std::string_view fields;         // the fields of "args", as text
};

// Returns nullopt if the line is not an event (a bracket around the events, or truncated). Views
// point into the line.
std::optional<NcclProfilerEvent> ParseNcclProfilerLine(std::string_view line);

// Returns the value of a field, without quotation marks; empty if there is no field of that name.
std::string_view NcclProfilerField(std::string_view fields, std::string_view name);

}  // namespace railyard
