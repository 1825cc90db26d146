// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/net_socket_loader.h"

#include <array>
#include <cctype>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include "simulator/scenario/scenario.pb.h"

namespace railyard {
namespace {

constexpr const char* kNet = "NET";
constexpr const char* kIbDisable = "IB_DISABLE";
constexpr const char* kThreads = "SOCKET_NTHREADS";
constexpr const char* kSockets = "NSOCKS_PERTHREAD";
constexpr std::array kRates = {"socket_send_rate", "socket_receive_rate"};

// NCCL compares without regard to case.
bool IsNet(std::string name, std::string_view net) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name == net;
}

// NCCL_NET, or what is left when NCCL_IB_DISABLE takes InfiniBand and RoCE away.
bool IsEnabled(const ProtoCursor& nccl, Diagnostics& diagnostics) {
  const bool has_ib = !nccl.Flag(kIbDisable, false);
  if (!nccl.Has(kNet)) return !has_ib;
  const std::string net = nccl.Text(kNet, "");
  if (IsNet(net, "socket")) return true;
  if (!IsNet(net, "ib")) {
    nccl.Error(diagnostics, kNet,
               fmt::format("{} is no network of NCCL's own (expected \"IB\" or \"Socket\")",
                           net.empty() ? "\"\"" : '"' + net + '"'));
  } else if (!has_ib) {
    nccl.Error(diagnostics, kNet, "\"IB\" contradicts IB_DISABLE: true (expected \"Socket\")");
  }
  return !has_ib;
}

void RefuseOfInfiniBand(const ProtoCursor& nccl, Diagnostics& diagnostics) {
  const google::protobuf::Descriptor& fields = *nccl.message().GetDescriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    const std::string& name = fields.field(i)->name();
    if (name == kIbDisable || !nccl.Has(name.c_str())) continue;
    if (name.starts_with("IB_")) {
      nccl.Error(diagnostics, name.c_str(), "has no effect on TCP sockets");
    } else if (name == "PXN_DISABLE") {
      nccl.Error(diagnostics, name.c_str(),
                 "has no effect on TCP sockets: PXN is of NICs that reach GPU memory");
    } else if (name == "COLLNET_ENABLE" && nccl.Number(diagnostics, name.c_str(), 0, 0, 1) == 1) {
      nccl.Error(diagnostics, name.c_str(),
                 "1 needs switches that reduce, which are InfiniBand's (expected 0 with TCP "
                 "sockets)");
    }
  }
}

}  // namespace

NetSocketSettings LoadNetSocket(const ProtoCursor& scenario, Diagnostics& diagnostics) {
  NetSocketSettings settings;
  if (scenario.Has("nccl")) {
    const ProtoCursor nccl = scenario.Child("nccl");
    settings.enabled = IsEnabled(nccl, diagnostics);
    if (settings.enabled) {
      RefuseOfInfiniBand(nccl, diagnostics);
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
