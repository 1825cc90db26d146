// SPDX-License-Identifier: GPL-2.0-only
// Makes the cells of tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "analysis/writers/result_tables.h"

namespace railyard {

inline Cell IntegerCell(uint64_t value) { return static_cast<int64_t>(value); }
inline Cell RealCell(std::optional<double> value) { return value ? Cell(*value) : Cell(); }
inline Cell TextCell(std::string_view text) { return text; }
inline Cell SignedCell(std::optional<int64_t> value) { return value ? Cell(*value) : Cell(); }

}  // namespace railyard
