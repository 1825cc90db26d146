// SPDX-License-Identifier: GPL-2.0-only
// Defines the rules by which AMD's RCCL, a port of NCCL, differs from NCCL on servers with eight
// MI300X (gfx942) that are all joined to each other. They follow RCCL's source at ROCm 6.4 to 7
// (github.com/ROCm/rccl: src/graph/rome_models.cc, models 79 and 81; src/graph/tuning.cc,
// tuning_model_5; src/graph/topo.h; rcclUpdateCollectiveProtocol and rcclSetPxn, src/rccl_wrap.cc).
// Its MSCCL programs and its direct AllGather, which replace rings below some MiB, are not
// modelled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/trace/trace.h"
#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_settings.h"
#include "workloads/nccl/nccl_tuner.h"

namespace railyard {

// Returns whether RCCL's rings for MI300X apply: every node has eight GPUs, all joined.
bool HasRcclRings(const CommunicatorLayout& layout);

// Returns the orders of a node's GPUs, by local index, on RCCL's rings before it duplicates them.
// One server has seven rings and the same seven reversed. Several servers have eight rings, each
// listed twice, which enter a server by the first GPU's NIC and leave it by the last GPU's.
std::vector<std::vector<uint32_t>> RcclRings(uint32_t node_count);

// Returns the settings with RCCL's defaults for MI300X in place of variables that the user did not
// set: without PXN and with chunks of 128 KiB below 64 ranks, with PXN and chunks of 512 KiB from
// there on.
NcclSettings WithRcclDefaults(NcclSettings settings, size_t rank_count);

// Returns the time that RCCL's tuner expects of a call; nullopt if it has no such choice. LL128 is
// off on MI300X.
std::optional<double> RcclTimeUs(const TunedCall& call, const TunedCommunicator& communicator,
                                 const TunerPlatform& platform, Algorithm algorithm,
                                 Protocol protocol);

// Returns the protocol that RCCL chooses by size alone; nullopt if the tuner decides.
std::optional<Protocol> RcclProtocol(const TunedCall& call, const TunedCommunicator& communicator);

}  // namespace railyard
