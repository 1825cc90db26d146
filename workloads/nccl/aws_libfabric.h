// SPDX-License-Identifier: GPL-2.0-only
// Models Amazon's network plug-in for NCCL on servers with EFA (github.com/aws/aws-ofi-nccl:
// src/platform-aws.cpp, include/nccl_ofi_param.h, src/tuner/nccl_ofi_model.c, 2025). The plug-in is
// assumed to be as old as the job's NCCL. Its tuner, a table of regions by nodes and size, is left
// out; ALGO and PROTO can force its choices.
#pragma once

#include "traces/trace/trace.h"
#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

// Sets the NCCL variables that the plug-in sets unless the user has set them. Precondition: the
// version of `settings` is set, and the user's other variables are not applied yet.
void ApplyAwsLibfabric(NcclSettings& settings);

// Returns a mask like NcclSettings::protocols. Before Hopper (p4d, p4de) EFA guarantees no order of
// the bytes that it delivers, on which LL and LL128 depend.
uint32_t AwsLibfabricProtocols(GpuGeneration generation);

// Returns the latency that the plug-in reports to NCCL's tuner: one value for p4d, p4de, p5 and
// p5e, one for later instances. For p5en the plug-in reports the value of later instances too, but
// its GPUs are H200 as on p5e, so OFI_NCCL_NET_LATENCY must state it.
double AwsLibfabricNetLatencyUs(GpuGeneration generation);

// Returns the time of a step between servers in the model of the plug-in's tuner: EFA's latency,
// and with Simple also the time for the completion to pass through the device, libfabric and the
// proxy. The values are those of p5; for other instances they are an assumption.
double AwsLibfabricStepUs(Protocol protocol);

}  // namespace railyard
