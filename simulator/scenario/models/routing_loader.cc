// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/models/routing_loader.h"

#include <vector>

#include <fmt/format.h>

#include "simulator/scenario/check/field_ranges.h"
#include "simulator/scenario/faults/fault_targets.h"
#include "simulator/scenario/models/model_attributes.h"
#include "simulator/scenario/schema/scenario.pb.h"

namespace railyard {
namespace {

void LoadDevice(const ProtoCursor& entry, const FabricGraph* fabric, RoutingDelays& delays,
                Diagnostics& diagnostics) {
  if (!entry.Has("device")) entry.Missing(diagnostics, "device", "e.g. \"leaf3\"");
  if (!entry.Has("detection_delay") && !entry.Has("convergence_delay")) {
    entry.Missing(diagnostics, "detection_delay", "detection_delay, convergence_delay or both");
  }
  const RoutingDelays::OfDevice of_device{
      .detection_ps = LoadDelay(entry, "detection_delay", delays.detection_ps, diagnostics),
      .convergence_ps = LoadDelay(entry, "convergence_delay", delays.convergence_ps, diagnostics)};
  if (fabric == nullptr || !entry.Has("device")) return;
  const std::string pattern = entry.Text("device", "");
  bool fits = false;
  for (DeviceId id{0}; id < fabric->device_count(); ++id) {
    const Device& device = fabric->device(id);
    if (device.kind != DeviceKind::kSwitch && device.kind != DeviceKind::kNic) continue;
    if (!FitsPattern(pattern, device.name)) continue;
    fits = true;
    if (delays.of_device.try_emplace(id, of_device).second) continue;
    entry.Error(
        diagnostics, "device",
        fmt::format("{} has delays already (expected each device once)", Quote(device.name)));
    return;
  }
  if (fits) return;
  entry.Error(diagnostics, "device",
              fmt::format("{} is no switch and no NIC (expected e.g. \"leaf3\")", Quote(pattern)));
}

}  // namespace

RoutingDelays LoadRouting(const ProtoCursor& scenario, const FabricGraph* fabric,
                          Diagnostics& diagnostics) {
  if (!scenario.Has("routing")) return {};
  const ProtoCursor cursor = scenario.Child("routing");
  const std::vector<ModelAttribute> attributes =
      LoadModelAttributes(cursor, "railyard::Routing", diagnostics);
  RoutingDelays delays = MakeModel<Routing>(attributes)->delays();
  for (int i = 0; i < cursor.Size("devices"); ++i) {
    LoadDevice(cursor.Child("devices", i), fabric, delays, diagnostics);
  }
  return delays;
}

}  // namespace railyard
