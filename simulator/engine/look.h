// SPDX-License-Identifier: GPL-2.0-only
// Looking at a simulation from outside while it runs, between two events. There is one simulation
// per process, so there is one look.
#pragma once

#include <functional>

namespace railyard {

// Has `look` called on the simulation's thread soon after each RequestLook(). It is no event:
// nobody counts it, and it must not schedule any. Where it returns true the simulation is to end,
// and it has called ns3::Simulator::Stop(). Empty: nobody looks.
void SetLook(std::function<bool()> look);

// May be called from any thread, and from signal handlers.
void RequestLook();

// For events that take long: looks if that was requested, and returns whether the simulation is to
// end, which it does after the event.
bool LookIfRequested();

}  // namespace railyard
