// SPDX-License-Identifier: GPL-2.0-only
// Sets the attributes of a switch, from which FabricNetwork::Configure() reads its buffer.
#pragma once

#include <ns3/boolean.h>
#include <ns3/double.h>
#include <ns3/uinteger.h>

#include "simulator/fabric/port/switch.h"
#include "simulator/fabric/tables/buffer_settings.h"

namespace railyard::testing {

inline void SetBuffer(Switch& model, const BufferSettings& settings) {
  model.SetAttribute("BufferBytes", ns3::UintegerValue(settings.buffer_bytes));
  model.SetAttribute("Alpha", ns3::DoubleValue(settings.alpha));
  model.SetAttribute("LosslessData", ns3::BooleanValue(settings.lossless_data));
  model.SetAttribute("HeadroomBytes", ns3::UintegerValue(settings.headroom_bytes));
  model.SetAttribute("HeadroomScale", ns3::DoubleValue(settings.headroom_scale));
  model.SetAttribute("MtuBytes", ns3::UintegerValue(settings.mtu_bytes));
  model.SetAttribute("XonOffsetBytes", ns3::UintegerValue(settings.xon_offset_bytes));
  model.SetAttribute("EcnEnabled", ns3::BooleanValue(settings.ecn_enabled));
  model.SetAttribute("EcnKminBytes", ns3::UintegerValue(settings.ecn_kmin_bytes));
  model.SetAttribute("EcnKmaxBytes", ns3::UintegerValue(settings.ecn_kmax_bytes));
  model.SetAttribute("EcnPmax", ns3::DoubleValue(settings.ecn_pmax));
}

}  // namespace railyard::testing
