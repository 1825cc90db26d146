// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/congestion/congestion_control_base.h"

namespace railyard {

NS_OBJECT_ENSURE_REGISTERED(CongestionControl);

ns3::TypeId CongestionControl::GetTypeId() {
  static ns3::TypeId type_id =
      ns3::TypeId("railyard::CongestionControl").SetParent<ns3::Object>().SetGroupName("Railyard");
  return type_id;
}

void CongestionControl::Open(const ControlledQueuePair& queue_pair) {
  properties_.push_back(queue_pair);
  limits_.emplace_back();
  OnOpen(FlowId{limits_.size() - 1});
}

void CongestionControl::OnSend(FlowId /*queue_pair*/, int64_t /*now_ps*/, uint32_t /*wire_bytes*/) {
}
void CongestionControl::OnAcknowledged(FlowId /*queue_pair*/, const AckInfo& /*ack*/) {}
void CongestionControl::OnCnp(FlowId /*queue_pair*/, int64_t /*now_ps*/) {}
void CongestionControl::OnNack(FlowId /*queue_pair*/, int64_t /*now_ps*/) {}
void CongestionControl::OnTimeout(FlowId /*queue_pair*/, int64_t /*now_ps*/) {}

}  // namespace railyard
