// SPDX-License-Identifier: GPL-2.0-only
// A fabric of 65,536 GPUs: built, checked, and routed from every switch to every NIC.
#include <sys/resource.h>

#include <benchmark/benchmark.h>

#include "topologies/measures/fabric_measures.h"
#include "topologies/measures/preflight.h"
#include "topologies/platforms/preset.h"
#include "topologies/routing/routing.h"

namespace railyard {
namespace {

constexpr const char* kPreset = "h100-8192x8-rail-optimized-core";

double PeakRssMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void Build(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(MakePreset(kPreset));
}

void MeasureAndPreflight(benchmark::State& state) {
  const FabricGraph fabric = MakePreset(kPreset).value();
  for (auto _ : state) benchmark::DoNotOptimize(Preflight(fabric, Measure(fabric)));
}

void RouteAll(benchmark::State& state) {
  const FabricGraph fabric = MakePreset(kPreset).value();
  EcmpRouting::TableSize size;
  for (auto _ : state) {
    const EcmpRouting routing(fabric, 1);
    routing.ResolveAll();
    size = routing.MeasureTables();
  }
  state.counters["destinations"] = static_cast<double>(size.destinations);
  state.counters["table_bytes"] = static_cast<double>(size.bytes);
  state.counters["dense_bytes"] = static_cast<double>(size.dense_bytes);
}

// All three, as `railyard topo show` and a run would need them.
void BuildCheckRoute(benchmark::State& state) {
  for (auto _ : state) {
    const FabricGraph fabric = MakePreset(kPreset).value();
    benchmark::DoNotOptimize(Preflight(fabric, Measure(fabric)));
    const EcmpRouting routing(fabric, 1);
    routing.ResolveAll();
  }
  state.counters["peak_rss_MiB"] = PeakRssMegabytes();
}

BENCHMARK(Build)->Unit(benchmark::kSecond);
BENCHMARK(MeasureAndPreflight)->Unit(benchmark::kSecond);
BENCHMARK(RouteAll)->Unit(benchmark::kSecond);
BENCHMARK(BuildCheckRoute)->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace railyard

BENCHMARK_MAIN();
