// SPDX-License-Identifier: GPL-2.0-only
// What every trace must satisfy before anything else of Railyard sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"

namespace railyard {

inline constexpr uint32_t kLossTolerancePpmMax = 999'999;  // something must arrive
// A share as TraceOperation has it, rounded to the nearest millionth; nullopt where it is none of 0
// to below 1. What is wrong then, as a message for people.
std::optional<uint32_t> LossTolerancePpm(double share);
std::string OutOfLossTolerance(double share);
inline constexpr uint32_t kTraceRanksMax = 1'000'000;
inline constexpr uint32_t kTraceCommunicatorsMax = 4'000'000;
inline constexpr uint64_t kTraceMembersMax = 64'000'000;  // communicator ranks, summed
// Larger than any buffer a GPU can hold, small enough that sums over a job fit 64 bits.
inline constexpr uint64_t kOperationBytesMax = uint64_t{1} << 50;
inline constexpr uint32_t kStreamsPerRankMax = 65'536;

// Indices and numbers of communicators in range, ranks below rank_count, no rank twice in a
// communicator, callers members of theirs, roots and peers in range, sizes within
// kOperationBytesMax, gaps not negative. Errors name `file` (line and column 0) and the rank and
// operation; after 20 only a count of the rest follows. Whether calls of different ranks fit
// together is BuildJob's to say. True without errors.
bool CheckTrace(const Trace& trace, const std::string& file, Diagnostics& diagnostics);

}  // namespace railyard
