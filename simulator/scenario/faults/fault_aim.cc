// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/faults/fault_aim.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "simulator/faults/keyed_draw.h"
#include "simulator/scenario/schema/scenario.pb.h"

namespace railyard {
namespace {

constexpr uint64_t kDrawStream = 5;

std::string NameOf(const std::vector<FaultTarget>& targets) {
  std::string text = targets.front().name;
  if (targets.size() == 2) text += ", " + targets.back().name;
  if (targets.size() > 2) text += fmt::format(" and {} more", targets.size() - 1);
  return text;
}

void Hit(const std::vector<LinkId>& links, FaultSpec& fault) {
  fault.links.insert(fault.links.end(), links.begin(), links.end());
}

}  // namespace

// FNV-1a.
uint64_t HashOfName(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// Keeps those that the draw chooses, in the order of their names.
void FaultAim::Draw(uint64_t seed, std::vector<FaultTarget>& targets) {
  const ProtoCursor draw = cursor_.Child("draw");
  const uint64_t count = draw.Number(diagnostics_, "count", 1, 1, UINT32_MAX);
  if (count > targets.size()) {
    draw.Error(diagnostics_, "count",
               fmt::format("{} are to be drawn of {} (expected no more than there are)", count,
                           targets.size()));
    return;
  }
  std::vector<std::pair<uint64_t, size_t>> keys;
  for (size_t i = 0; i < targets.size(); ++i) {
    const KeyedDraw key(seed, kDrawStream, HashOfName(targets[i].name));
    keys.emplace_back(key.Below(UINT64_MAX), i);
  }
  std::sort(keys.begin(), keys.end());
  keys.resize(count);
  std::vector<FaultTarget> chosen;
  for (const auto& [key, index] : keys) chosen.push_back(std::move(targets[index]));
  std::sort(chosen.begin(), chosen.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  targets = std::move(chosen);
}

void FaultAim::CheckComponents(const std::vector<FaultTarget>& targets) {
  const auto& message = cursor_.As<protos::Fault>();
  const auto component = message.by_chance().component();
  const auto is_nic_link = [this](LinkId link) {
    return fabric_.link(link).tier == Tier::kNicLeaf;
  };
  for (const FaultTarget& target : targets) {
    const bool fits = component == protos::FaultByChance::TOR_SWITCH
                          ? std::any_of(target.forward.begin(), target.forward.end(), is_nic_link)
                      : component == protos::FaultByChance::NIC_TOR_LINK
                          ? std::all_of(target.forward.begin(), target.forward.end(), is_nic_link)
                          : true;
    if (fits) continue;
    cursor_.Child("by_chance")
        .Error(diagnostics_, "component",
               fmt::format("{} is no {} (expected {})", target.name,
                           protos::FaultByChance::Component_Name(component),
                           component == protos::FaultByChance::TOR_SWITCH
                               ? "switches with cables to NICs"
                               : "cables between NICs and leaves"));
    return;
  }
}

void FaultAim::Aim(const std::vector<FaultTarget>& targets, FaultSpec& fault) {
  const char* const field = cursor_.Has("domain")   ? "domain"
                            : cursor_.Has("device") ? "device"
                            : cursor_.Has("link")   ? "link"
                                                    : "log";
  fault.target = NameOf(targets);
  if (fault.kind == FaultKind::kStraggler) {
    AimAtGpus(targets, fault);
    return;
  }
  if (fault.kind == FaultKind::kSwitchReboot) {
    for (const FaultTarget& target : targets) {
      if (target.device && fabric_.device(*target.device).kind == DeviceKind::kSwitch) continue;
      cursor_.Error(diagnostics_, field,
                    fmt::format("{} is no switch (expected e.g. \"leaf3\")", Quote(target.name)));
      return;
    }
  }
  const auto& message = cursor_.As<protos::Fault>();
  auto direction = message.direction();
  const bool is_storm = fault.kind == FaultKind::kPauseStorm;
  // Pause frames of a device stop what is sent to it.
  if (is_storm && !cursor_.Has("direction") && targets.front().device) {
    direction = protos::Fault::BACKWARD;
  }
  if (is_storm && direction != protos::Fault::FORWARD && direction != protos::Fault::BACKWARD) {
    cursor_.Error(diagnostics_, "direction",
                  "a cable's one end sends pause frames to the other (expected FORWARD or "
                  "BACKWARD, whichever way the data goes that has to wait)");
    return;
  }
  for (const FaultTarget& target : targets) {
    if (direction != protos::Fault::BACKWARD) Hit(target.forward, fault);
    if (direction != protos::Fault::FORWARD) Hit(target.backward, fault);
  }
  if (direction == protos::Fault::FORWARD && !is_storm) fault.target += " (forward)";
  if (direction == protos::Fault::BACKWARD && !is_storm) fault.target += " (backward)";
  if (is_storm) {
    std::erase_if(fault.links, [this](LinkId link) {
      const Tier tier = fabric_.link(link).tier;
      return tier == Tier::kNvlink || tier == Tier::kHost;
    });
  }
  std::sort(fault.links.begin(), fault.links.end());
  fault.links.erase(std::unique(fault.links.begin(), fault.links.end()), fault.links.end());
  if (fault.links.empty()) {
    cursor_.Error(diagnostics_, field,
                  fmt::format("{} has no cable that this could hit (expected another target)",
                              Quote(fault.target)));
  }
  if (cursor_.Has("lanes")) CheckLanes(fault);
}

void FaultAim::AimAtGpus(const std::vector<FaultTarget>& targets, FaultSpec& fault) {
  for (const FaultTarget& target : targets) {
    const auto& gpus = fabric_.gpus();
    const auto gpu =
        target.device ? std::find(gpus.begin(), gpus.end(), *target.device) : gpus.end();
    if (gpu == gpus.end()) {
      cursor_.Error(
          diagnostics_, "device",
          fmt::format("{} is no GPU (expected e.g. \"server1/gpu3\")", Quote(target.name)));
      return;
    }
    fault.gpus.emplace_back(gpu - gpus.begin());
  }
}

// Checks the number of remaining lanes of links that are bundles.
void FaultAim::CheckLanes(FaultSpec& fault) {
  if (fault.links.empty()) return;
  const uint32_t own = fabric_.link(fault.links.front()).lanes;
  const uint64_t lanes = cursor_.Number(diagnostics_, "lanes", 1, 1, UINT32_MAX);
  for (const LinkId link : fault.links) {
    if (fabric_.link(link).lanes != own || lanes >= own) {
      cursor_.Error(diagnostics_, "lanes",
                    fmt::format("{} of the {} of {} are left (expected fewer, and links with "
                                "equally many)",
                                lanes, fabric_.link(link).lanes, fabric_.link(link).name));
      return;
    }
  }
  fault.rate_share = static_cast<double>(lanes) / own;
}

}  // namespace railyard
