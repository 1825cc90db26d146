// SPDX-License-Identifier: GPL-2.0-only
// Formats the user's own words in findings: quoted, truncated, and with a suggestion of the
// intended word.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace railyard {

// Returns the closest of `candidates` to `text` if it is close enough to be a typing mistake (no
// more than a third of its letters changed, swapped, added or left out; case does not count), else
// empty.
std::string ClosestName(std::string_view text, const std::vector<std::string>& candidates);

// Returns ` (did you mean "RING"?)`, or empty if no candidate is close.
std::string DidYouMean(std::string_view text, const std::vector<std::string>& candidates);

// Returns `unknown WHAT "RNIG" (did you mean "RING"?)`; if no candidate is close, `(expected A, B
// or C)` if they are few enough to be listed. `what` may be empty.
std::string UnknownName(std::string_view what, std::string_view text,
                        const std::vector<std::string>& candidates);

// Returns "1 server", "4 servers", for things whose plural adds an s.
std::string Counted(uint64_t count, std::string_view thing);

// Returns "A, B or C".
std::string JoinAlternatives(const std::vector<std::string>& names);

// Returns `text` in double quotes with control characters and bytes that are not UTF-8 escaped,
// truncated to `bytes_max` bytes. Paths get kQuotedPathBytesMax.
std::string Quote(std::string_view text, size_t bytes_max = 80);
inline constexpr size_t kQuotedPathBytesMax = 4096;

// Returns `text` with control characters and bytes that are not UTF-8 escaped as Quote() does, for
// names of files that others have chosen.
std::string Escaped(std::string_view text);

// Returns the offset of the first byte that cannot be part of a text file (a control character
// other than tab, line feed and carriage return, or anything that is not UTF-8); npos if there is
// none.
size_t FindNonText(std::string_view text);

// Returns true for UTF-8 without control characters, which names and paths must be.
bool IsPrintable(std::string_view text);

}  // namespace railyard
