// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/congestion/no_congestion_control.h"

namespace railyard {

NS_OBJECT_ENSURE_REGISTERED(NoCongestionControl);

ns3::TypeId NoCongestionControl::GetTypeId() {
  static ns3::TypeId type_id = ns3::TypeId("railyard::NoCongestionControl")
                                   .SetParent<CongestionControl>()
                                   .SetGroupName("Railyard")
                                   .AddConstructor<NoCongestionControl>();
  return type_id;
}

}  // namespace railyard
