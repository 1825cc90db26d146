// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/models/named_devices.h"

#include <optional>
#include <string>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/scenario/faults/fault_targets.h"

namespace railyard {

NamedDevices::NamedDevices(const FabricGraph* fabric, const Words& words, Diagnostics& diagnostics)
    : fabric_(fabric), words_(words), diagnostics_(diagnostics) {
  if (fabric_ != nullptr) is_named_.resize(fabric_->device_count());
}

std::vector<DeviceId> NamedDevices::Resolve(const ProtoCursor& entry) {
  std::vector<DeviceId> devices;
  const int patterns = entry.Size("device");
  if (patterns == 0) {
    entry.Missing(diagnostics_, "device",
                  fmt::format("{}{}, e.g. {}", words_.noun, words_.noun == "switch" ? "es" : "s",
                              words_.example));
  }
  for (int i = 0; fabric_ != nullptr && i < patterns; ++i) AddFitting(entry, i, devices);
  return devices;
}

void NamedDevices::AddFitting(const ProtoCursor& entry, int pattern,
                              std::vector<DeviceId>& devices) {
  const std::string text = entry.TextAt("device", pattern);
  bool fits = false;
  std::optional<DeviceId> taken;
  for (DeviceId id{0}; id < fabric_->device_count(); ++id) {
    const Device& device = fabric_->device(id);
    if (device.kind != words_.kind || !FitsPattern(text, device.name)) continue;
    fits = true;
    if (is_named_[id]) {
      if (!taken) taken = id;
      continue;
    }
    is_named_[id] = true;
    devices.push_back(id);
  }
  if (!fits) {
    entry.Error(
        diagnostics_, "device",
        fmt::format("{} is no {} (expected e.g. {})", Quote(text), words_.noun, words_.example),
        pattern);
  } else if (taken) {
    entry.Error(diagnostics_, "device",
                fmt::format("{} differs already (expected each {} once)",
                            Quote(fabric_->device(*taken).name), words_.noun),
                pattern);
  }
}

}  // namespace railyard
