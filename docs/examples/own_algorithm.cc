// SPDX-License-Identifier: GPL-2.0-only
// Registers an algorithm for Broadcast and compares it with NCCL's choice.
#include <cstdio>
#include <exception>
#include <memory>
#include <vector>

#include "railyard/collective_algorithm.h"
#include "railyard/result.h"
#include "railyard/run.h"
#include "railyard/scenario_builder.h"

namespace {

// A binomial tree: in round k each rank that has the data sends it to the rank 2^k further on.
std::shared_ptr<const railyard::ExplicitAlgorithm> Binomial(
    const railyard::AlgorithmRequest& request) {
  if (request.kind != railyard::CollectiveKind::kBroadcast) return nullptr;
  const uint32_t ranks = request.rank_count;
  auto algorithm = std::make_shared<railyard::ExplicitAlgorithm>();
  algorithm->kind = request.kind;
  algorithm->rank_count = ranks;
  algorithm->root = request.root;
  for (uint32_t i = 0; i < ranks; ++i) {  // i-th from the root
    const auto rank_at = [&](uint32_t place) {
      return static_cast<int32_t>((request.root + place) % ranks);
    };
    std::vector<railyard::ExplicitStep> steps;
    uint32_t distance = 1;
    if (i == 0) {
      steps.push_back({.step = {.load_local = true, .keep = true, .store = true}});
    } else {
      while (2 * distance <= i) distance *= 2;
      steps.push_back({.step = {.recv_from = rank_at(i - distance), .keep = true, .store = true}});
      distance *= 2;
    }
    for (; i + distance < ranks; distance *= 2) {
      steps.push_back({.step = {.send_to = rank_at(i + distance), .load_kept = true}});
    }
    algorithm->lanes[{railyard::RankIndex{rank_at(i)}, 0}].push_back(std::move(steps));
  }
  return algorithm;
}

bool RunAndPrint(const char* name, const char* algorithm) {
  railyard::ScenarioBuilder builder(name);
  builder.Fabric(railyard::scenario::RailOptimized{.servers = 4})
      .Add(railyard::scenario::Collective{.operation = railyard::scenario::Operation::kBroadcast,
                                          .size = railyard::DataSize::KiB(64)});
  if (algorithm != nullptr) builder.Set("workload.registered_algorithm", algorithm);
  railyard::Diagnostics diagnostics;
  const auto scenario = builder.Build(diagnostics);
  std::fputs(diagnostics.ToString().c_str(), stderr);
  if (!scenario) return false;
  const railyard::Result result = railyard::Run(*scenario);
  std::printf("%-8s %7.2f us\n", name, static_cast<double>(result.simulated_time_ps) * 1e-6);
  return result.status == railyard::RunStatus::kCompleted;
}

}  // namespace

int main() {
  railyard::RegisterAlgorithm("binomial", Binomial);
  try {
    return RunAndPrint("NCCL", nullptr) && RunAndPrint("binomial", "binomial") ? 0 : 3;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
