// SPDX-License-Identifier: GPL-2.0-only
#pragma once

namespace railyard {

// Sets ns-3's time resolution to picoseconds and FabricSimulatorImpl as its simulator. Must be
// called once per process, before anything else uses ns-3's Simulator or Time: converting a `Time`
// that was built earlier takes 792 ns, and an existing simulator cannot be replaced: if there is
// one, it throws EnvironmentError. Further calls have no effect.
void InitVirtualTime();

}  // namespace railyard
