// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/nccl_topology_tree.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/units/number.h"
#include "topologies/formats/xml_stream.h"
#include "topologies/graph/pcie.h"
#include "topologies/graph/spec_check.h"

namespace railyard {
namespace {

constexpr size_t kMostPciDevices = 65'536;
constexpr uint32_t kMostPcieLanes = 32;

class NcclTopologyTreeReader {
 public:
  NcclTopologyTreeReader(const std::string& path, LineFindings& findings)
      : findings_(findings), xml_(path) {}

  std::optional<NcclTopologyTree> Read() {
    ReadElements();
    if (xml_.has_error()) {
      findings_.Error(xml_.error().line, xml_.error().column,
                      fmt::format("{} (expected NCCL's topology XML)", xml_.error().what));
    } else if (!findings_.HasErrors() && !has_system_) {
      findings_.Error(1, "there is no system (expected <system version=\"1\">)");
    } else if (!findings_.HasErrors() && tree_.gpus.empty()) {
      findings_.Error(1, "there is no GPU (expected a dump of NCCL_TOPO_DUMP_FILE)");
    }
    if (findings_.HasErrors()) return std::nullopt;
    return std::move(tree_);
  }

 private:
  using Node = NcclTopologyTree::Node;
  using Gpu = NcclTopologyTree::Gpu;
  using Nvlink = NcclTopologyTree::Nvlink;
  static constexpr uint32_t kNone = NcclTopologyTree::kNone;

