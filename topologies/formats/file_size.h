// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

// Returns whether the file has at most `bytes_max` bytes, and reports an error if it has more. A
// file without a size, such as a pipe, has few enough.
bool IsWithinSize(const std::string& path, uint64_t bytes_max, Diagnostics& diagnostics);

}  // namespace railyard
