// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/nccl_topology_loader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/diagnostics/names.h"
#include "simulator/units/units.h"
#include "topologies/pcie.h"
#include "topologies/spec_check.h"
#include "topologies/xml_stream.h"

namespace railyard {
namespace {

constexpr uint64_t kFileBytesMax = uint64_t{64} << 20;
constexpr size_t kMostPciDevices = 65'536;
constexpr int kMostFindings = 100;
constexpr uint32_t kMostPcieLanes = 32;
constexpr const char* kNvSwitchClass = "0x068000";

// An NVLink's rate each way by compute capability (NVIDIA's whitepapers of P100, V100, A100, RTX
// A6000, H100 and B200).
struct LaneRate {
  uint32_t sm;
  uint64_t rate_bps;
};
constexpr std::array kLaneRates = {LaneRate{60, 160'000'000'000}, LaneRate{70, 200'000'000'000},
                                   LaneRate{80, 200'000'000'000}, LaneRate{86, 112'500'000'000},
                                   LaneRate{90, 200'000'000'000}, LaneRate{103, 400'000'000'000},
                                   LaneRate{100, 400'000'000'000}};

constexpr uint32_t kNone = UINT32_MAX;

class Reader {
 public:
  Reader(const std::string& path, Diagnostics& diagnostics)
      : path_(path), diagnostics_(diagnostics), xml_(path) {}

  std::optional<ServerLayout> Read() {
    const int errors_before = diagnostics_.error_count();
    ReadElements();
    if (!xml_.error().empty()) {
      Error(xml_.error_line(), fmt::format("{} (expected NCCL's topology XML)", xml_.error()));
    } else if (errors_ == 0 && !has_system_) {
      Error(1, "there is no system (expected <system version=\"1\">)");
    } else if (errors_ == 0 && gpus_.empty()) {
      Error(1, "there is no GPU (expected a dump of NCCL_TOPO_DUMP_FILE)");
    }
    if (diagnostics_.error_count() > errors_before) return std::nullopt;
    SortGpus();
    layout_.compute_capability = gpus_.front().sm;
    AddNvlinks();
    ChooseNics();
    if (layout_.nvlinks.empty() && gpus_.size() > 1) AddPcieTree();
    if (diagnostics_.error_count() > errors_before) return std::nullopt;
    return std::move(layout_);
  }

 private:
  // A device of the tree; a CPU is one without a link.
  struct Node {
    uint32_t parent = kNone;
    uint32_t depth = 0;
    uint64_t link_bps = UINT64_MAX;  // to the parent
  };
  struct Nvlink {
    std::string target;
    std::string target_class;
    uint32_t count = 0;
    int line = 0;
  };
  struct Gpu {
    uint32_t node = 0;
    std::string busid;
    uint32_t rank = kNone;
    uint32_t sm = 0;
    int line = 0;
    std::vector<Nvlink> nvlinks;
  };
  struct Nic {
    uint32_t node = 0;
    std::string name;
    uint64_t rate_bps = 0;
    uint32_t users = 0;
    uint32_t index = kNone;  // in the layout
  };
  // How far a GPU and a NIC are apart: NCCL's PIX/PXB, PHB and SYS, then links.
  struct Distance {
    int kind = 0;  // 0: under one PCIe switch, 1: one CPU, 2: another CPU
    uint32_t links = 0;
    auto operator<=>(const Distance&) const = default;
  };

  void Error(int line, std::string what) {
    if (++errors_ <= kMostFindings) {
      diagnostics_.Error({.file = path_, .line = line, .column = 0}, "", std::move(what));
    }
  }
  void Warning(int line, std::string what) {
    diagnostics_.Warning({.file = path_, .line = line, .column = 0}, "", std::move(what));
  }

  void ReadElements() {
    while (errors_ < kMostFindings) {
      switch (xml_.Next()) {
        case XmlStream::Kind::kOver:
          return;
        case XmlStream::Kind::kDocumentType:
          Error(xml_.line(), "a document type declaration (expected none)");
          return;
        case XmlStream::Kind::kStart:
          if (!Start()) return;
          break;
        case XmlStream::Kind::kEnd:
          End();
      }
    }
  }

  // False if reading on makes no sense.
  bool Start() {
    const std::string& name = xml_.name();
    elements_.push_back(name);
    if (elements_.size() == 1 && name != "system") {
      Error(xml_.line(),
            fmt::format("the document is a {} (expected <system version=\"1\">)", Quote(name)));
      return false;
    }
    if (name == "system") {
      has_system_ = true;
      const std::string version = xml_.Attribute("version");
      if (version != "1") {
        Error(xml_.line(),
              fmt::format("version {} of the format (expected \"1\")", Quote(version)));
      }
    } else if (name == "cpu") {
      AddNode({});
    } else if (name == "pci") {
      return StartPci();
    } else if (name == "gpu") {
      StartGpu();
    } else if (name == "nvlink") {
      StartNvlink();
    } else if (name == "c2c") {
      StartC2c();
    } else if (name == "net") {
      StartNet();
    }
    return true;
  }

  void End() {
    const std::string name = std::move(elements_.back());
    elements_.pop_back();
    if (name == "cpu" || name == "pci") at_ = at_ == kNone ? kNone : nodes_[at_].parent;
    if (name == "pci") gpu_ = kNone;
  }

  uint32_t AddNode(Node node) {
    node.parent = at_;
    node.depth = at_ == kNone ? 0 : nodes_[at_].depth + 1;
    at_ = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back(node);
    return at_;
  }

  // A whole number of an attribute; `expected` says of which kind.
  std::optional<uint32_t> Number(const char* attribute, uint64_t least, uint64_t most) {
    const std::string text = xml_.Attribute(attribute);
    uint64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || stop != text.data() + text.size() || value < least ||
        value > most) {
      Error(xml_.line(), fmt::format("{} {} of {} (expected a number from {} to {})", attribute,
                                     Quote(text), xml_.name(), least, most));
      return std::nullopt;
    }
    return static_cast<uint32_t>(value);
  }

  bool StartPci() {
    if (nodes_.size() >= kMostPciDevices) {
      Error(xml_.line(), fmt::format("more than {} devices", kMostPciDevices));
      return false;
    }
    const int line = xml_.line();
    const std::string busid = xml_.Attribute("busid");
    if (at_ == kNone) Error(line, "a pci outside of a cpu (expected <cpu> around it)");
    if (busid.empty()) {
      Error(line, "a pci without a busid");
    } else if (const auto [other, is_new] = line_of_busid_.emplace(busid, line); !is_new) {
      Error(line,
            fmt::format("there is already a pci {}, at line {}", Quote(busid), other->second));
    }
    const uint32_t node = AddNode({.link_bps = ReadLinkRate()});
    gpu_ = kNone;
    if (xml_.Attribute("class").starts_with("0x03")) {
      gpu_ = static_cast<uint32_t>(gpus_.size());
      gpus_.push_back({.node = node, .busid = busid, .line = line, .nvlinks = {}});
      if (gpus_.size() > kMaxGpusPerServer) {
        Error(line, fmt::format("more than {} GPUs", kMaxGpusPerServer));
        return false;
      }
    }
    return true;
  }

  uint64_t ReadLinkRate() {
    const std::string speed = xml_.Attribute("link_speed");
    const std::string width = xml_.Attribute("link_width");
    if (speed.empty() && width.empty()) return kPcieGen3X16Bps;  // as NCCL takes what says nothing
    const auto generation = FindPcieSpeed(speed);
    uint32_t lanes = 0;
    const auto [stop, failure] = std::from_chars(width.data(), width.data() + width.size(), lanes);
    const bool has_lanes = failure == std::errc() && stop == width.data() + width.size();
    if (!generation || !has_lanes || lanes > kMostPcieLanes) {
      // Virtual machines do not know ("Unknown", 255); NCCL takes the same.
      if (!std::exchange(has_unknown_link_, true)) {
        Warning(xml_.line(), fmt::format("link_speed {} and link_width {} are taken for PCIe 3.0 "
                                         "x16 (expected e.g. \"32.0 GT/s PCIe\" and \"16\")",
                                         Quote(speed), Quote(width)));
      }
      return kPcieGen3X16Bps;
    }
    // NVSwitches and some bridges say 0.
    return PciePayloadBps(*generation, lanes == 0 ? 16 : lanes);
  }

  void StartGpu() {
    if (elements_.size() < 2 || elements_[elements_.size() - 2] != "pci" || gpu_ == kNone) {
      Error(xml_.line(), "a gpu that is not in a pci of class 0x03… (expected one around it)");
      return;
    }
    Gpu& gpu = gpus_[gpu_];
    if (const auto sm = Number("sm", 1, 1'000)) gpu.sm = *sm;
    if (xml_.HasAttribute("rank")) {
      if (const auto rank = Number("rank", 0, 1'000'000)) gpu.rank = *rank;
    }
  }

  void StartNvlink() {
    if (gpu_ == kNone) {
      Error(xml_.line(), "an nvlink outside of a gpu");
      return;
    }
    const auto count = Number("count", 1, 1'024);
    Nvlink link = {.target = xml_.Attribute("target"),
                   .target_class = xml_.Attribute("tclass"),
                   .count = count.value_or(1),
                   .line = xml_.line()};
    if (link.target.empty() || link.target_class.empty()) {
      Error(link.line, "an nvlink without target or tclass");
    } else {
      gpus_[gpu_].nvlinks.push_back(std::move(link));
    }
  }

  // Grace's link to its GPU takes PCIe's place.
  void StartC2c() {
    if (gpu_ == kNone) return;
    const auto count = Number("count", 1, 1'024);
    const auto megabytes_per_s = Number("bw", 1, 10'000'000);
    if (count && megabytes_per_s) {
      nodes_[gpus_[gpu_].node].link_bps =
          std::min<uint64_t>(kMaxLinkRateBps, uint64_t{*count} * *megabytes_per_s * 8'000'000);
    }
  }

  void StartNet() {
    if (at_ == kNone) {
      Error(xml_.line(), "a net outside of a cpu");
      return;
    }
    const std::string name = xml_.Attribute("name");
    const auto megabits_per_s = Number("speed", 1, kMaxLinkRateBps / 1'000'000);
    if (!megabits_per_s) return;
    if (!line_of_nic_.emplace(name, xml_.line()).second) {
      Error(xml_.line(), fmt::format("there is already a net {}, at line {}", Quote(name),
                                     line_of_nic_.at(name)));
    } else if (nics_.size() >= kMaxGpusPerServer) {
      Error(xml_.line(), fmt::format("more than {} NICs", kMaxGpusPerServer));
    } else {
      nics_.push_back(
          {.node = at_, .name = name, .rate_bps = uint64_t{*megabits_per_s} * 1'000'000});
    }
  }

  void SortGpus() {
    std::stable_sort(gpus_.begin(), gpus_.end(),
                     [](const Gpu& a, const Gpu& b) { return a.rank < b.rank; });
    layout_.gpus = static_cast<uint32_t>(gpus_.size());
    for (uint32_t i = 0; i < gpus_.size(); ++i) gpu_of_busid_.emplace(gpus_[i].busid, i);
  }

  uint64_t LaneRateOf(const Gpu& gpu) {
    for (const LaneRate& known : kLaneRates) {
      if (known.sm == gpu.sm) return known.rate_bps;
    }
    std::vector<uint32_t> known;
    for (const LaneRate& rate : kLaneRates) known.push_back(rate.sm);
    Error(gpu.line, fmt::format("no NVLink rate is known for sm {} (expected one of {})", gpu.sm,
                                fmt::join(known, ", ")));
    return 0;
  }

  void AddNvlinks() {
    std::map<std::string, uint32_t> nvswitches;  // by address
    for (const Gpu& gpu : gpus_) {
      for (const Nvlink& link : gpu.nvlinks) {
        if (link.target_class.starts_with(kNvSwitchClass)) nvswitches.emplace(link.target, 0);
      }
    }
    for (auto& [busid, index] : nvswitches) index = layout_.nvswitches++;
    // Of each pair of GPUs what either says.
    std::map<std::pair<uint32_t, uint32_t>, std::array<uint32_t, 2>> pairs;
    for (uint32_t i = 0; i < gpus_.size(); ++i) {
      const Gpu& gpu = gpus_[i];
      if (gpu.nvlinks.empty()) continue;
      const uint64_t rate_bps = LaneRateOf(gpu);
      if (rate_bps == 0) return;
      if (layout_.nvlink_lane_rate_bps == 0) layout_.nvlink_lane_rate_bps = rate_bps;
      if (layout_.nvlink_lane_rate_bps != rate_bps) {
        Error(gpu.line, "GPUs with NVLinks of different rates (expected one kind of GPU)");
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
          Warning(link.line, fmt::format("an NVLink to a device of class {} is not used",
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
      Error(gpus_[b.gpu].line, fmt::format("GPU {} has two nvlinks to one NVSwitch", b.gpu));
      return;
    }
  }

  void AddGpuPair(uint32_t gpu, const Nvlink& link,
                  std::map<std::pair<uint32_t, uint32_t>, std::array<uint32_t, 2>>& pairs) {
    const auto peer = gpu_of_busid_.find(link.target);
    if (peer == gpu_of_busid_.end()) {
      Error(link.line, fmt::format("nvlink target {} is no GPU of this file", Quote(link.target)));
    } else if (peer->second == gpu) {
      Error(link.line, fmt::format("an nvlink from {} to itself", Quote(link.target)));
    } else {
      uint32_t& count = pairs[std::minmax(gpu, peer->second)][gpu < peer->second ? 0 : 1];
      if (count != 0) {
        Error(link.line, fmt::format("a second nvlink to {} (expected one with the count of both)",
                                     Quote(link.target)));
      }
      count = link.count;
    }
  }

  // And the rate of the way.
  std::pair<Distance, uint64_t> Between(uint32_t a, uint32_t b) const {
    Distance distance;
    uint64_t rate_bps = UINT64_MAX;
    const auto climb = [&](uint32_t& node) {
      rate_bps = std::min(rate_bps, nodes_[node].link_bps);
      node = nodes_[node].parent;
      ++distance.links;
    };
    while (a != b && a != kNone && b != kNone) {
      if (nodes_[a].depth >= nodes_[b].depth) {
        climb(a);
      } else {
        climb(b);
      }
    }
    if (a != b) {
      distance.kind = 2;
    } else if (nodes_[a].parent == kNone) {
      distance.kind = 1;
    }
    return {distance, rate_bps};
  }

  void ChooseNics() {
    if (nics_.empty()) {
      Warning(1, "there is no net: the server has no NIC");
      return;
    }
    for (uint32_t i = 0; i < gpus_.size(); ++i) {
      Nic* best = nullptr;
      std::pair<Distance, uint32_t> best_key;
      uint64_t best_rate_bps = 0;
      for (Nic& nic : nics_) {
        const auto [distance, rate_bps] = Between(gpus_[i].node, nic.node);
        const std::pair key(distance, nic.users);
        if (best != nullptr && key >= best_key) continue;
        best = &nic;
        best_key = key;
        best_rate_bps = rate_bps;
      }
      if (best->users++ == 0) {
        best->index = static_cast<uint32_t>(layout_.nic_rates_bps.size());
        layout_.nic_rates_bps.push_back(best->rate_bps);
      }
      if (best_key.first.kind == 2 && !layout_.nvlinks.empty()) {
        Warning(gpus_[i].line, fmt::format("GPU {} reaches its NIC {} over another CPU, whose link "
                                           "is taken to be no bottleneck",
                                           i, best->name));
      }
      layout_.host_paths.push_back(
          {.gpu = i, .nic = best->index, .rate_bps = std::min(best_rate_bps, kMaxLinkRateBps)});
    }
    std::vector<std::string> unused;
    for (const Nic& nic : nics_) {
      if (nic.users == 0) unused.push_back(nic.name);
    }
    if (!unused.empty()) {
      Warning(1, fmt::format("NICs that are nearest to no GPU are left out: {}",
                             fmt::join(unused, ", ")));
    }
  }

  // Of a server without NVLink, in place of the ways from GPUs to NICs: everything between them.
  void AddPcieTree() {
    using enum ServerLayout::PcieKind;
    layout_.host_paths.clear();
    std::map<uint32_t, ServerLayout::PcieDevice> inner;  // by node
    const auto climb = [&](uint32_t node, ServerLayout::PcieDevice below) {
      for (;;) {
        const uint64_t rate_bps = std::min(nodes_[node].link_bps, kMaxLinkRateBps);
        node = nodes_[node].parent;
        const bool is_bridge = nodes_[node].parent == kNone;
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
    for (uint32_t i = 0; i < gpus_.size(); ++i) climb(gpus_[i].node, {kGpu, i});
    for (const Nic& nic : nics_) {
      if (nic.users > 0) climb(nic.node, {kNic, nic.index});
    }
    for (uint32_t a = 0; a < layout_.host_bridges; ++a) {
      for (uint32_t b = a + 1; b < layout_.host_bridges; ++b) {
        layout_.pcie_links.push_back(
            {{kHostBridge, a}, {kHostBridge, b}, kSocketLinkBps, kSocketLinkDelayPs});
      }
    }
    if (layout_.host_bridges > 1) {
      Warning(1, fmt::format("what joins the CPUs is taken for {} each way",
                             FormatRate(kSocketLinkBps)));
    }
    Warning(
        1,
        "whether the driver lets GPUs access each other over PCIe is not in the file: taken for "
        "yes (otherwise nccl { P2P_DISABLE: true })");
  }

  const std::string& path_;
  Diagnostics& diagnostics_;
  XmlStream xml_;
  int errors_ = 0;
  bool has_system_ = false;
  bool has_unknown_link_ = false;
  std::vector<std::string> elements_;  // around where the stream is
  std::vector<Node> nodes_;
  uint32_t at_ = kNone;   // node around where the stream is
  uint32_t gpu_ = kNone;  // of the pci that was begun last
  std::map<std::string, int> line_of_busid_;
  std::map<std::string, int> line_of_nic_;
  std::vector<Gpu> gpus_;
  std::vector<Nic> nics_;
  std::map<std::string, uint32_t> gpu_of_busid_;
  ServerLayout layout_;
};

std::string BusId(uint32_t number) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", number >> 13, number >> 5 & 0xff, number & 0x1f);
}

class Writer {
 public:
  Writer(const FabricGraph& fabric, uint32_t server) : fabric_(fabric), server_(server) {}

  std::string Write(std::string& text) {
    Number();
    text_ =
        "<system version=\"1\">\n  <cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\">\n";
    std::vector<bool> is_written(fabric_.device_count());
    for (const DeviceId gpu : gpus_) {
      const auto nic = fabric_.NicOfGpu(gpu);
      if (!nic) return fmt::format("{} has no NIC", fabric_.device(gpu).name);
      if (!fabric_.FindLink(gpu, *nic)) {
        return fmt::format("{} meets its NIC over PCIe switches or host bridges",
                           fabric_.device(gpu).name);
      }
      if (is_written[*nic]) continue;
      is_written[*nic] = true;
      if (std::string why = WriteSwitch(*nic); !why.empty()) return why;
    }
    text_ += "  </cpu>\n</system>\n";
    text = std::move(text_);
    return {};
  }

 private:
  void Number() {
    uint32_t next = 0;
    for (const DeviceKind kind : {DeviceKind::kGpu, DeviceKind::kNvSwitch, DeviceKind::kNic}) {
      for (DeviceId id = 0; id < fabric_.device_count(); ++id) {
        const Device& device = fabric_.device(id);
        if (device.kind != kind || device.server != static_cast<int32_t>(server_)) continue;
        busid_.emplace(id, BusId(next++));
        if (kind == DeviceKind::kGpu) gpus_.push_back(id);
      }
    }
    next_bridge_ = next;
  }

  // A PCIe switch with a NIC and the GPUs that use it.
  std::string WriteSwitch(DeviceId nic) {
    // Wide enough for whatever hangs on it.
    text_ += fmt::format(
        "    <pci busid=\"{}\" class=\"0x060400\" link_speed=\"64.0 GT/s PCIe\" "
        "link_width=\"32\">\n",
        BusId(next_bridge_++));
    uint64_t nic_path_bps = 0;
    uint64_t port_bps = 0;
    for (const auto& edge : boost::make_iterator_range(boost::out_edges(nic, fabric_.graph()))) {
      const LinkProperties& link = fabric_.graph()[edge];
      if (link.tier == Tier::kHost) {
        nic_path_bps = std::max(nic_path_bps, link.rate_bps);
      } else if (port_bps != 0 && port_bps != link.rate_bps) {
        return fmt::format("{} has ports of different rates", fabric_.device(nic).name);
      } else {
        port_bps = link.rate_bps;
      }
    }
    if (port_bps == 0) port_bps = 400'000'000'000;
    for (const DeviceId gpu : gpus_) {
      if (fabric_.NicOfGpu(gpu) != nic) continue;
      if (std::string why = WriteGpu(gpu, nic); !why.empty()) return why;
    }
    const auto link = FindPcieLink(nic_path_bps);
    if (!link) {
      return fmt::format("no PCIe link is as fast as {} to {}", FormatRate(nic_path_bps),
                         fabric_.device(nic).name);
    }
    const std::string& name = fabric_.device(nic).name;
    text_ += fmt::format(
        "      <pci busid=\"{}\" class=\"0x020700\" link_speed=\"{}\" link_width=\"{}\">\n"
        "        <nic>\n          <net name=\"{}\" dev=\"{}\" speed=\"{}\" port=\"1\" gdr=\"1\"/>\n"
        "        </nic>\n      </pci>\n    </pci>\n",
        busid_.at(nic), link->first, link->second, name.substr(name.find('/') + 1),
        fabric_.device(nic).local_index, port_bps / 1'000'000);
    return {};
  }

  std::string WriteGpu(DeviceId gpu, DeviceId nic) {
    const uint64_t host_bps = fabric_.link(fabric_.FindLink(gpu, nic).value()).rate_bps;
    const auto link = FindPcieLink(host_bps);
    if (!link) {
      return fmt::format("no PCIe link is as fast as {} of {}", FormatRate(host_bps),
                         fabric_.device(gpu).name);
    }
    std::string nvlinks;
    const uint32_t known_sm = fabric_.device(gpu).compute_capability;
    uint32_t sm = known_sm == 0 ? 90 : known_sm;
    for (const auto& edge : boost::make_iterator_range(boost::out_edges(gpu, fabric_.graph()))) {
      const LinkProperties& nvlink = fabric_.graph()[edge];
      if (nvlink.tier != Tier::kNvlink) continue;
      const auto peer = static_cast<DeviceId>(boost::target(edge, fabric_.graph()));
      const auto rate = std::find_if(
          kLaneRates.rbegin(), kLaneRates.rend(),
          [&](const LaneRate& known) { return known.rate_bps == nvlink.rate_bps / nvlink.lanes; });
      if (rate == kLaneRates.rend() || !busid_.contains(peer)) {
        return fmt::format("no GPU has NVLinks of {}", FormatRate(nvlink.rate_bps / nvlink.lanes));
      }
      if (known_sm == 0) sm = rate->sm;
      const bool is_gpu = fabric_.device(peer).kind == DeviceKind::kGpu;
      nvlinks += fmt::format("          <nvlink target=\"{}\" count=\"{}\" tclass=\"{}\"/>\n",
                             busid_.at(peer), nvlink.lanes, is_gpu ? "0x030200" : kNvSwitchClass);
    }
    const int32_t index = fabric_.device(gpu).local_index;
    text_ += fmt::format(
        "      <pci busid=\"{}\" class=\"0x030200\" link_speed=\"{}\" link_width=\"{}\">\n"
        "        <gpu dev=\"{}\" sm=\"{}\" rank=\"{}\" gdr=\"1\">\n{}        </gpu>\n"
        "      </pci>\n",
        busid_.at(gpu), link->first, link->second, index, sm, index, nvlinks);
    return {};
  }

  const FabricGraph& fabric_;
  const uint32_t server_;
  std::vector<DeviceId> gpus_;
  std::map<DeviceId, std::string> busid_;
  uint32_t next_bridge_ = 0;
  std::string text_;
};

}  // namespace

std::optional<ServerLayout> LoadNcclTopology(const std::string& path, Diagnostics& diagnostics) {
  std::error_code failure;
  const uint64_t bytes = std::filesystem::file_size(path, failure);
  if (!failure && bytes > kFileBytesMax) {
    diagnostics.Error({.file = path}, "",
                      fmt::format("{} bytes (expected at most {})", bytes, kFileBytesMax));
    return std::nullopt;
  }
  return Reader(path, diagnostics).Read();
}

std::string ToNcclTopology(const FabricGraph& fabric, uint32_t server, std::string& text) {
  return Writer(fabric, server).Write(text);
}

}  // namespace railyard
