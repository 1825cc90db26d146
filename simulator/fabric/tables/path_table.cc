// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/tables/path_table.h"

#include "simulator/diagnostics/check.h"

namespace railyard {

PathRef PathTable::Add(const std::vector<LinkId>& links, std::optional<uint32_t> detour_hop,
                       const LosslessClasses& classes) {
  SIM_CHECK(links.size() <= UINT8_MAX, "a path of more than 255 links");
  const PathRef path{static_cast<uint32_t>(links_.size()), static_cast<uint8_t>(links.size())};
  links_.insert(links_.end(), links.begin(), links.end());
  if (classes.count() > 1) {
    const std::vector<uint8_t> of_path = classes.OfPath(links, detour_hop);
    classes_.insert(classes_.end(), of_path.begin(), of_path.end());
  }
  return path;
}

}  // namespace railyard
