// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <ns3/object.h>

#include "simulator/fabric/tables/buffer_settings.h"

namespace railyard {

// Presents a packet switch, which has output queues in one shared buffer, pause frames and marking,
// as an ns-3 object. FabricNetwork makes one for every switch of a fabric and keeps the switch's
// state in plain records; this object holds only its attributes. They are read when the network is
// built and by FabricNetwork::Configure().
class Switch : public ns3::Object {
 public:
  static ns3::TypeId GetTypeId();

  const BufferSettings& buffer_settings() const { return buffer_; }

 private:
  // ns-3's attributes are bound to these.
  template <auto kField, typename T>
  void Set(T value) {
    buffer_.*kField = value;
  }
  template <auto kField, typename T>
  T Get() const {
    return buffer_.*kField;
  }

  BufferSettings buffer_;
};

}  // namespace railyard
