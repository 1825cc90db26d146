// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

// The first version that has NVLS, in one server: 2.17 (NVIDIA/nccl issue 807).
inline constexpr uint32_t kFirstNvlsVersion = 21700;
// The first version that has NVLS over several servers, with IB SHARP or as NVLSTree: 2.18 ("Add
// inter-node algorithms for NVLink SHARP" in the release notes of 2.18.1).
inline constexpr uint32_t kFirstNvlsOverServersVersion = 21800;
// The first version whose NVLSTree has chunks of at most 64 KiB on four and more nodes: 2.19
// (src/enqueue.cc; NVIDIA/nccl pull request 1112).
inline constexpr uint32_t kFirstNvlsTreeLimitVersion = 21900;
// The first version that does not reduce the chunks of trees with Simple: 2.20
// (computeCollChunkInfo, src/enqueue.cc; 2.19.3 does).
inline constexpr uint32_t kFirstWholeTreeChunksVersion = 22000;
// The first version that has NCCL_NVLS_CHUNKSIZE, which limits the chunks of NVLSTree: 2.21.
// Before, they are those of Simple.
inline constexpr uint32_t kFirstNvlsChunkSizeVersion = 22100;
// The first version that obeys NCCL_PROTO where it replaces NCCL_ALGO's algorithms by rings: 2.22
// (NVIDIA/nccl issue 1304).
inline constexpr uint32_t kFirstProtoForRingsVersion = 22200;
// The first version that has PAT and NCCL_PAT_ENABLE, encoded as by ncclGetVersion: 2.23.
inline constexpr uint32_t kFirstPatVersion = 22300;
// The first version that fails where NCCL_ALGO and NCCL_PROTO leave a collective nothing, and in
// which both have lists by collective: 2.24 ("NCCL_ALGO/NCCL_PROTO strict enforcement" in the
// release notes of 2.24.3).
inline constexpr uint32_t kFirstStrictChoiceVersion = 22400;
// The first version for GPUs of compute capability 10: 2.25.
inline constexpr uint32_t kFirstBlackwellVersion = 22500;
// The first version that has fewer NVLS channels on Blackwell in one NVLink domain than over
// several: 2.27. In 2.26.2 they are the same (NVLS_NCHANNELS_SM100, src/transport/nvls.cc).
inline constexpr uint32_t kFirstFewerNvlsChannelsVersion = 22700;
// The first version that counts the parts of a message as if it went by Simple, before it chooses
// the protocol: 2.29 (addP2pToPlan, src/enqueue.cc).
inline constexpr uint32_t kFirstPartsBeforeProtocolVersion = 22900;
// The first version that tunes NVLSTree for Blackwell by nodes, GPUs and NICs: 2.30.
inline constexpr uint32_t kFirstNvlsTreeTuningVersion = 23000;
// The first version of which only the tuner's rules are modelled: 2.31.
inline constexpr uint32_t kFirstPartlyKnownVersion = 23100;
// The first version whose tuner has separate rules for rings and trees on Blackwell: 2.32.
inline constexpr uint32_t kFirstBlackwellPlateauVersion = 23200;
// The first version whose rules are not modelled: 2.33.
inline constexpr uint32_t kFirstUnknownVersion = 23300;

}  // namespace railyard
