// SPDX-License-Identifier: GPL-2.0-only
// Chakra's JSON: {"workload_graph": [nodes]}, or nodes one after the other as protobuf's JSON.
// Read as a stream: memory does not grow with the file.
#pragma once

#include <functional>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/chakra/chakra_node.h"
#include "traces/reading/input_stream.h"

namespace railyard {

// Shows each node with an id to `visit`. False after an error, which names the byte.
bool ReadChakraJson(InputStream& stream, const std::function<void(ChakraNode&&)>& visit,
                    Diagnostics& diagnostics);

}  // namespace railyard
