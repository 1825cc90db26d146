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

// Reads whole numbers from a CSV file whose first line names columns: the wanted ones in any order,
// possibly among others. `add` receives each row's numbers in the order of `columns` and returns
// what is wrong with them, or an empty string. Findings, 20 at most, are at their lines. Returns
// false if there are any. Precondition: the file exists.
bool ReadNumberRows(const std::string& path, const std::vector<NumberColumn>& columns,
                    const std::function<std::string(const std::vector<uint64_t>&)>& add,
                    Diagnostics& diagnostics);

}  // namespace railyard
