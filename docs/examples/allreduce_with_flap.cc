// SPDX-License-Identifier: GPL-2.0-only
// Two servers run an AllReduce while a cable flaps; prints how much longer it took for that.
#include <cstdio>
#include <exception>

#include "railyard/result.h"
#include "railyard/run.h"
#include "railyard/scenario_builder.h"

using railyard::DataSize;
using railyard::Duration;

int main() {
  railyard::ScenarioBuilder builder("allreduce_with_flap");
  builder.Fabric(railyard::scenario::RailOptimized{.servers = 2})
      .Add(railyard::scenario::Collective{.size = DataSize::MiB(64)})
      .Add(railyard::scenario::Fault{.name = "flap",
                                     .kind = railyard::scenario::Fault::Kind::kLinkDown,
                                     .link = "server1/nic3--leaf3",
                                     .at = Duration::Us(100),
                                     .until = Duration::Ms(5)})
      .Set("nccl.IB_TIMEOUT", 14);

  try {
    railyard::Diagnostics diagnostics;
    const auto scenario = builder.Build(diagnostics);
    std::fputs(diagnostics.ToString().c_str(), stderr);
    if (!scenario) return 2;

    const railyard::Result result = railyard::Run(*scenario);
    for (const railyard::CollectiveResult& collective : result.collectives) {
      const auto stretch = railyard::Stretch(result, collective);
      if (!stretch) return 3;
      std::printf("%s of %llu bytes: %.3f ms, %.3f ms without the flap, stretch %.1f\n",
                  collective.kind.data(), static_cast<unsigned long long>(collective.bytes),
                  static_cast<double>(collective.duration_ps()) * 1e-9,
                  static_cast<double>(collective.baseline_duration_ps) * 1e-9, *stretch);
    }
    for (const railyard::FaultResult& fault : result.faults) {
      std::printf("%s: lost %llu packets\n", fault.name.c_str(),
                  static_cast<unsigned long long>(fault.dropped_packets));
    }
    return result.status == railyard::RunStatus::kCompleted ? 0 : 3;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
