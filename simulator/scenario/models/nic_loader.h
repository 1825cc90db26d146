// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/text_proto/text_proto.h"
#include "simulator/transport/nic/nic_settings.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

// Loads the block `nic` without the retransmission, which `nccl` states. `net` is the result of
// LoadNet(): TCP streams and EFA have other defaults. `scenario` is a cursor on the whole scenario;
// an absent block means the defaults.
NicSettings LoadNic(const ProtoCursor& scenario, NetPlugin net, Diagnostics& diagnostics);
// Loads the settings of NICs that differ from `common`, which are for RDMA, in the fields of `nic`.
NicSettings LoadNicVariant(const ProtoCursor& nic, const NicSettings& common,
                           Diagnostics& diagnostics);

}  // namespace railyard
