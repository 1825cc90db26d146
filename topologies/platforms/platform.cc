// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/platforms/platform.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include <google/protobuf/text_format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/platforms/platform.pb.h"
#include "topologies/platforms/platform_reader.h"
#include "topologies/platforms/shipped_platforms.h"

namespace railyard {
namespace {

Platform ReadShipped(const ShippedPlatform& shipped) {
  auto message = std::make_unique<protos::Platform>();
  const bool is_text = google::protobuf::TextFormat::ParseFromString(shipped.text, message.get());
  SIM_CHECK(is_text, std::string(shipped.name) + " is no text");
  const TextProtoFile file = {.path = std::string(shipped.name),
                              .message = std::move(message),
                              .sets = {},
                              .places = {},
                              .mistakes = {}};
  Diagnostics diagnostics;
  Platform platform = ReadPlatform(ProtoCursor(file), std::string(shipped.name), diagnostics);
  SIM_CHECK(!diagnostics.HasErrors(), diagnostics.ToString());
  return platform;
}

}  // namespace

const std::vector<Platform>& Platforms() {
  static const std::vector<Platform> kPlatforms = [] {
    std::vector<Platform> platforms;
    for (const ShippedPlatform& shipped : ShippedPlatforms()) {
      platforms.push_back(ReadShipped(shipped));
    }
    return platforms;
  }();
  return kPlatforms;
}

std::vector<std::string> PlatformNames() {
  std::vector<std::string> names;
  for (const Platform& platform : Platforms()) names.push_back(platform.name);
  return names;
}

const Platform* FindPlatform(std::string_view name) {
  const auto at = std::find_if(Platforms().begin(), Platforms().end(),
                               [&](const Platform& platform) { return platform.name == name; });
  return at == Platforms().end() ? nullptr : &*at;
}

ServerSpec ServerOfPlatform(std::string_view name) {
  const Platform* const platform = FindPlatform(name);
  SIM_CHECK(platform != nullptr && platform->open_fields.empty(),
            std::string(name) + " is no platform whose every number is known");
  return platform->server;
}

bool IsPlatformFile(std::string_view name) {
  return name.find_first_of("/.") != std::string_view::npos;
}

std::optional<Platform> LoadPlatform(const std::string& path, Diagnostics& diagnostics) {
  if (const std::string why = WhyNotAFile(path); !why.empty()) {
    diagnostics.Error({.file = path}, "", why + " (expected a platform file)");
    return std::nullopt;
  }
  const int errors_before = diagnostics.error_count();
  const auto file = LoadTextProto(path, protos::Platform(), {}, diagnostics);
  if (file == nullptr) return std::nullopt;
  Platform platform =
      ReadPlatform(ProtoCursor(*file), std::filesystem::path(path).stem().string(), diagnostics);
  if (diagnostics.error_count() > errors_before) return std::nullopt;
  return platform;
}

}  // namespace railyard
