// SPDX-License-Identifier: GPL-2.0-only
// Reads Chakra's JSON: {"workload_graph": [nodes]}, or a sequence of nodes as protobuf's JSON. It
// is read as a stream, so memory does not grow with the file.
#pragma once

#include <functional>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/chakra/chakra_node.h"
#include "traces/reading/input_stream.h"

namespace railyard {

// Passes each node with an id or a type to `visit`. Returns false after an error, which names the
// line, and without one if the stream has failed, which InputFiles reports.
bool ReadChakraJson(InputStream& stream, const std::function<void(const ChakraNode&)>& visit,
                    Diagnostics& diagnostics);

}  // namespace railyard
