// SPDX-License-Identifier: GPL-2.0-only
// Rings over GPUs that NVLink joins in pairs, without NVSwitches: a DGX-1's hybrid cube mesh.
#pragma once

#include <cstdint>
#include <vector>

namespace railyard {

// Returns as many rings through all GPUs as there are, each of which uses a separate NVLink for
// every hop and begins with GPU 0; empty if there is no ring. lanes[a][b] is the number of NVLinks
// from GPU a to GPU b; there are as many back. Rings come in both directions: first those over the
// widest bundles, as often as they fit, then as often the other way round, which is the order in
// which NCCL lists them (src/graph/search.cc). It is an assumption that every ring has its reverse.
std::vector<std::vector<uint32_t>> FindMeshRings(const std::vector<std::vector<uint32_t>>& lanes);

}  // namespace railyard
