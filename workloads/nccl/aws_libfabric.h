// SPDX-License-Identifier: GPL-2.0-only
// Models Amazon's network plug-in for NCCL on servers with EFA (github.com/aws/aws-ofi-nccl:
// src/platform-aws.cpp, include/nccl_ofi_param.h, src/nccl_ofi_scheduler.cpp, 2025). The plug-in is
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

// Returns the time that EFA needs from memory to memory for a message of 256 bytes, libfabric
// included: half of a round trip of fi_pingpong. The value of p4de is used before Hopper, and that
// of p5 from Hopper on; for other instances they are an assumption.
double EfaLatencyUs(GpuGeneration generation);

// Returns the time that the host needs to take note of one completion of EFA. Each stripe of a
// message and each clear-to-send has a completion at both of its ends.
double EfaCompletionUs();

// States how the plug-in divides messages over the NICs of a GPU.
struct AwsLibfabricStripes {
  uint64_t bytes = 0;  // messages of up to this size are not divided
  // If true, larger ones are divided over all NICs; else over as many as have a stripe of this
  // size.
  bool are_on_all_rails = false;
};
// Returns how the plug-in that is as old as this version of NCCL divides messages.
AwsLibfabricStripes AwsLibfabricStripesOf(uint32_t nccl_version);

}  // namespace railyard
