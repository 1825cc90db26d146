// SPDX-License-Identifier: GPL-2.0-only
// Identifies what a job consists of, and its calls.
#pragma once

#include "simulator/units/identifier.h"

namespace railyard {

// Indexes Trace::communicators and Job::communicators. A program's own number of a communicator is
// another number (Trace::CommunicatorOf converts it).
using CommunicatorIndex = Identifier<struct CommunicatorTag>;
// Indexes Job::collectives and the tables of a run that have an entry for each.
using CollectiveIndex = Identifier<struct CollectiveTag>;
// Indexes Job::parts: the jobs that share a fabric.
using PartIndex = Identifier<struct PartTag>;

// Numbers the operations of all ranks, computation included (CallTable); events are in its order.
using CallNumber = Identifier<struct CallNumberTag>;
// Indexes StreamRunner::running(): a call that has begun and not ended. It is another call's later.
using RunningIndex = Identifier<struct RunningTag>;

}  // namespace railyard
