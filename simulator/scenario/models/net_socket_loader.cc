// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/models/net_socket_loader.h"

#include <array>

#include <fmt/format.h>

namespace railyard {
namespace {

constexpr const char* kThreads = "SOCKET_NTHREADS";
constexpr const char* kSockets = "NSOCKS_PERTHREAD";
constexpr std::array kRates = {"socket_send_rate", "socket_receive_rate"};

}  // namespace

NetSocketSettings LoadNetSocket(const ProtoCursor& scenario, bool is_enabled,
                                Diagnostics& diagnostics) {
  NetSocketSettings settings;
  settings.enabled = is_enabled;
  if (scenario.Has("nccl")) {
    const ProtoCursor nccl = scenario.Child("nccl");
    if (settings.enabled) {
      settings.nthreads =
          static_cast<uint32_t>(nccl.Number(diagnostics, kThreads, 0, 0, kSocketThreadsMax));
      settings.nsocks_per_thread =
          static_cast<uint32_t>(nccl.Number(diagnostics, kSockets, 1, 1, kSocketsMax));
      if (nccl.Has(kSockets) && settings.nthreads == 0) {
        nccl.Error(diagnostics, kSockets,
                   fmt::format("has no effect without helper threads (expected {} of 1 or more)",
                               kThreads));
      } else if (settings.data_sockets() > kSocketsMax) {
        nccl.Error(
            diagnostics, kSockets,
            fmt::format("{} x {} of {} are too many sockets (expected at most {})",
                        settings.nsocks_per_thread, kThreads, settings.nthreads, kSocketsMax));
      }
    } else {
      for (const char* field : {kThreads, kSockets}) {
        if (!nccl.Has(field)) continue;
        nccl.Error(diagnostics, field,
                   "has no effect: the network is RDMA (expected NET: \"Socket\" beside it)");
      }
    }
  }
  if (!scenario.Has("gpu")) return settings;
  const ProtoCursor gpu = scenario.Child("gpu");
  for (const char* field : kRates) {
    if (!gpu.Has(field)) continue;
    if (!settings.enabled) {
      gpu.Error(diagnostics, field,
                "has no effect: the network is RDMA (expected nccl.NET: \"Socket\")");
    } else if (gpu.RateBps(diagnostics, field, 1) == 0) {
      gpu.Error(diagnostics, field, "nothing would ever be copied (expected e.g. \"42Gbps\")");
    }
  }
  settings.send_rate_bps = gpu.RateBps(diagnostics, kRates[0], settings.send_rate_bps);
  settings.receive_rate_bps = gpu.RateBps(diagnostics, kRates[1], settings.receive_rate_bps);
  return settings;
}

}  // namespace railyard
