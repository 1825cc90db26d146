// SPDX-License-Identifier: GPL-2.0-only
// Checks the conditions that every trace must satisfy before any other part of Railyard uses it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"

namespace railyard {

// The largest number of tokens of one hop of an expert kernel's exchange.
inline constexpr uint64_t kExpertCallTokensMax = 1u << 20;

inline constexpr uint32_t kLossTolerancePpmMax = 999'999;  // some data must arrive
// Converts a share to the millionths of TraceOperation, rounded to nearest; nullopt unless it is at
// least 0 and below 1. OutOfLossTolerance is the error message for that case.
std::optional<uint32_t> LossTolerancePpm(double share);
std::string OutOfLossTolerance(double share);
// Returns true for the kinds whose TraceOperation::root means something.
inline bool HasRoot(CollectiveKind kind) {
  return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce ||
         kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
}

inline constexpr uint32_t kTraceRanksMax = 1'000'000;
inline constexpr uint32_t kTraceCommunicatorsMax = 4'000'000;
inline constexpr uint64_t kTraceMembersMax = 64'000'000;  // communicator ranks, summed
// The largest size: larger than any buffer of a GPU, but small enough that sums over a job fit 64
// bits.
inline constexpr uint64_t kOperationBytesMax = uint64_t{1} << 50;
inline constexpr uint32_t kStreamsPerRankMax = 65'536;

// Checks that indices and numbers of communicators are in range, ranks are below rank_count, no
// rank occurs twice in a communicator, callers are members, roots and peers are in range, sizes are
// within kOperationBytesMax, and gaps are not negative. Errors name `file` (line and column 0) and
// the rank and operation; after 20 only a count of the rest follows. BuildJob checks whether calls
// of different ranks match. Returns true if there are no errors.
bool CheckTrace(const Trace& trace, const std::string& file, Diagnostics& diagnostics);

}  // namespace railyard
