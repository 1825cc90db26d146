// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>

namespace railyard {

// "railyard 0.1.0 (commit 0123456789ab, ns-3.37)": the version, the commit it was built from, with
// "-dirty" behind it where the tree had changes, and the release of ns-3 it runs on.
std::string VersionText();

}  // namespace railyard
