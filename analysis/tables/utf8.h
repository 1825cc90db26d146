// SPDX-License-Identifier: GPL-2.0-only
// Names come from logs and file names, which may hold any bytes; JSON and terminals may not.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace railyard {

// Every byte that is no part of a valid UTF-8 sequence becomes U+FFFD.
std::string ToValidUtf8(std::string_view text);

// Valid UTF-8 without control characters (each becomes "?"), at most `columns` characters: what is
// longer ends in "..". Precondition: columns >= 2. Characters count as one column each.
std::string ToTerminalText(std::string_view text, size_t columns);

}  // namespace railyard
