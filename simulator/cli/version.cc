// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/version.h"

#include <string_view>

#include <fmt/format.h>

#include <ns3/version-defines.h>

namespace railyard {

std::string VersionText() {
  const std::string_view commit = kCommit;
  return fmt::format("railyard {} ({}ns-{}.{})", kVersion,
                     commit.empty() ? "" : fmt::format("commit {}, ", commit), NS3_VERSION_MAJOR,
                     NS3_VERSION_MINOR);
}

}  // namespace railyard
