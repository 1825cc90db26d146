// SPDX-License-Identifier: GPL-2.0-only
// The program that libFuzzer drives. RAILYARD_FUZZ_TARGET in the environment names the target.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/fuzz_targets.h"

namespace railyard::testing {
namespace {

const FuzzTarget& NamedTarget() {
  const char* const name = std::getenv("RAILYARD_FUZZ_TARGET");
  const std::vector<FuzzTarget>& targets = FuzzTargets();
  const auto target = std::find_if(targets.begin(), targets.end(), [&](const FuzzTarget& other) {
    return name != nullptr && other.name == name;
  });
  if (target == targets.end()) {
    std::string names;
    for (const FuzzTarget& other : targets) names += " " + other.name;
    FuzzFailed("RAILYARD_FUZZ_TARGET names no target (expected one of" + names + ")");
  }
  return *target;
}

}  // namespace
}  // namespace railyard::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const railyard::testing::FuzzTarget& target = railyard::testing::NamedTarget();
  railyard::testing::RunFuzzTarget(target, {reinterpret_cast<const char*>(data), size});
  return 0;
}
