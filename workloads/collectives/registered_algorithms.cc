// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/registered_algorithms.h"

#include <map>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "workloads/collectives/recursive_doubling.h"

namespace railyard {
namespace {

std::map<std::string, AlgorithmFactory>& Algorithms() {
  static std::map<std::string, AlgorithmFactory> algorithms = {
      {"recursive_doubling", MakeRecursiveDoubling}};
  return algorithms;
}

}  // namespace

void RegisterAlgorithm(const std::string& name, AlgorithmFactory factory) {
  Algorithms().insert_or_assign(name, std::move(factory));
}

std::vector<std::string> RegisteredAlgorithms() {
  std::vector<std::string> names;
  for (const auto& [name, factory] : Algorithms()) names.push_back(name);
  return names;
}

std::shared_ptr<const ExplicitAlgorithm> MakeAlgorithm(const std::string& name,
                                                       const AlgorithmRequest& request) {
  const auto found = Algorithms().find(name);
  SIM_CHECK(found != Algorithms().end(), "an algorithm that is not registered");
  return found->second(request);
}

}  // namespace railyard
