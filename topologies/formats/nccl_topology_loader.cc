// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/nccl_topology_loader.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/diagnostics/names.h"
#include "simulator/units/units.h"
#include "topologies/formats/file_size.h"
#include "topologies/formats/line_findings.h"
#include "topologies/formats/nccl_topology_tree.h"
#include "topologies/graph/nvlink.h"
#include "topologies/graph/pcie.h"
#include "topologies/graph/spec_check.h"

namespace railyard {
namespace {

constexpr uint64_t kFileBytesMax = uint64_t{64} << 20;

// Makes the tree a server.
class NcclTopologyConverter {
 public:
  NcclTopologyConverter(NcclTopologyTree tree, LineFindings& findings)
      : tree_(std::move(tree)), findings_(findings) {}

  std::optional<ServerLayout> Convert() {
    SortGpus();
    layout_.compute_capability = tree_.gpus.front().sm;
    layout_.cpu = tree_.cpu;
    AddNvlinks();
    ChooseNics();
    if (layout_.nvlinks.empty() && tree_.gpus.size() > 1) AddPcieTree();
    if (findings_.HasErrors()) return std::nullopt;
    return std::move(layout_);
  }

 private:
  using Gpu = NcclTopologyTree::Gpu;
  using Nvlink = NcclTopologyTree::Nvlink;
  static constexpr uint32_t kNone = NcclTopologyTree::kNone;

  // The distance of a GPU and a NIC: NCCL's PIX/PXB, PHB and SYS, then links.
  struct Distance {
    int kind = 0;  // 0: under one PCIe switch, 1: one CPU, 2: another CPU
    uint32_t links = 0;
    auto operator<=>(const Distance&) const = default;
  };

  void SortGpus() {
    std::stable_sort(tree_.gpus.begin(), tree_.gpus.end(),
                     [](const Gpu& a, const Gpu& b) { return a.rank < b.rank; });
    layout_.gpus = static_cast<uint32_t>(tree_.gpus.size());
    for (uint32_t i = 0; i < tree_.gpus.size(); ++i) gpu_of_busid_.emplace(tree_.gpus[i].busid, i);
  }

  uint64_t LaneRateOf(const Gpu& gpu) {
    for (const NvlinkLaneRate& known : kNvlinkLaneRates) {
      if (known.sm == gpu.sm) return known.rate_bps;
    }
    std::vector<uint32_t> known;
    for (const NvlinkLaneRate& rate : kNvlinkLaneRates) known.push_back(rate.sm);
    findings_.Error(gpu.line, fmt::format("no NVLink rate is known for sm {} (expected one of {})",
                                          gpu.sm, fmt::join(known, ", ")));
    return 0;
  }

