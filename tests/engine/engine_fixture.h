// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <ostream>
#include <vector>

#include <gtest/gtest.h>

#include <ns3/simulator.h>

#include "simulator/engine/fabric_simulator_impl.h"

namespace railyard::testing {

// A fresh engine per test. Every fabric event run is written down, then handed to on_event.
class EngineFixture : public ::testing::Test {
 protected:
  static constexpr int64_t kUs = 1'000'000;
  static constexpr int64_t kSecond = 1'000'000'000'000;

  struct Ran {
    int64_t time_ps;
    EventClass event_class;
    uint32_t target;
    bool operator==(const Ran&) const = default;
    friend void PrintTo(const Ran& ran, std::ostream* out) {
      *out << ran.time_ps << " ps class " << static_cast<int>(ran.event_class) << " target "
           << ran.target;
    }
  };

  EngineFixture() { Connect(); }
  ~EngineFixture() override { ns3::Simulator::Destroy(); }

  void Connect() {
    engine_ = &FabricSimulatorImpl::Get();
    for (int i = 0; i < static_cast<int>(EventClass::kNs3); ++i) {
      classes_[static_cast<size_t>(i)] = {this, static_cast<EventClass>(i)};
      engine_->Register(static_cast<EventClass>(i), {.name = "events"}, &EngineFixture::OnEvent,
                        &classes_[static_cast<size_t>(i)]);
    }
  }
  FabricSimulatorImpl& engine() { return *engine_; }

  std::vector<uint32_t> Targets() const {
    std::vector<uint32_t> targets;
    for (const Ran& ran : ran_) {
      targets.push_back(ran.target);
    }
    return targets;
  }

  std::vector<Ran> ran_;
  std::function<void(const Ran&)> on_event_ = [](const Ran&) {};

 private:
  struct ClassContext {
    EngineFixture* test;
    EventClass event_class;
  };
  static void OnEvent(void* context, uint32_t target) {
    const auto& of = *static_cast<const ClassContext*>(context);
    of.test->ran_.push_back({of.test->engine().NowPs(), of.event_class, target});
    of.test->on_event_(of.test->ran_.back());
  }

  FabricSimulatorImpl* engine_ = nullptr;
  std::array<ClassContext, kEventClassCount> classes_;
};

}  // namespace railyard::testing
