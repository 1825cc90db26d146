// SPDX-License-Identifier: GPL-2.0-only
#pragma once

namespace railyard {

// Sets ns-3's time to picoseconds and binds FabricSimulatorImpl as its simulator, once per process
// and before anything else touches ns-3's Simulator or Time: a `Time` built earlier is converted at
// 792 ns each, and a simulator that exists already cannot be replaced (checked). Calling it again
// is a no-op.
void InitVirtualTime();

}  // namespace railyard
