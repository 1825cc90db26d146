// SPDX-License-Identifier: GPL-2.0-only
// Finds rings over GPUs that NVLink joins in pairs, without NVSwitches: a DGX-1's hybrid cube mesh.
#pragma once

#include <cstdint>
#include <vector>

namespace railyard {

// Returns as many rings through all GPUs as possible, each of which uses a separate NVLink for
// every hop and begins with GPU 0; empty if there is no ring. lanes[a][b] is the number of NVLinks
// from GPU a to GPU b and equals lanes[b][a]. The first half are rings over the widest bundles, as
// often as they fit; the second half are the same rings reversed. This is the order in which NCCL
// lists them (src/graph/search.cc). It is an assumption that every ring has its reverse.
std::vector<std::vector<uint32_t>> FindMeshRings(const std::vector<std::vector<uint32_t>>& lanes);

}  // namespace railyard
