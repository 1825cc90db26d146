// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

// Holds the settings of the packet buffer of a switch, or of a NIC towards its host. All ports
// share one memory; the share of it that one port may use depends on the free space (dynamic
// threshold: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).
struct BufferSettings {
  // The size of the shared memory, without headroom. Spectrum-3 and Tomahawk 3 (12.8 Tb/s) have 64
  // MB.
  uint64_t buffer_bytes = 64'000'000;
  // A port may use alpha times the free space. Chips offer powers of two; 1/8 is the shift of 3 of
  // the HPCC authors' switch (alibaba-edu/High-Precision-Congestion-Control, switch-mmu.cc).
  double alpha = 0.125;
  // If true, arriving packets are kept, and pause frames (PFC, IEEE 802.1Qbb) stop the sender of an
  // ingress port that exceeds its share. If false, packets are dropped whose egress queue exceeds
  // its share.
  bool lossless_data = true;
  // The space per ingress port for packets that arrive after the pause frame was sent. 0 means that
  // it is computed from the worst case of cable, pipeline and frames.
  uint64_t headroom_bytes = 0;
  // The factor of the headroom; 0 disables it.
  double headroom_scale = 1;
  // The largest packet on the wire, for which the headroom is computed: MTU 9,216, the usual jumbo
  // size.
  uint32_t mtu_bytes = 9'216;
  // An ingress port's sender resumes when the port is this many bytes below the threshold:
  // resume_offset of the same switch-mmu.cc.
  uint64_t xon_offset_bytes = 3'072;

  // ECN marking (RED on the instantaneous queue): the probability rises from 0 at kmin to pmax at
  // kmax and is 1 above kmax. The thresholds are for 25 Gb/s and scale with the port's rate. The
  // defaults are the HPCC authors' configuration for DCQCN.
  bool ecn_enabled = true;
  uint64_t ecn_kmin_bytes = 100'000;
  uint64_t ecn_kmax_bytes = 400'000;
  double ecn_pmax = 0.2;
};

// The default buffer of a NIC holds packets from the wire that wait for its link to the host. The
// values are assumed, since vendors do not publish them: 400 Gb/s for 20 us, nearly all of it
// available to any one port.
inline constexpr BufferSettings kReceiveBufferDefaults{.buffer_bytes = 1'000'000, .alpha = 8};

// ecn_kmin_bytes and ecn_kmax_bytes refer to this port rate.
inline constexpr uint64_t kEcnReferenceRateBps = 25'000'000'000;

}  // namespace railyard
