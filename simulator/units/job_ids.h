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
// Identifies a rank among those of all jobs of a run, i.e. one process with its GPU. The rank
// within a communicator is another number (RankIndex; Job::CommunicatorRank converts it).
using GlobalRank = Identifier<struct GlobalRankTag>;
// Indexes Job::parts: the jobs that share a fabric.
using PartIndex = Identifier<struct PartTag>;

// Numbers the operations of all ranks, computation included (CallTable); events are in its order.
using CallNumber = Identifier<struct CallNumberTag>;
// Indexes StreamRunner::running(): a call that has begun and not ended. It is another call's later.
using RunningIndex = Identifier<struct RunningTag>;

}  // namespace railyard