  void AddNvlinks() {
    std::map<std::string, uint32_t> nvswitches;  // by address
    for (const Gpu& gpu : tree_.gpus) {
      for (const Nvlink& link : gpu.nvlinks) {
        if (link.target_class.starts_with(kNvSwitchClass)) nvswitches.emplace(link.target, 0);
      }
    }
    for (auto& [busid, index] : nvswitches) index = layout_.nvswitches++;
    // The NVLinks of each pair of GPUs as each of the two states them.
    std::map<std::pair<uint32_t, uint32_t>, std::array<uint32_t, 2>> pairs;
    for (uint32_t i = 0; i < tree_.gpus.size(); ++i) {
      const Gpu& gpu = tree_.gpus[i];
      if (gpu.nvlinks.empty()) continue;
      const uint64_t rate_bps = LaneRateOf(gpu);
      if (rate_bps == 0) return;
      if (layout_.nvlink_lane_rate_bps == 0) layout_.nvlink_lane_rate_bps = rate_bps;
      if (layout_.nvlink_lane_rate_bps != rate_bps) {
        findings_.Error(gpu.line,
                        "GPUs with NVLinks of different rates (expected one kind of GPU)");
        return;
      }
      for (const Nvlink& link : gpu.nvlinks) {
        if (link.target_class.starts_with(kNvSwitchClass)) {
          layout_.nvlinks.push_back({.gpu = i,
                                     .is_to_gpu = false,
                                     .peer = nvswitches.at(link.target),
                                     .lanes = link.count});
        } else if (link.target_class.starts_with("0x03")) {
          AddGpuPair(i, link, pairs);
        } else {
          findings_.Warning(link.line, fmt::format("an NVLink to a device of class {} is not used",
                                                   Quote(link.target_class)));
        }
      }
    }
    for (const auto& [ends, counts] : pairs) {
      layout_.nvlinks.push_back({.gpu = ends.first,
                                 .is_to_gpu = true,
                                 .peer = ends.second,
                                 .lanes = std::max(counts[0], counts[1])});
    }
    std::sort(layout_.nvlinks.begin(), layout_.nvlinks.end());
    for (size_t i = 1; i < layout_.nvlinks.size(); ++i) {
      const auto& [a, b] = std::tie(layout_.nvlinks[i - 1], layout_.nvlinks[i]);
      if (std::tie(a.gpu, a.is_to_gpu, a.peer) != std::tie(b.gpu, b.is_to_gpu, b.peer)) continue;
      findings_.Error(tree_.gpus[b.gpu].line,
                      fmt::format("GPU {} has two nvlinks to one NVSwitch", b.gpu));
      return;
    }
  }

  void AddGpuPair(uint32_t gpu, const Nvlink& link,
                  std::map<std::pair<uint32_t, uint32_t>, std::array<uint32_t, 2>>& pairs) {
    const auto peer = gpu_of_busid_.find(link.target);
    if (peer == gpu_of_busid_.end()) {
      findings_.Error(link.line,
                      fmt::format("nvlink target {} is no GPU of this file", Quote(link.target)));
    } else if (peer->second == gpu) {
      findings_.Error(link.line, fmt::format("an nvlink from {} to itself", Quote(link.target)));
    } else {
      uint32_t& count = pairs[std::minmax(gpu, peer->second)][gpu < peer->second ? 0 : 1];
      if (count != 0) {
        findings_.Error(link.line,
                        fmt::format("a second nvlink to {} (expected one with the count of both)",
                                    Quote(link.target)));
      }
      count = link.count;
    }
  }

  // Returns the distance of two nodes and the rate of the slowest link between them.
  std::pair<Distance, uint64_t> Between(uint32_t a, uint32_t b) const {
    Distance distance;
    uint64_t rate_bps = UINT64_MAX;
    const auto climb = [&](uint32_t& node) {
      rate_bps = std::min(rate_bps, tree_.nodes[node].link_bps);
      node = tree_.nodes[node].parent;
      ++distance.links;
    };
    while (a != b && a != kNone && b != kNone) {
      if (tree_.nodes[a].depth >= tree_.nodes[b].depth) {
        climb(a);
      } else {
        climb(b);
      }
    }
    if (a != b) {
      distance.kind = 2;
    } else if (tree_.nodes[a].parent == kNone) {
      distance.kind = 1;
    }
    return {distance, rate_bps};
  }

