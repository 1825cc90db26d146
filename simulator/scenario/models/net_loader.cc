// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/models/net_loader.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include "simulator/diagnostics/names.h"
#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/transport/stacks/network_stacks.h"

namespace railyard {
namespace {

constexpr const char* kNet = "NET";
constexpr const char* kIbDisable = "IB_DISABLE";
constexpr const char* kOfiNetLatency = "OFI_NCCL_NET_LATENCY";

// Returns NCCL_NET, or the network that remains if NCCL_IB_DISABLE excludes InfiniBand and RoCE.
NetPlugin NetOf(const ProtoCursor& nccl, Diagnostics& diagnostics) {
  const bool has_ib = !nccl.Flag(kIbDisable, false);
  const NetPlugin left = has_ib ? NetPlugin::kIb : NetPlugin::kSocket;
  if (!nccl.Has(kNet)) return left;
  const std::string name = nccl.Text(kNet, "");
  const std::optional<NetPlugin> net = NetNamed(name);
  if (!net) {
    nccl.Error(diagnostics, kNet,
               fmt::format("{} is no network of NCCL's own or Amazon's (expected \"IB\", "
                           "\"Socket\" or \"AWS Libfabric\")",
                           name.empty() ? "\"\"" : '"' + name + '"'));
  } else if (*net == NetPlugin::kIb && !has_ib) {
    nccl.Error(diagnostics, kNet, "\"IB\" contradicts IB_DISABLE: true (expected \"Socket\")");
    return left;
  }
  return net.value_or(left);
}

// Checks the fields of NCCL's plug-in for InfiniBand and RoCE. `exempt` returns true for those that
// have an effect nevertheless.
template <typename Exempt>
void RefuseOfInfiniband(const ProtoCursor& nccl, const char* network, const Exempt& exempt,
                        Diagnostics& diagnostics) {
  const google::protobuf::Descriptor& fields = *nccl.message().GetDescriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    const std::string& name = fields.field(i)->name();
    if (name == kIbDisable || !nccl.Has(name.c_str()) || exempt(name)) continue;
    if (name.starts_with("IB_")) {
      nccl.Error(diagnostics, name.c_str(), fmt::format("has no effect on {}", network));
    } else if (name == "COLLNET_ENABLE" && nccl.Number(diagnostics, name.c_str(), 0, 0, 1) == 1) {
      nccl.Error(diagnostics, name.c_str(),
                 fmt::format("1 needs switches that reduce, which are InfiniBand's (expected 0 "
                             "with {})",
                             network));
    }
  }
}

}  // namespace

std::optional<NetPlugin> NetNamed(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name == "ib") return NetPlugin::kIb;
  if (name == "socket") return NetPlugin::kSocket;
  if (name == "aws libfabric") return NetPlugin::kAwsLibfabric;
  return std::nullopt;
}

NetPlugin LoadNet(const ProtoCursor& scenario, Diagnostics& diagnostics) {
  if (!scenario.Has("nccl")) return NetPlugin::kIb;
  const ProtoCursor nccl = scenario.Child("nccl");
  const NetPlugin net = NetOf(nccl, diagnostics);
  if (net == NetPlugin::kSocket) {
    RefuseOfInfiniband(
        nccl, "TCP sockets", [](const std::string&) { return false; }, diagnostics);
    if (nccl.Has("PXN_DISABLE")) {
      nccl.Error(diagnostics, "PXN_DISABLE",
                 "has no effect on TCP sockets: PXN is of NICs that reach GPU memory");
    }
  } else if (net == NetPlugin::kAwsLibfabric) {
    // SRD's own timer is not public: these two stand for it.
    RefuseOfInfiniband(
        nccl, "EFA",
        [](const std::string& name) { return name == "IB_TIMEOUT" || name == "IB_RETRY_CNT"; },
        diagnostics);
  }
  if (net != NetPlugin::kAwsLibfabric && nccl.Has(kOfiNetLatency)) {
    nccl.Error(
        diagnostics, kOfiNetLatency,
        "has no effect: it is Amazon's plug-in's (expected NET: \"AWS Libfabric\" beside it)");
  }
  return net;
}

std::string LoadTransport(const ProtoCursor& scenario, NetPlugin net, Diagnostics& diagnostics) {
  std::string by_net = net == NetPlugin::kSocket ? "sockets" : "rdma";
  if (!scenario.Has("transport")) return by_net;
  std::string name = scenario.Text("transport", "");
  const std::vector<std::string> names = NetworkStackNames();
  if (std::ranges::find(names, name) == names.end()) {
    scenario.Error(diagnostics, "transport", UnknownName("transport", name, names));
    return by_net;
  }
  const bool is_of_net = name == "rdma" || name == "sockets";
  if (is_of_net && name != by_net) {
    scenario.Error(diagnostics, "transport",
                   fmt::format("\"{}\" contradicts nccl.NET, which takes \"{}\" (expected that, or "
                               "another nccl.NET)",
                               name, by_net));
  }
  return name;
}

}  // namespace railyard
