// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <fstream>
#include <string>

namespace railyard {

// Opens a regular file for reading, as bytes. The stream has failed, and errno has the reason, if
// there is no such file or if it is something else, e.g. a pipe, which may never end.
std::ifstream OpenInputFile(const std::string& path);

}  // namespace railyard
