// SPDX-License-Identifier: GPL-2.0-only
// Finds the Sends and Recvs in which a job hung: their peers have not called the counterpart, or
// have called it with another number of elements.
#pragma once

#include "traces/flight_recorder/hang.h"

namespace railyard {

// Adds the hangs to `search`, at most one for each pair of ranks and direction. The first call of a
// pair that the GPU has begun and not finished is compared with the peer's call of the same number;
// if a dump is not whole, with the peer's first unfinished call. Where no call has begun, a call
// hangs if the peer has fewer calls and both dumps are whole: PyTorch never updates the state of
// calls in a batch. The call that a peer is missing is added to the peer's calls, so that the job
// hangs in the simulation as well.
void PlaceMessageHangs(CapturedJob& job, const UnfinishedWork& unfinished, HangSearch& search,
                       ImportReport& report);

}  // namespace railyard