  void ReadElements() {
    while (!findings_.IsFull()) {
      const XmlStream::Kind kind = xml_.Next();
      if (xml_.has_error()) return;
      switch (kind) {
        case XmlStream::Kind::kOver:
          return;
        case XmlStream::Kind::kText:
        case XmlStream::Kind::kEntity:
          break;
        case XmlStream::Kind::kDocumentType:
          findings_.Error(xml_.line(), "a document type declaration (expected none)");
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
      findings_.Error(
          xml_.line(),
          fmt::format("the document is a {} (expected <system version=\"1\">)", Quote(name)));
      return false;
    }
    if (name == "system") {
      has_system_ = true;
      const std::string version = xml_.Attribute("version");
      if (version != "1") {
        findings_.Error(xml_.line(),
                        fmt::format("version {} of the format (expected \"1\")", Quote(version)));
      }
    } else if (name == "cpu") {
      if (tree_.nodes.empty()) {
        tree_.cpu = CpuVendorOfXml(xml_.Attribute("arch"), xml_.Attribute("vendor"));
      }
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
    if (name == "cpu" || name == "pci") at_ = at_ == kNone ? kNone : tree_.nodes[at_].parent;
    if (name == "pci") gpu_ = kNone;
  }

  uint32_t AddNode(Node node) {
    node.parent = at_;
    node.depth = at_ == kNone ? 0 : tree_.nodes[at_].depth + 1;
    at_ = static_cast<uint32_t>(tree_.nodes.size());
    tree_.nodes.push_back(node);
    return at_;
  }

  // A whole number of an attribute; `expected` says of which kind.
  std::optional<uint32_t> Number(const char* attribute, uint64_t least, uint64_t most) {
    const std::string text = xml_.Attribute(attribute);
    uint64_t value = 0;
    if (!ParseNumber(text, value) || value < least || value > most) {
      findings_.Error(xml_.line(), fmt::format("{} {} of {} (expected a number from {} to {})",
                                               attribute, Quote(text), xml_.name(), least, most));
      return std::nullopt;
    }
    return static_cast<uint32_t>(value);
  }

  bool StartPci() {
    if (tree_.nodes.size() >= kMostPciDevices) {
      findings_.Error(xml_.line(), fmt::format("more than {} devices", kMostPciDevices));
      return false;
    }
    const int line = xml_.line();
    const std::string busid = xml_.Attribute("busid");
    if (at_ == kNone) findings_.Error(line, "a pci outside of a cpu (expected <cpu> around it)");
    if (busid.empty()) {
      findings_.Error(line, "a pci without a busid");
    } else if (const auto [other, is_new] = line_of_busid_.emplace(busid, line); !is_new) {
      findings_.Error(
          line, fmt::format("there is already a pci {}, at line {}", Quote(busid), other->second));
    }
    const uint32_t node = AddNode({.link_bps = ReadLinkRate()});
    gpu_ = kNone;
    if (xml_.Attribute("class").starts_with("0x03")) {
      gpu_ = static_cast<uint32_t>(tree_.gpus.size());
      tree_.gpus.push_back({.node = node, .busid = busid, .line = line, .nvlinks = {}});
      if (tree_.gpus.size() > kMaxGpusPerServer) {
        findings_.Error(line, fmt::format("more than {} GPUs", kMaxGpusPerServer));
        return false;
      }
    }
    return true;
  }

  uint64_t ReadLinkRate() {
    const std::string speed = xml_.Attribute("link_speed");
    const std::string width = xml_.Attribute("link_width");
    if (speed.empty() && width.empty()) return kPcieGen3X16Bps;  // as NCCL does
    const auto generation = FindPcieSpeed(speed);
    const auto lanes = NumberOf<uint32_t>(width);
    if (!generation || !lanes || *lanes > kMostPcieLanes) {
      // Virtual machines do not know ("Unknown", 255); NCCL takes the same.
      if (!std::exchange(has_unknown_link_, true)) {
        findings_.Warning(xml_.line(),
                          fmt::format("link_speed {} and link_width {} are taken for PCIe 3.0 "
                                      "x16 (expected e.g. \"32.0 GT/s PCIe\" and \"16\")",
                                      Quote(speed), Quote(width)));
      }
      return kPcieGen3X16Bps;
    }
    // NVSwitches and some bridges say 0.
    return PciePayloadBps(*generation, *lanes == 0 ? 16 : *lanes);
  }

  void StartGpu() {
    if (elements_.size() < 2 || elements_[elements_.size() - 2] != "pci" || gpu_ == kNone) {
      findings_.Error(xml_.line(),
                      "a gpu that is not in a pci of class 0x03… (expected one around it)");
      return;
    }
    Gpu& gpu = tree_.gpus[gpu_];
    if (const auto sm = Number("sm", 1, 1'000)) gpu.sm = *sm;
    if (xml_.HasAttribute("rank")) {
      if (const auto rank = Number("rank", 0, 1'000'000)) gpu.rank = *rank;
    }
  }

  void StartNvlink() {
    if (gpu_ == kNone) {
      findings_.Error(xml_.line(), "an nvlink outside of a gpu");
      return;
    }
    const auto count = Number("count", 1, 1'024);
    Nvlink link = {.target = xml_.Attribute("target"),
                   .target_class = xml_.Attribute("tclass"),
                   .count = count.value_or(1),
                   .line = xml_.line()};
    if (link.target.empty() || link.target_class.empty()) {
      findings_.Error(link.line, "an nvlink without target or tclass");
    } else {
      tree_.gpus[gpu_].nvlinks.push_back(std::move(link));
    }
  }

  // Grace's link to its GPU takes PCIe's place.
  void StartC2c() {
    if (gpu_ == kNone) return;
    const auto count = Number("count", 1, 1'024);
    const auto megabytes_per_s = Number("bw", 1, 10'000'000);
    if (count && megabytes_per_s) {
      tree_.nodes[tree_.gpus[gpu_].node].link_bps =
          std::min<uint64_t>(kMaxLinkRateBps, uint64_t{*count} * *megabytes_per_s * 8'000'000);
    }
  }

  void StartNet() {
    if (at_ == kNone) {
      findings_.Error(xml_.line(), "a net outside of a cpu");
      return;
    }
    const std::string name = xml_.Attribute("name");
    const auto megabits_per_s = Number("speed", 1, kMaxLinkRateBps / 1'000'000);
    if (!megabits_per_s) return;
    if (!line_of_nic_.emplace(name, xml_.line()).second) {
      findings_.Error(xml_.line(), fmt::format("there is already a net {}, at line {}", Quote(name),
                                               line_of_nic_.at(name)));
    } else if (tree_.nics.size() >= kMaxGpusPerServer) {
      findings_.Error(xml_.line(), fmt::format("more than {} NICs", kMaxGpusPerServer));
    } else {
      tree_.nics.push_back(
          {.node = at_, .name = name, .rate_bps = uint64_t{*megabits_per_s} * 1'000'000});
    }
  }

  LineFindings& findings_;
  XmlStream xml_;
  NcclTopologyTree tree_;
  bool has_system_ = false;
  bool has_unknown_link_ = false;
  std::vector<std::string> elements_;  // around where the stream is
  uint32_t at_ = kNone;                // node around where the stream is
  uint32_t gpu_ = kNone;               // of the pci that was begun last
  std::map<std::string, int> line_of_busid_;
  std::map<std::string, int> line_of_nic_;
};

}  // namespace

std::optional<NcclTopologyTree> ReadNcclTopologyTree(const std::string& path,
                                                     LineFindings& findings) {
  return NcclTopologyTreeReader(path, findings).Read();
}

}  // namespace railyard
