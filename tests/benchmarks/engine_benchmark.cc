// SPDX-License-Identifier: GPL-2.0-only
// Empty events that re-arm themselves with a delay uniform in 0..2 us, at several numbers pending:
// stock ns-3 (DefaultSimulatorImpl on its MapScheduler), ns-3 events on our engine, fabric events
// on our engine. One iteration is a batch of kBatchEvents events, timed by the CPU time of the
// process that runs it; `items_per_second` is events per CPU-second. ns-3's choice of a simulator
// is process-wide, so every measurement runs in a forked child of its own.
//
// And whole runs: the shipped ring AllReduces on 32, 128 and 1,024 GPUs, with DCQCN, PFC, ECN and
// ACKs. `items_per_second` is data packets times links crossed per CPU-second of the run, loading
// and set-up included; `hops` checks their number against 2(n-1)S/4096 times the links of a ring's
// edges. SetUp is a run of 8,192 GPUs that does little else than being set up.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <benchmark/benchmark.h>

#include <ns3/global-value.h>
#include <ns3/nstime.h>
#include <ns3/simulator.h>
#include <ns3/string.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/engine/huge_pages.h"
#include "simulator/event_order/event_order.h"
#include "simulator/run/run_scenario.h"
#include "simulator/scenario/load/scenario_loader.h"

namespace railyard {
namespace {

constexpr uint64_t kBatchEvents = 1 << 20;
constexpr uint64_t kDelayRangePs = 2'000'000;

// Delays by a 64-bit linear congruential generator (Knuth, MMIX), the same in every variant.
class Delays {
 public:
  int64_t NextPs() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state_ >> 32) * kDelayRangePs >> 32);
  }

 private:
  uint64_t state_ = 1;
};

// Runs one batch after another on ns3::Simulator.
class Workload {
 public:
  virtual ~Workload() = default;
  void RunBatch() {
    left_ = kBatchEvents;
    ns3::Simulator::Run();
  }

 protected:
  void CountDown() {
    if (--left_ == 0) {
      ns3::Simulator::Stop();
    }
  }
  Delays delays_;

 private:
  uint64_t left_ = 0;
};

class Ns3Workload : public Workload {
 public:
  explicit Ns3Workload(int64_t pending) {
    for (int64_t i = 0; i < pending; ++i) {
      Arm();
    }
  }

 private:
  void Arm() {
    ns3::Simulator::Schedule(ns3::PicoSeconds(static_cast<uint64_t>(delays_.NextPs())),
                             &Ns3Workload::OnEvent, this);
  }
  void OnEvent() {
    Arm();
    CountDown();
  }
};

class FabricWorkload : public Workload {
 public:
  explicit FabricWorkload(int64_t pending) : engine_(FabricSimulatorImpl::Get()) {
    engine_.Register(
        event_order::kArrival, {},
        [](void* self, uint32_t target) { static_cast<FabricWorkload*>(self)->OnEvent(target); },
        this);
    for (int64_t i = 0; i < pending; ++i) {
      Arm(static_cast<uint32_t>(i));
    }
  }

 private:
  void Arm(uint32_t target) {
    engine_.ScheduleFabric(engine_.NowPs() + delays_.NextPs(), event_order::kArrival, target,
                           target);
  }
  void OnEvent(uint32_t target) {
    Arm(target);
    CountDown();
  }
  FabricSimulatorImpl& engine_;
};

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// A child process that runs batches on request and answers with the CPU seconds each took.
class BatchProcess {
 public:
  explicit BatchProcess(const std::function<void(const std::function<void(Workload&)>&)>& set_up) {
    int request[2];
    int answer[2];
    if (pipe(request) != 0 || pipe(answer) != 0) {
      std::perror("pipe");
      std::exit(1);
    }
    child_ = fork();
    if (child_ == 0) {
      close(request[1]);
      set_up([&](Workload& workload) {
        char byte;
        while (read(request[0], &byte, 1) == 1) {
          const double begin = CpuSeconds();
          workload.RunBatch();
          const double seconds = CpuSeconds() - begin;
          if (write(answer[1], &seconds, sizeof seconds) != sizeof seconds) {
            _exit(1);
          }
        }
      });
      _exit(0);
    }
    close(request[0]);
    close(answer[1]);
    request_ = request[1];
    answer_ = answer[0];
  }
  BatchProcess(const BatchProcess&) = delete;
  BatchProcess& operator=(const BatchProcess&) = delete;
  ~BatchProcess() {
    close(request_);
    close(answer_);
    waitpid(child_, nullptr, 0);
  }

  // Negative when the child is gone.
  double RunBatch() {
    double seconds = -1;
    if (write(request_, "", 1) != 1 || read(answer_, &seconds, sizeof seconds) != sizeof seconds) {
      return -1;
    }
    return seconds;
  }

 private:
  pid_t child_ = -1;
  int request_ = -1;
  int answer_ = -1;
};

