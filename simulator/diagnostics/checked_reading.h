// SPDX-License-Identifier: GPL-2.0-only
// Reads files whose contents the user wrote: that a file cannot be read is no finding about its
// contents.
#pragma once

#include <fstream>
#include <istream>
#include <string>

namespace railyard {

// Opens a file for reading, as bytes. Throws EnvironmentError "cannot read PATH: REASON".
std::ifstream OpenToRead(const std::string& path);

// Throws the same if reading has failed. The end of the file is no failure. Must be called before a
// file is accepted that seems to have ended, because streams end at a disk's error, too.
void CheckReading(const std::istream& stream, const std::string& path);

}  // namespace railyard
