// SPDX-License-Identifier: GPL-2.0-only
// Replaces the global operator new, hence an executable of its own.
#include <cstdint>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/event_order/event_order.h"

namespace {
uint64_t allocations = 0;
}  // namespace

// Not inlined: GCC 12 would look through one of them but not its counterpart, and call them
// mismatched.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size)) {
    return memory;
  }
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace railyard {
namespace {

// Re-arms each event with a delay that visits the open bucket, the slots and the far heap.
struct Rearming {
  FabricSimulatorImpl& engine;
  uint64_t events_left = 0;
  uint64_t draw = 1;

  void OnEvent(uint32_t target) {
    draw = draw * 6364136223846793005u + 1442695040888963407u;
    const uint64_t range_ps = draw % 16 == 0 ? 50'000'000 : draw % 16 == 1 ? 100 : 2'000'000;
    engine.ScheduleFabric(engine.NowPs() + static_cast<int64_t>((draw >> 32) * range_ps >> 32),
                          event_order::kArrival, target, target);
    if (--events_left == 0) {
      engine.Stop();
    }
  }
};

TEST(EngineAllocationTest, FabricEventsAllocateNothingOnceTheWheelHasGrown) {
  FabricSimulatorImpl& engine = FabricSimulatorImpl::Get();
  Rearming rearming{engine};
  engine.Register(
      event_order::kArrival, {},
      [](void* context, uint32_t target) { static_cast<Rearming*>(context)->OnEvent(target); },
      &rearming);
  for (uint32_t target = 0; target < 1'000; ++target) {
    engine.ScheduleFabric(target, event_order::kArrival, target, target);
  }
  rearming.events_left = 1'000'000;
  engine.Run();
  const uint64_t allocations_before = allocations;
  rearming.events_left = 1'000'000;
  engine.Run();
  EXPECT_EQ(allocations - allocations_before, 0u);
  ns3::Simulator::Destroy();
}

}  // namespace
}  // namespace railyard