void Measure(benchmark::State& state,
             const std::function<void(const std::function<void(Workload&)>&)>& set_up) {
  BatchProcess process(set_up);
  process.RunBatch();  // grows every container to its working size
  for (auto _ : state) {
    const double seconds = process.RunBatch();
    if (seconds < 0) {
      state.SkipWithError("the measuring process ended");
      break;
    }
    state.SetIterationTime(seconds);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kBatchEvents));
}

void StockNs3Events(benchmark::State& state) {
  Measure(state, [&](const std::function<void(Workload&)>& serve) {
    ns3::Time::SetResolution(ns3::Time::PS);
    ns3::GlobalValue::Bind("SimulatorImplementationType",
                           ns3::StringValue("ns3::DefaultSimulatorImpl"));
    Ns3Workload workload(state.range(0));
    serve(workload);
  });
}

void Ns3Events(benchmark::State& state) {
  Measure(state, [&](const std::function<void(Workload&)>& serve) {
    InitVirtualTime();
    Ns3Workload workload(state.range(0));
    serve(workload);
  });
}

void FabricEvents(benchmark::State& state) {
  Measure(state, [&](const std::function<void(Workload&)>& serve) {
    InitVirtualTime();
    FabricWorkload workload(state.range(0));
    serve(workload);
  });
}

#define RAILYARD_ENGINE_BENCHMARK(name)                                                            \
  BENCHMARK(name)->ArgName("pending")->Arg(100)->Arg(10'000)->Arg(100'000)->UseManualTime()->Unit( \
      benchmark::kMillisecond)
RAILYARD_ENGINE_BENCHMARK(StockNs3Events);
RAILYARD_ENGINE_BENCHMARK(Ns3Events);
RAILYARD_ENGINE_BENCHMARK(FabricEvents);

struct MeasuredRun {
  uint64_t packet_hops = 0;
  uint64_t events = 0;
  double cpu_seconds = -1;
  uint64_t peak_rss_bytes = 0;
};

MeasuredRun RunShipped(const std::string& name) {
  int answer[2];
  if (pipe(answer) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    PreferHugePages();
    InitVirtualTime();
    Diagnostics diagnostics;
    const auto scenario = LoadScenario(
        std::string(RAILYARD_SOURCE_DIR) + "/simulator/scenarios/" + name + ".textproto", {},
        diagnostics);
    if (scenario == nullptr) _exit(1);
    const RunResult result = RunScenario(*scenario, {.baseline = false});
    const MeasuredRun run = {result.packet_hops, result.events, result.cpu_seconds,
                             result.peak_rss_bytes};
    _exit(write(answer[1], &run, sizeof run) == sizeof run ? 0 : 1);
  }
  close(answer[1]);
  MeasuredRun run;
  if (read(answer[0], &run, sizeof run) != sizeof run) run.cpu_seconds = -1;
  close(answer[0]);
  waitpid(child, nullptr, 0);
  return run;
}

void PacketHops(benchmark::State& state, const std::string& name, uint64_t gpus, uint64_t mib) {
  uint64_t hops = 0;
  uint64_t events = 0;
  for (auto _ : state) {
    const MeasuredRun run = RunShipped(name);
    if (run.cpu_seconds < 0) {
      state.SkipWithError("the run failed");
      break;
    }
    state.SetIterationTime(run.cpu_seconds);
    hops += run.packet_hops;
    events += run.events;
  }
  state.SetItemsProcessed(static_cast<int64_t>(hops));
  // In a ring of eight, seven edges cross two NVLinks each and one crosses four links of the
  // network.
  const double links = (7 * 2 + 4) / 8.0;
  const double packets = 2.0 * static_cast<double>((gpus - 1) * (mib << 20)) / 4096;
  const auto iterations = static_cast<double>(state.iterations());
  state.counters["hops"] = static_cast<double>(hops) / iterations;
  state.counters["over_formula"] = static_cast<double>(hops) / iterations / (packets * links);
  state.counters["events_per_hop"] = static_cast<double>(events) / static_cast<double>(hops);
}
BENCHMARK_CAPTURE(PacketHops, 32, "ring_32_64mib", 32, 64)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(PacketHops, 128, "ring_128_64mib", 128, 64)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(PacketHops, 1024, "ring_1024_256mib", 1024, 256)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

void SetUp(benchmark::State& state) {
  uint64_t peak_rss_bytes = 0;
  for (auto _ : state) {
    const MeasuredRun run = RunShipped("permutation_8192_64kib");
    if (run.cpu_seconds < 0) {
      state.SkipWithError("the run failed");
      break;
    }
    state.SetIterationTime(run.cpu_seconds);
    peak_rss_bytes = run.peak_rss_bytes;
  }
  state.counters["peak_rss_bytes"] = static_cast<double>(peak_rss_bytes);
}
BENCHMARK(SetUp)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace railyard

BENCHMARK_MAIN();
