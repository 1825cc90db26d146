// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

struct NumberColumn {
  std::string_view name;
  uint64_t max = 0;
};

// Reads comma-separated whole numbers: a header line with the columns' names, then rows. `add` is
// told of each row and of its line; it says what is wrong with it, or nothing. Findings, 20 at
// most, are at their lines. False if there are any. Precondition: the file exists.
bool ReadNumberRows(const std::string& path, const std::vector<NumberColumn>& columns,
                    const std::function<std::string(const std::vector<uint64_t>&)>& add,
                    Diagnostics& diagnostics);

}  // namespace railyard
