// SPDX-License-Identifier: GPL-2.0-only
// Lets code outside the simulation observe it while it runs, between two events. A process runs one
// simulation at a time, so there is one observer.
#pragma once

#include <functional>

namespace railyard {

// Sets the observer, a function that is called on the simulation's thread soon after each
// RequestLook(). The call is not an event: it is not counted, and it must not schedule any. If it
// returns true the simulation ends, and it has called ns3::Simulator::Stop(). An empty `look`
// removes the observer.
void SetLook(std::function<bool()> look);

// Requests a call of the observer. Any thread and any signal handler may call this.
void RequestLook();

// Calls the observer if that was requested, and returns whether the simulation is to end, which it
// does after the event. Handlers of events that take long call this.
bool LookIfRequested();

}  // namespace railyard
