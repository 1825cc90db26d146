// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>

namespace railyard {

// Returns the word as a shell reads it: in single quotes if necessary.
std::string ShellWord(const std::string& word);

}  // namespace railyard
