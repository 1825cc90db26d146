// SPDX-License-Identifier: GPL-2.0-only
// Names the files and directories that hold a result until it is complete.
#pragma once

#include <filesystem>
#include <string_view>

namespace railyard {

inline constexpr std::string_view kHiddenPrefix = ".railyard-";

// Returns a hidden name in the directory, of this process and instant. No file had it before, so
// whoever removes what a killed process has left does not remove another's. If it exists all the
// same, the caller must ask for another.
std::filesystem::path NewHiddenName(const std::filesystem::path& directory);
// Returns whether NewHiddenName() makes such names.
bool IsHiddenName(std::string_view name);

}  // namespace railyard
