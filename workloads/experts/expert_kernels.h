// SPDX-License-Identifier: GPL-2.0-only
// Holds constants of the kernels that exchange the tokens of experts, from their public code:
// DeepEP (github.com/deepseek-ai/DeepEP, v1.2.1) and its branch hybrid-ep.
// docs/model/expert-kernels.md describes them.
#pragma once

#include <cstdint>
#include <span>

#include "traces/trace/trace.h"
#include "workloads/collectives/schedule.h"

namespace railyard {

// Holds the number of tokens in one message, and of messages that may be in flight on one
// connection.
struct TokenChunks {
  uint32_t nvlink_tokens = 1;
  uint32_t nvlink_in_flight = 8;
  uint32_t network_tokens = 1;
  uint32_t network_in_flight = 8;
};
// Returns the chunks of a dispatch or combine over `ranks` ranks. DeepEP defines them for some
// numbers of ranks only (DeepEpRanks()); for other numbers, those of the next larger one apply.
TokenChunks ChunksOf(ExpertKernel kernel, bool combines, uint32_t ranks);

// Returns the tokens that a relay of a dispatch has for one GPU of its server when `network_tokens`
// have arrived, and which it passes on without waiting for more, up to its chunk. Two experts of a
// token are assumed to be on the server, as with DeepEP's settings: eight experts on four servers.
uint32_t ForwardedTokens(uint32_t network_tokens, uint32_t server_ranks);

// Returns the numbers of ranks for which DeepEP has a configuration, ascending.
std::span<const uint32_t> DeepEpRanks();

// Describes a token: `hidden` values of `element_bytes` each. FP8 has a scale of 4 bytes for every
// 128 of them.
struct TokenShape {
  uint32_t hidden = 0;
  uint32_t element_bytes = 0;
  uint32_t per_token = 0;       // its experts
  uint32_t server_experts = 0;  // that all ranks of what the kernel takes for a server have
};
// Returns the bytes of one token as a kernel sends it, with its metadata: the list of its experts
// and weights, or with hybrid-ep the weights of all experts of the server.
uint32_t TokenBytes(ExpertKernel kernel, bool combines, const TokenShape& token);

// Holds the time that a channel of a normal kernel takes, which has one SM or, with DeepEP, two:
// once for a token that a relay passes on, or whose sum it makes, and for each of its copies or
// terms. `usual_ns` is for a copy or term, with its share of the first, where tokens are as in the
// table that they follow from.
struct TokenTime {
  double once_ns = 0;
  double copy_ns = 0;
  double usual_ns = 0;
};
// Precondition: a normal kernel.
TokenTime TokenTimeOf(const ExpertCall& call);

// Returns the use of the connection of a Send or Recv: NCCL's own, without a kernel; over NVLink,
// for a hop within what the kernel takes for a server; or between NICs.
ConnectionUse ConnectionUseOf(const ExpertCall& call);

// The default numbers of SMs of DeepEP and of hybrid-ep.
inline constexpr uint32_t kDeepEpSms = 24;
inline constexpr uint32_t kHybridEpSms = 16;
// The number of consecutive ranks that DeepEP assumes to be joined by NVLink: NUM_MAX_NVL_PEERS
// (csrc/kernels/configs.cuh).
inline constexpr uint32_t kDeepEpServerRanks = 8;
// The largest number of channels of a schedule, over all servers.
inline constexpr uint32_t kExpertChannelsMax = 256;

}  // namespace railyard
