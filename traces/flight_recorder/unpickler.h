// SPDX-License-Identifier: GPL-2.0-only
// Python pickles as data: dictionaries, lists, tuples, text, numbers. Nothing is imported, called
// or built; opcodes that would are errors.
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

// Unpickles the dictionary in `stream` and shows it to `visit` piece by piece: each member by its
// key, but of the list `list_key` each item by itself, numbered from 1. False with a finding, which
// names the byte, where the pickle is damaged, is none of a dictionary, or does more than hold
// data.
bool ForEachPickledItem(
    InputStream& stream, std::string_view list_key,
    const std::function<void(std::string_view key, Value value, uint64_t number)>& visit,
    Diagnostics& diagnostics);

}  // namespace railyard
