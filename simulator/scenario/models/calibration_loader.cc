// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/models/calibration_loader.h"

#include <optional>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "topologies/formats/generator_loader.h"
#include "topologies/platforms/platform.h"

namespace railyard {
namespace {

// Servers of the fabric's generator.
std::vector<ProtoCursor> ServersOf(const ProtoCursor& fabric) {
  std::vector<ProtoCursor> servers;
  for (const std::string& generator : GeneratorNames()) {
    if (!fabric.Has(generator.c_str())) continue;
    const ProtoCursor child = fabric.Child(generator.c_str());
    const char* const field = generator == "rail_optimized" ? "mixed_servers" : "servers";
    // Servers that a generator describes by numbers alone have no platform.
    if (child.message().GetDescriptor()->FindFieldByName(field) == nullptr) continue;
    for (int i = 0; i < child.Size(field); ++i) servers.push_back(child.Child(field, i));
  }
  return servers;
}

std::optional<Platform> PlatformFileOf(const ProtoCursor& servers) {
  if (!servers.Has("platform") || !IsPlatformFile(servers.Text("platform", ""))) {
    return std::nullopt;
  }
  Diagnostics reported_before;
  return LoadPlatform(servers.FilePath("platform"), reported_before);
}

}  // namespace

std::optional<Platform> CalibratedPlatformOf(const ProtoCursor& fabric, Diagnostics& diagnostics) {
  const std::vector<ProtoCursor> servers = ServersOf(fabric);
  std::optional<Platform> first;
  for (size_t i = 0; i < servers.size(); ++i) {
    std::optional<Platform> platform = PlatformFileOf(servers[i]);
    const PlatformCalibration none;
    const PlatformCalibration& calibration = platform ? platform->calibration : none;
    if (i == 0) {
      first = std::move(platform);
    } else if (calibration != (first ? first->calibration : none)) {
      servers[i].Error(diagnostics, "platform",
                       "is calibrated otherwise than the first servers' (expected one calibration: "
                       "it holds for all GPUs)");
    }
  }
  if (first && first->calibration == PlatformCalibration()) return std::nullopt;
  return first;
}

std::array<std::pair<const char*, double>, 3> FactorsOf(const PlatformCalibration& calibration) {
  return {{{"launch_latency_scale", calibration.launch_latency_scale},
           {"step_latency_scale", calibration.step_latency_scale},
           {"channel_rate_scale", calibration.channel_rate_scale}}};
}

void ApplyCalibration(const ProtoCursor& scenario, GpuCosts& costs, std::vector<std::string>& notes,
                      Diagnostics& diagnostics) {
  if (!scenario.Has("fabric")) return;
  const auto platform = CalibratedPlatformOf(scenario.Child("fabric"), diagnostics);
  if (!platform) return;
  const PlatformCalibration& calibration = platform->calibration;
  if (scenario.Has("gpu")) {
    const ProtoCursor gpu = scenario.Child("gpu");
    for (const auto& [field, factor] : FactorsOf(calibration)) {
      if (!gpu.Has(field)) continue;
      gpu.Error(
          diagnostics, field,
          fmt::format("stands beside the calibration of platform {} (expected one of the two)",
                      Quote(platform->name)));
    }
  }
  costs.launch_latency_scale = calibration.launch_latency_scale;
  costs.step_latency_scale = calibration.step_latency_scale;
  costs.channel_rate_scale = calibration.channel_rate_scale;
  notes.push_back(
      fmt::format("platform {} is calibrated to {}: launch latencies x {}, step latencies x {}, "
                  "channel rates x "
                  "{} of NCCL's table",
                  platform->name, calibration.source, costs.launch_latency_scale,
                  costs.step_latency_scale, costs.channel_rate_scale));
}

}  // namespace railyard
