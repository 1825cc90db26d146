// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>

#include "simulator/text_proto/text_proto.h"
#include "topologies/platforms/platform.h"

namespace railyard {

// Reads the railyard.protos.Platform at `cursor`. A field that cannot be read is a finding at its
// place and keeps the value of a DGX H100.
Platform ReadPlatform(const ProtoCursor& cursor, std::string name, Diagnostics& diagnostics);

}  // namespace railyard
