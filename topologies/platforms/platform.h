// SPDX-License-Identifier: GPL-2.0-only
// Loads platforms, which are kinds of servers: those that ship with the program, and user files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/graph/server.h"

namespace railyard {

// Holds calibrated factors on the GPU and proxy costs of NCCL's tables.
struct PlatformCalibration {
  double launch_latency_scale = 1;
  double step_latency_scale = 1;
  double channel_rate_scale = 1;
  std::string source{};
  bool operator==(const PlatformCalibration&) const = default;
};

// Returns true if calibration may use this factor.
inline bool IsCostScale(double scale) { return scale >= 0.1 && scale <= 10; }

struct Platform {
  std::string name;
  std::string description;  // one line
  ServerSpec server;
  // The fields of railyard.protos.Servers that the platform does not set and the user must set;
  // `server` has the values of a DGX H100 for them.
  std::vector<std::string> open_fields{};
  PlatformCalibration calibration{};
};

// Returns the platforms of topologies/platforms/*.textproto, which the build embeds, by name.
const std::vector<Platform>& Platforms();
std::vector<std::string> PlatformNames();
// Returns the shipped platform of that name, or nullptr.
const Platform* FindPlatform(std::string_view name);
// Returns the server of a shipped platform that has no open fields; any other name is a program
// error.
ServerSpec ServerOfPlatform(std::string_view name);

// Returns true if the name is that of a user file, i.e. contains a '/' or a '.'.
bool IsPlatformFile(std::string_view name);
// Loads a railyard.protos.Platform in text. Returns nullopt after an error; every mistake is a
// finding.
std::optional<Platform> LoadPlatform(const std::string& path, Diagnostics& diagnostics);

}  // namespace railyard
