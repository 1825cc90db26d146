// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/version.h"

#include <string_view>

#include <fmt/format.h>

#include <ns3/version-defines.h>

#include "commit.h"

namespace railyard {

std::string VersionText() {
  constexpr std::string_view kCommit = RAILYARD_COMMIT;
  return fmt::format("railyard {} ({}ns-{}.{})", RAILYARD_VERSION,
                     kCommit.empty() ? "" : fmt::format("commit {}, ", kCommit), NS3_VERSION_MAJOR,
                     NS3_VERSION_MINOR);
}

}  // namespace railyard
