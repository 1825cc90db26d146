// SPDX-License-Identifier: GPL-2.0-only
// What Amazon's network plug-in for NCCL does on servers with EFA (github.com/aws/aws-ofi-nccl:
// src/platform-aws.cpp, include/nccl_ofi_param.h, src/tuner/nccl_ofi_model.c, 2025). The plug-in is
// taken to be of the time of the job's NCCL. Its own tuner, a table of regions by nodes and size,
// is left out: ALGO and PROTO state what it chooses.
#pragma once

#include "traces/trace/trace.h"
#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

// Of NCCL's variables those that the plug-in sets where the user has not: `settings` has its
// version and none of the user's others yet.
void ApplyAwsLibfabric(NcclSettings& settings);

// As NcclSettings::protocols. Before Hopper (p4d, p4de) EFA guarantees no order of the bytes that
// it delivers, on which LL and LL128 depend.
uint32_t AwsLibfabricProtocols(GpuGeneration generation);

// What the plug-in tells NCCL's tuner of its NICs: p4d, p4de, p5 and p5e; later instances. Of p5en,
// which has H200 as p5e has, the lower one holds too: OFI_NCCL_NET_LATENCY states it.
double AwsLibfabricNetLatencyUs(GpuGeneration generation);

// A step between servers, by the model of its tuner: EFA's latency, and with Simple the
// completion's way through the device, libfabric and the proxy. Of p5; of other instances assumed.
double AwsLibfabricStepUs(Protocol protocol);

}  // namespace railyard
