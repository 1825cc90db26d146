// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/measures/runnable.h"

#include <fmt/format.h>

namespace railyard {

std::vector<RunObstacle> FindRunObstacles(const FabricGraph& fabric) {
  std::vector<bool> is_used(fabric.device_count());
  for (const DeviceId gpu : fabric.gpus()) {
    if (const auto nic = fabric.NicOfGpu(gpu)) is_used[*nic] = true;
  }
  uint64_t unused = 0;
  const std::string* first_unused = nullptr;
  for (DeviceId id{0}; id < fabric.device_count(); ++id) {
    if (fabric.device(id).kind != DeviceKind::kNic || is_used[id]) continue;
    if (unused++ == 0) first_unused = &fabric.device(id).name;
  }
  uint64_t between_gpus = 0;
  const std::string* first_between_gpus = nullptr;
  for (const Cable& cable : fabric.cables()) {
    const DeviceId a = fabric.link_source(cable.forward);
    const DeviceId b = fabric.link_target(cable.forward);
    if (fabric.device(a).kind != DeviceKind::kGpu || fabric.device(b).kind != DeviceKind::kGpu) {
      continue;
    }
    // NVLink takes it where no NVSwitch joins the two.
    if (fabric.device(a).server == fabric.device(b).server &&
        fabric.link(cable.forward).tier == Tier::kNvlink && fabric.SharedNvSwitches(a, b).empty()) {
      continue;
    }
    if (between_gpus++ == 0) first_between_gpus = &cable.name;
  }
  std::vector<RunObstacle> obstacles;
  if (fabric.gpus().empty()) {
    obstacles.push_back({.is_error = true, .what = "there is no GPU (expected at least one)"});
  }
  if (unused > 0) {
    obstacles.push_back(
        {.is_error = true,
         .what = fmt::format("{} NICs that no GPU uses, the first of them {} (expected at most one "
                             "NIC per GPU)",
                             unused, *first_unused)});
  }
  if (between_gpus > 0) {
    obstacles.push_back(
        {.is_error = false,
         .what = fmt::format("{} cables between GPUs, the first of them {}, which a run does not "
                             "use (expected NVSWITCHes)",
                             between_gpus, *first_between_gpus)});
  }
  return obstacles;
}

}  // namespace railyard
