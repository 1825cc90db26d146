// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

// The packet buffer of a switch, or of a NIC towards its host, and what it does as it fills. One
// memory is shared by all ports; how much of it one port may take depends on what is left (dynamic
// threshold: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).
struct BufferSettings {
  // Shared by all ports, headroom not included. Spectrum-3 and Tomahawk 3 (12.8 Tb/s) have 64 MB.
  uint64_t buffer_bytes = 64'000'000;
  // A port may take alpha times what is left. Chips offer powers of two; 1/8 is the shift of 3 of
  // the HPCC authors' switch (alibaba-edu/High-Precision-Congestion-Control, switch-mmu.cc).
  double alpha = 0.125;
  // True: what arrives is kept, and pause frames (PFC, IEEE 802.1Qbb) stop the sender of an ingress
  // port that took its share. False: what finds its egress queue above its share is dropped.
  bool lossless_data = true;
  // Per ingress port, for what still arrives after the pause frame. 0: what cable, pipeline and
  // frames need in the worst case, computed.
  uint64_t headroom_bytes = 0;
  // Times that; 0 takes the headroom away.
  double headroom_scale = 1;
  // Largest packet on the wire that the computed headroom is for: MTU 9,216, the usual jumbo size.
  uint32_t mtu_bytes = 9'216;
  // The bytes that an ingress port falls below the threshold before its sender goes on:
  // resume_offset of the same switch-mmu.cc.
  uint64_t xon_offset_bytes = 3'072;

  // Marking (RED on the queue of the moment): from kmin up to kmax with a probability from 0 to
  // pmax, above it always. At 25 Gb/s; a port of another rate scales both. The HPCC authors'
  // configuration for DCQCN.
  bool ecn_enabled = true;
  uint64_t ecn_kmin_bytes = 100'000;
  uint64_t ecn_kmax_bytes = 400'000;
  double ecn_pmax = 0.2;
};

// A NIC's, for packets from the wire that wait for its link to the host. Assumed: 400 Gb/s for 20
// us, nearly all of it for whichever port needs it; vendors do not publish it.
inline constexpr BufferSettings kReceiveBufferDefaults{.buffer_bytes = 1'000'000, .alpha = 8};

// The rate that ecn_kmin_bytes and ecn_kmax_bytes are for.
inline constexpr uint64_t kEcnReferenceRateBps = 25'000'000'000;

}  // namespace railyard
