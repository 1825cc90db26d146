// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>
#include <vector>

#include "simulator/diagnostics/names.h"
#include "simulator/scenario/schema/scenario.pb.h"

namespace railyard {

// Returns the alternatives of `congestion_control` for RDMA, as findings list them.
inline std::string RdmaControlNames() {
  std::vector<std::string> names;
  const google::protobuf::Descriptor& type = *protos::CongestionControl::descriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    const bool is_built_in = field.message_type() != nullptr;
    if (is_built_in && field.name() != "cubic") names.push_back(field.name());
  }
  return JoinAlternatives(names);
}

}  // namespace railyard
