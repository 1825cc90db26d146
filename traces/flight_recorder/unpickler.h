// SPDX-License-Identifier: GPL-2.0-only
// Reads Python pickles as data: dictionaries, lists, tuples, text, numbers. It never imports, calls
// or constructs objects; opcodes that do so are errors.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/reading/input_stream.h"
#include "traces/reading/value.h"

namespace railyard {

inline constexpr size_t kPickleValuesMax = 4'000'000;             // in a file
inline constexpr size_t kPickleTextBytesMax = size_t{256} << 20;  // in a file

// Unpickles the dictionary in `stream` and passes it to `visit` piece by piece: each member by its
// key, except that the list `list_key` is passed item by item, numbered from 1. Returns false with
// a finding, which names the byte, if the pickle is damaged, is not a dictionary, or has opcodes
// that do more than store data.
bool ForEachPickledItem(
    InputStream& stream, std::string_view list_key,
    const std::function<void(std::string_view key, Value value, uint64_t number)>& visit,
    Diagnostics& diagnostics);

}  // namespace railyard
