// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>

#include "simulator/text_proto/text_proto.h"
#include "topologies/platforms/platform.h"

namespace railyard {

// `cursor` is on a railyard.protos.Platform. A field that cannot be read is a finding at its place
// and keeps a DGX H100's value.
Platform ReadPlatform(const ProtoCursor& cursor, std::string name, Diagnostics& diagnostics);

}  // namespace railyard
