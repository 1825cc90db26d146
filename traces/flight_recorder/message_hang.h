// SPDX-License-Identifier: GPL-2.0-only
// Finds the Sends and Recvs in which a job hung: their peers have not come to them, or move other
// elements.
#pragma once

#include "traces/flight_recorder/hang.h"

namespace railyard {

// Adds the hangs to `search`, at most one for each pair of ranks and direction. The first call of a
// pair that the GPU has begun and not finished is compared with the peer's call in its place; if
// the dumps are not whole, with its first unfinished one. Where no call has begun, one hangs if the
// peer has fewer and both dumps are whole: PyTorch never updates the state of calls in a batch. The
// peer gets the call that it did not make.
void PlaceMessageHangs(CapturedJob& job, const UnfinishedWork& unfinished, HangSearch& search,
                       ImportReport& report);

}  // namespace railyard
