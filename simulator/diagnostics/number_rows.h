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

// Reads whole numbers from a CSV file: its first line names columns, the wanted ones in any order
// and among others or not, then come rows. `add` is told of each row's numbers, in the order of
// `columns`; it says what is wrong with them, or nothing. Findings, 20 at most, are at their lines.
// False if there are any. Precondition: the file exists.
bool ReadNumberRows(const std::string& path, const std::vector<NumberColumn>& columns,
                    const std::function<std::string(const std::vector<uint64_t>&)>& add,
                    Diagnostics& diagnostics);

}  // namespace railyard
