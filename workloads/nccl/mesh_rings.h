// SPDX-License-Identifier: GPL-2.0-only
// Rings over GPUs that NVLink joins in pairs, without NVSwitches: a DGX-1's hybrid cube mesh.
#pragma once

#include <cstdint>
#include <vector>

namespace railyard {

// lanes[a][b]: NVLinks from GPU a to GPU b; as many back. As many rings through all GPUs as there
// are, of which each takes an NVLink of its own for every hop; each begins with GPU 0. Rings come
// in both directions: first those over the widest bundles, as often as they fit, then as often the
// other way round, which is the order in which NCCL lists them (src/graph/search.cc). That every
// ring has its reverse is an assumption. Empty: there is no ring.
std::vector<std::vector<uint32_t>> FindMeshRings(const std::vector<std::vector<uint32_t>>& lanes);

}  // namespace railyard
