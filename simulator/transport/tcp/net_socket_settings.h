// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

// A socket hands a message over in pieces of at most this many bytes (GSO_LEGACY_MAX_SIZE in Linux,
// include/linux/netdevice.h). Its receiver reads whole pieces.
inline constexpr uint32_t kSocketPieceBytesMax = 64u << 10;

// Holds the settings of NCCL's built-in network over TCP sockets (src/transport/net_socket.cc,
// 2.30), and the throughput of its threads.
struct NetSocketSettings {
  bool enabled = false;  // instead of InfiniBand or RoCE
  // A connection has NCCL_SOCKET_NTHREADS x NCCL_NSOCKS_PERTHREAD data sockets, and each helper
  // thread serves NCCL_NSOCKS_PERTHREAD of them. Without threads the proxy sends everything over
  // the control socket. The defaults are NCCL's for NICs that are neither AWS's (2 x 8) nor
  // Google's (4 x 1).
  uint32_t nthreads = 0;
  uint32_t nsocks_per_thread = 1;
  // The rates in bit/s at which one thread copies into, and out of, kernel sockets, including the
  // kernel's own work. The defaults are those of a core of a 3.4 GHz Xeon with TSO, GRO, jumbo
  // frames and aRFS (Cai et al.: Understanding Host Network Stack Overheads, SIGCOMM 2021): one
  // core sending to eight receivers, and one flow, which its receiver limits.
  uint64_t send_rate_bps = 89'000'000'000;
  uint64_t receive_rate_bps = 42'000'000'000;

  uint32_t data_sockets() const { return nthreads * nsocks_per_thread; }
};

// These are NCCL's limits MAX_THREADS and MAX_SOCKETS.
inline constexpr uint32_t kSocketThreadsMax = 16;
inline constexpr uint32_t kSocketsMax = 64;

}  // namespace railyard
