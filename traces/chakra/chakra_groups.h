// SPDX-License-Identifier: GPL-2.0-only
// Reads ASTRA-sim's file of communicator groups: {"1": [0, 1], "2": [2, 3]}, global ranks by the
// name that nodes give as pg_name.
#pragma once

#include <string_view>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/chakra/chakra_graph.h"
#include "traces/reading/input_stream.h"

namespace railyard {

bool LooksLikeChakraGroups(std::string_view head);
// Adds the file's groups. Returns false after an error.
bool ReadChakraGroups(InputStream& stream, ChakraGroups& groups, Diagnostics& diagnostics);

}  // namespace railyard
