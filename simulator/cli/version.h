// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>

namespace railyard {

// Hold the version, and the commit of the sources, or nothing if they are in no repository. Each
// build defines them (cmake/write_commit.cmake).
extern const char* const kVersion;
extern const char* const kCommit;

// Returns e.g. "railyard 0.1.0 (commit 0123456789ab, ns-3.37)": the version, the commit it was
// built from (followed by "-dirty" if the tree had changes), and the release of ns-3 it runs on.
std::string VersionText();

}  // namespace railyard
