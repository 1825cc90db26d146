// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

// How NCCL's built-in network over TCP sockets is set up (src/transport/net_socket.cc, 2.30), and
// what its threads carry.
struct NetSocketSettings {
  bool enabled = false;  // instead of InfiniBand or RoCE
  // Of NCCL_SOCKET_NTHREADS x NCCL_NSOCKS_PERTHREAD data sockets of a connection each helper thread
  // of its own has so many. No threads: the proxy does it all on the control socket. NCCL's
  // defaults where the NIC is not AWS's (2 x 8) or Google's (4 x 1).
  uint32_t nthreads = 0;
  uint32_t nsocks_per_thread = 1;
  // What one thread copies into, and out of, kernel sockets per second, the kernel's own work
  // included: a core of a 3.4 GHz Xeon with TSO, GRO, jumbo frames and aRFS (Cai et al.:
  // Understanding Host Network Stack Overheads, SIGCOMM 2021: one sending to eight receivers, and
  // one flow, whose receiver is what limits it).
  uint64_t send_rate_bps = 89'000'000'000;
  uint64_t receive_rate_bps = 42'000'000'000;

  uint32_t data_sockets() const { return nthreads * nsocks_per_thread; }
};

// NCCL's MAX_THREADS and MAX_SOCKETS.
inline constexpr uint32_t kSocketThreadsMax = 16;
inline constexpr uint32_t kSocketsMax = 64;

}  // namespace railyard
