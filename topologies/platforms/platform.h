// SPDX-License-Identifier: GPL-2.0-only
// Kinds of server: those that ship with the program, and files of one's own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/graph/server.h"

namespace railyard {

// Factors of what GPUs and proxies cost by NCCL's tables.
struct PlatformCalibration {
  double launch_latency_scale = 1;
  double step_latency_scale = 1;
  double channel_rate_scale = 1;
  std::string source{};
  bool operator==(const PlatformCalibration&) const = default;
};

// Whether a factor is one that calibration may have.
inline bool IsCostScale(double scale) { return scale >= 0.1 && scale <= 10; }

struct Platform {
  std::string name;
  std::string description;  // one line
  ServerSpec server;
  // Fields of railyard.protos.Servers whose numbers the platform leaves to its user; `server` has a
  // DGX H100's there.
  std::vector<std::string> open_fields{};
  PlatformCalibration calibration{};
};

// topologies/platforms/*.textproto, which are part of the program, by name.
const std::vector<Platform>& Platforms();
std::vector<std::string> PlatformNames();
// nullptr if no such platform ships.
const Platform* FindPlatform(std::string_view name);
// The server of a platform that ships and leaves nothing open; anything else is a program error.
ServerSpec ServerOfPlatform(std::string_view name);

// Whether a name is that of a file of one's own: it has a '/' or a '.' in it.
bool IsPlatformFile(std::string_view name);
// From a railyard.protos.Platform in text. nullopt after an error; every mistake is a finding.
std::optional<Platform> LoadPlatform(const std::string& path, Diagnostics& diagnostics);

}  // namespace railyard
