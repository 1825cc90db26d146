// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/congestion/registered_control.h"

#include <map>
#include <utility>

#include <fmt/format.h>

#include <ns3/string.h>

#include "simulator/diagnostics/check.h"

namespace railyard {
namespace {

struct Registration {
  CongestionNeeds needs;
  QueuePairControlFactory make;
};

std::map<std::string, Registration>& RegisteredControls() {
  static std::map<std::string, Registration> controls;
  return controls;
}

const Registration& Named(const std::string& name) {
  const auto found = RegisteredControls().find(name);
  SIM_CHECK(found != RegisteredControls().end(), "a congestion control that is not registered");
  return found->second;
}

}  // namespace

void RegisterCongestionControl(const std::string& name, const CongestionNeeds& needs,
                               QueuePairControlFactory make) {
  RegisteredControls().insert_or_assign(name, Registration{needs, std::move(make)});
}

std::vector<std::string> RegisteredCongestionControls() {
  std::vector<std::string> names;
  for (const auto& [name, control] : RegisteredControls()) names.push_back(name);
  return names;
}

NS_OBJECT_ENSURE_REGISTERED(RegisteredControl);

ns3::TypeId RegisteredControl::GetTypeId() {
  static ns3::TypeId type_id =
      ns3::TypeId("railyard::RegisteredControl")
          .SetParent<CongestionControl>()
          .SetGroupName("Railyard")
          .AddConstructor<RegisteredControl>()
          .AddAttribute("Name", "The name by which RegisterCongestionControl() added it.",
                        ns3::StringValue(""), ns3::MakeStringAccessor(&RegisteredControl::name_),
                        ns3::MakeStringChecker());
  return type_id;
}

CongestionControl::Needs RegisteredControl::needs() const { return Named(name_).needs; }

std::string RegisteredControl::Contradiction() const {
  if (RegisteredControls().contains(name_)) return {};
  return fmt::format("\"{}\" is not registered", name_);
}

std::string RegisteredControl::WhyNeverReplayed() const {
  return fmt::format("the state of the registered congestion control {} is not known", name_);
}

void RegisteredControl::OnOpen(FlowId queue_pair) {
  controls_.push_back(Named(name_).make(properties(queue_pair)));
  SIM_CHECK(controls_.back() != nullptr, "a registered congestion control made none");
  TakeLimits(queue_pair);
}

void RegisteredControl::OnSend(FlowId queue_pair, int64_t now_ps, uint32_t wire_bytes) {
  controls_[queue_pair]->OnSend(now_ps, wire_bytes);
  TakeLimits(queue_pair);
}

void RegisteredControl::OnAcknowledged(FlowId queue_pair, const AckInfo& ack) {
  controls_[queue_pair]->OnAcknowledged(ack);
  TakeLimits(queue_pair);
}

void RegisteredControl::OnCnp(FlowId queue_pair, int64_t now_ps) {
  controls_[queue_pair]->OnCnp(now_ps);
  TakeLimits(queue_pair);
}

void RegisteredControl::OnNack(FlowId queue_pair, int64_t now_ps) {
  controls_[queue_pair]->OnNack(now_ps);
  TakeLimits(queue_pair);
}

void RegisteredControl::OnTimeout(FlowId queue_pair, int64_t now_ps) {
  controls_[queue_pair]->OnTimeout(now_ps);
  TakeLimits(queue_pair);
}

}  // namespace railyard