  void ChooseNics() {
    if (tree_.nics.empty()) {
      findings_.Warning(1, "there is no net: the server has no NIC");
      return;
    }
    users_of_nic_.assign(tree_.nics.size(), 0);
    index_of_nic_.assign(tree_.nics.size(), kNone);
    for (uint32_t i = 0; i < tree_.gpus.size(); ++i) {
      size_t best = 0;
      std::pair<Distance, uint32_t> best_key;
      uint64_t best_rate_bps = 0;
      for (size_t n = 0; n < tree_.nics.size(); ++n) {
        const auto [distance, rate_bps] = Between(tree_.gpus[i].node, tree_.nics[n].node);
        const std::pair key(distance, users_of_nic_[n]);
        if (n > 0 && key >= best_key) continue;
        best = n;
        best_key = key;
        best_rate_bps = rate_bps;
      }
      if (users_of_nic_[best]++ == 0) {
        index_of_nic_[best] = static_cast<uint32_t>(layout_.nic_rates_bps.size());
        layout_.nic_rates_bps.push_back(tree_.nics[best].rate_bps);
      }
      if (best_key.first.kind == 2 && !layout_.nvlinks.empty()) {
        findings_.Warning(tree_.gpus[i].line,
                          fmt::format("GPU {} reaches its NIC {} over another CPU, whose link "
                                      "is taken to be no bottleneck",
                                      i, tree_.nics[best].name));
      }
      layout_.host_paths.push_back({.gpu = i,
                                    .nic = index_of_nic_[best],
                                    .rate_bps = std::min(best_rate_bps, kMaxLinkRateBps)});
    }
    std::vector<std::string> unused;
    for (size_t n = 0; n < tree_.nics.size(); ++n) {
      if (users_of_nic_[n] == 0) unused.push_back(tree_.nics[n].name);
    }
    if (!unused.empty()) {
      findings_.Warning(1, fmt::format("NICs that are nearest to no GPU are left out: {}",
                                       fmt::join(unused, ", ")));
    }
  }

  // For a server without NVLink: replaces the paths from GPUs to NICs by the whole PCIe tree.
  void AddPcieTree() {
    using enum ServerLayout::PcieKind;
    layout_.host_paths.clear();
    std::map<uint32_t, ServerLayout::PcieDevice> inner;  // by node
    const auto climb = [&](uint32_t node, ServerLayout::PcieDevice below) {
      for (;;) {
        const uint64_t rate_bps = std::min(tree_.nodes[node].link_bps, kMaxLinkRateBps);
        node = tree_.nodes[node].parent;
        const bool is_bridge = tree_.nodes[node].parent == kNone;
        uint32_t& count = is_bridge ? layout_.host_bridges : layout_.pcie_switches;
        const auto [above, is_new] = inner.try_emplace(
            node, ServerLayout::PcieDevice{is_bridge ? kHostBridge : kSwitch, count});
        layout_.pcie_links.push_back({below, above->second, rate_bps, kPcieLinkDelayPs});
        if (!is_new) return;
        ++count;
        if (is_bridge) return;
        below = above->second;
      }
    };
    for (uint32_t i = 0; i < tree_.gpus.size(); ++i) climb(tree_.gpus[i].node, {kGpu, i});
    for (size_t n = 0; n < tree_.nics.size(); ++n) {
      if (users_of_nic_[n] > 0) climb(tree_.nics[n].node, {kNic, index_of_nic_[n]});
    }
    for (uint32_t a = 0; a < layout_.host_bridges; ++a) {
      for (uint32_t b = a + 1; b < layout_.host_bridges; ++b) {
        layout_.pcie_links.push_back(
            {{kHostBridge, a}, {kHostBridge, b}, kSocketLinkBps, kSocketLinkDelayPs});
      }
    }
    if (layout_.host_bridges > 1) {
      findings_.Warning(1, fmt::format("what joins the CPUs is taken for {} each way",
                                       FormatRate(kSocketLinkBps)));
    }
    findings_.Warning(
        1,
        "whether the driver lets GPUs access each other over PCIe is not in the file: taken for "
        "yes (otherwise nccl { P2P_DISABLE: true })");
  }

  NcclTopologyTree tree_;
  LineFindings& findings_;
  std::map<std::string, uint32_t> gpu_of_busid_;
  std::vector<uint32_t> users_of_nic_;
  std::vector<uint32_t> index_of_nic_;  // in the layout
  ServerLayout layout_;
};

}  // namespace

std::optional<ServerLayout> LoadNcclTopology(const std::string& path, Diagnostics& diagnostics) {
  if (!IsWithinSize(path, kFileBytesMax, diagnostics)) return std::nullopt;
  LineFindings findings(path, diagnostics);
  std::optional<NcclTopologyTree> tree = ReadNcclTopologyTree(path, findings);
  if (!tree) return std::nullopt;
  return NcclTopologyConverter(std::move(*tree), findings).Convert();
}

}  // namespace railyard
