// SPDX-License-Identifier: GPL-2.0-only
// How findings speak about what the user wrote: quoted, cut to a bearable length, and with a guess
// at what was meant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace railyard {

// The closest of `candidates` to `text` if close enough to be a typing mistake (no more than a
// third of its letters changed, swapped, added or left out; case does not count), else empty.
std::string ClosestName(std::string_view text, const std::vector<std::string>& candidates);

// ` (did you mean "RING"?)`, or empty where nothing is close.
std::string DidYouMean(std::string_view text, const std::vector<std::string>& candidates);

// `unknown WHAT "RNIG" (did you mean "RING"?)`; where nothing is close, `(expected A, B or C)` if
// they are few enough to be listed. `what` may be empty.
std::string UnknownName(std::string_view what, std::string_view text,
                        const std::vector<std::string>& candidates);

// "1 server", "4 servers": of things whose plural adds an s.
std::string Counted(uint64_t count, std::string_view thing);

// "A, B or C".
std::string JoinAlternatives(const std::vector<std::string>& names);

// `text` in double quotes, control characters and bytes that are not UTF-8 escaped, cut to
// `bytes_max` bytes. Paths are worth kQuotedPathBytesMax.
std::string Quote(std::string_view text, size_t bytes_max = 80);
inline constexpr size_t kQuotedPathBytesMax = 4096;

// The offset of the first byte that cannot be part of a text file (a control character other than
// tab, line feed and carriage return, or anything that is not UTF-8); npos if there is none.
size_t FindNonText(std::string_view text);

// UTF-8 without any control character: what a name or a path may hold.
bool IsPrintable(std::string_view text);

}  // namespace railyard
