// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/models/nics_loader.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "simulator/scenario/models/named_devices.h"
#include "simulator/scenario/models/nic_loader.h"
#include "simulator/scenario/models/settings_loader.h"
#include "topologies/graph/spec_check.h"

namespace railyard {
namespace {

// As NICs' rates are called.
std::string FormatBits(uint64_t rate_bps) {
  return fmt::format("{:g} Gb/s", static_cast<double>(rate_bps) / 1e9);
}

}  // namespace

NicsLoader::NicsLoader(const ProtoCursor& scenario, const FabricGraph* fabric,
                       Diagnostics& diagnostics)
    : scenario_(scenario), diagnostics_(diagnostics) {
  NamedDevices named(
      fabric, {.kind = DeviceKind::kNic, .noun = "NIC", .example = R"("server1/nic3" or "*/nic3")"},
      diagnostics);
  for (int i = 0; i < scenario.Size("nics"); ++i) {
    const ProtoCursor entry = scenario.Child("nics", i);
    named_.push_back(named.Resolve(entry));
    if (!entry.Has("rate") && !entry.Has("nic") && !entry.Has("IB_TIMEOUT") &&
        !entry.Has("IB_RETRY_CNT")) {
      entry.Missing(diagnostics, "nic", "what differs: rate, nic, IB_TIMEOUT or IB_RETRY_CNT");
    }
  }
  if (named_.size() > kNicVariantsMax) {
    scenario.Error(
        diagnostics, "nics",
        fmt::format("has {} entries (expected at most {})", named_.size(), kNicVariantsMax),
        static_cast<int>(kNicVariantsMax));
  }
}

std::optional<uint64_t> NicsLoader::RateOf(const ProtoCursor& entry,
                                           const std::vector<DeviceId>& nics,
                                           const FabricGraph& fabric) {
  if (!entry.Has("rate")) return std::nullopt;
  const uint64_t rate_bps = entry.RateBps(diagnostics_, "rate", 0);
  if (entry.IsDoubtful("rate")) return std::nullopt;
  if (rate_bps < kMinLinkRateBps) {
    entry.Error(diagnostics_, "rate",
                fmt::format("is too low (expected at least {})", FormatBits(kMinLinkRateBps)));
    return std::nullopt;
  }
  for (const DeviceId nic : nics) {
    for (const LinkId wire : fabric.WiresOfNic(nic)) {
      const LinkProperties& link = fabric.link(wire);
      if (rate_bps <= link.rate_bps) continue;
      entry.Error(diagnostics_, "rate",
                  fmt::format("{} is more than {} has (expected at most {})", FormatBits(rate_bps),
                              fabric.cables()[link.cable].name, FormatBits(link.rate_bps)));
      return std::nullopt;
    }
  }
  return rate_bps;
}

void NicsLoader::ApplyRates(FabricGraph& fabric) {
  std::map<uint32_t, uint64_t> rates_bps;  // by cable
  for (size_t i = 0; i < named_.size(); ++i) {
    const ProtoCursor entry = scenario_.Child("nics", static_cast<int>(i));
    const std::optional<uint64_t> rate_bps = RateOf(entry, named_[i], fabric);
    if (!rate_bps) continue;
    for (const DeviceId nic : named_[i]) {
      for (const LinkId wire : fabric.WiresOfNic(nic)) {
        uint64_t& of_cable =
            rates_bps.try_emplace(fabric.link(wire).cable, *rate_bps).first->second;
        of_cable = std::min(of_cable, *rate_bps);
      }
    }
  }
  for (const auto& [cable, rate_bps] : rates_bps) fabric.SetCableRate(cable, rate_bps);
}

std::vector<NicVariant> NicsLoader::Load(NetPlugin net, const NicSettings& common) {
  std::vector<NicVariant> variants;
  for (size_t i = 0; i < named_.size(); ++i) {
    const ProtoCursor entry = scenario_.Child("nics", static_cast<int>(i));
    if (net == NetPlugin::kSocket) {
      for (const char* field : {"nic", "IB_TIMEOUT", "IB_RETRY_CNT"}) {
        if (!entry.Has(field)) continue;
        entry.Error(diagnostics_, field,
                    "is of RDMA (with TCP sockets NICs differ in their rate alone)");
      }
      continue;
    }
    NicVariant variant{.nics = named_[i], .settings = common};
    if (entry.Has("nic")) {
      variant.settings = LoadNicVariant(entry.Child("nic"), common, diagnostics_);
    }
    variant.settings.ib_timeout = LoadIbTimeout(entry, common.ib_timeout, diagnostics_);
    variant.settings.ib_retry_cnt = LoadIbRetryCount(entry, common.ib_retry_cnt, diagnostics_);
    const bool differs = entry.Has("nic") || entry.Has("IB_TIMEOUT") || entry.Has("IB_RETRY_CNT");
    if (differs) variants.push_back(std::move(variant));
  }
  return variants;
}

}  // namespace railyard
