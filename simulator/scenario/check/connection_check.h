// SPDX-License-Identifier: GPL-2.0-only
// Checks that the fabric has a path between all GPUs that a job will connect.
#pragma once

#include "simulator/scenario/schema/loaded_workload.h"
#include "simulator/text_proto/text_proto.h"
#include "simulator/transport/nic/nic_settings.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/layout/communicator_planners.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

// Examines every connection that the job's rings, sends and receives open, over the same route as
// in the replay: NVSwitches inside a server, NIC to NIC between servers, PXN's relays included. A
// ring counts as a whole, as NCCL connects it (ncclTransportRingConnect). A connection without a
// path is an error (required_paths.h); the search stops at kUnjoinedCountedMax. If every rank
// exchanges data with every other, the switches are examined instead of the pairs. Returns the
// number of connections of Sends, Recvs and exchanges, or a lower bound. Preconditions: the job has
// no more ranks than the fabric has GPUs; `planners` are those of its communicators.
uint64_t CheckConnections(const ProtoCursor& scenario, const FabricGraph& graph,
                          const LoadedWorkload& workload, const NcclSettings& nccl,
                          const CommunicatorPlanners& planners, const NicSettings& nic,
                          Diagnostics& diagnostics);

}  // namespace railyard
