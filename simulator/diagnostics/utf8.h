// SPDX-License-Identifier: GPL-2.0-only
// Makes names printable. They come from logs and file names and may hold any bytes, which JSON and
// terminals must not receive.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace railyard {

// Replaces every byte that is not part of a valid UTF-8 sequence by U+FFFD.
std::string ToValidUtf8(std::string_view text);

// Returns valid UTF-8 of at most `columns` characters without control characters (each becomes
// "?"); longer text is truncated and ends in "..". Precondition: columns >= 2. Characters count as
// one column each.
std::string ToTerminalText(std::string_view text, size_t columns);

}  // namespace railyard
