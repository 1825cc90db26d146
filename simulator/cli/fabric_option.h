// SPDX-License-Identifier: GPL-2.0-only
// The fabric of commands that take one collective: `--fabric F [--nodes N]`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace railyard {

struct FabricOption {
  std::string scenario;  // the blocks `fabric`, `nic` and `network` of a scenario
  std::string name;      // for people
  uint32_t gpus = 0;
};

// `fabric`: a platform (its reference rail-optimized fabric of `nodes` servers), a preset or a
// file. nullopt after an error, which has been printed.
std::optional<FabricOption> ReadFabricOption(const std::string& fabric, uint32_t nodes);

}  // namespace railyard
