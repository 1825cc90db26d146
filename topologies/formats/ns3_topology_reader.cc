// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/ns3_topology_reader.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/checked_reading.h"
#include "simulator/diagnostics/names.h"
#include "simulator/units/number.h"
#include "simulator/units/quantity_errors.h"
#include "simulator/units/units.h"
#include "topologies/formats/line_findings.h"
#include "topologies/formats/topology_file_loader.h"
#include "topologies/graph/spec_check.h"

namespace railyard {
namespace {

constexpr size_t kMostLineBytes = size_t{16} << 20;  // the switches' ids stand in one line
constexpr size_t kMostWordBytes = 64;

struct Word {
  std::string text;
  int line = 0;
  int column = 0;
};

// Words across lines, as a C++ stream reads them.
class Words {
 public:
  explicit Words(const std::string& path) : path_(path), file_(OpenToRead(path)) {}
  // nullopt at the end.
  std::optional<Word> Next() {
    while (true) {
      at_ = line_.find_first_not_of(" \t\r", at_);
      if (at_ != std::string::npos) break;
      if (!NextLine()) return std::nullopt;
    }
    const size_t end = std::min(line_.find_first_of(" \t\r", at_), line_.size());
    Word word = {.text = line_.substr(at_, std::min(end - at_, kMostWordBytes)),
                 .line = number_,
                 .column = static_cast<int>(at_) + 1};
    at_ = end;
    return word;
  }
  // The words that are left of the line of the last one.
  std::vector<std::string> RestOfLine() {
    std::istringstream rest(at_ < line_.size() ? line_.substr(at_) : std::string());
    std::vector<std::string> words;
    for (std::string word; rest >> word && words.size() < 16;) words.push_back(word);
    return words;
  }
  int line() const { return number_; }
  bool is_too_long() const { return is_too_long_; }

 private:
  bool NextLine() {
    line_.clear();
    at_ = 0;
    ++number_;
    bool is_any = false;
    for (int c = 0; (c = file_.get()) != std::char_traits<char>::eof();) {
      is_any = true;
      if (c == '\n') return true;
      if (line_.size() >= kMostLineBytes) {
        is_too_long_ = true;
        return false;
      }
      line_ += static_cast<char>(c);
    }
    CheckReading(file_, path_);
    return is_any;
  }

  std::string path_;
  std::ifstream file_;
  std::string line_;
  size_t at_ = 0;
  int number_ = 0;
  bool is_too_long_ = false;
};

class Ns3TopologyReader {
 public:
  Ns3TopologyReader(const std::string& path, Diagnostics& diagnostics)
      : words_(path), findings_(path, diagnostics) {}

  std::optional<Ns3Topology> Read() {
    if (ReadHeader() && ReadSwitches()) ReadLinks();
    if (words_.is_too_long()) {
      findings_.Error(words_.line(), fmt::format("a line of more than {} bytes", kMostLineBytes));
    }
    if (findings_.HasErrors()) return std::nullopt;
    return std::move(topology_);
  }

 private:
  void Error(const Word& at, std::string what) {
    findings_.Error(at.line, at.column, std::move(what));
  }

  std::optional<Word> Expect(const std::string& what) {
    auto word = words_.Next();
    if (!word) {
      findings_.Error(words_.line(), fmt::format("the file ends (expected {})", what));
    }
    return word;
  }

  std::optional<uint32_t> Number(const std::string& what, uint64_t least, uint64_t most) {
    const auto word = Expect(what);
    return word ? Number(*word, what, least, most) : std::nullopt;
  }

  std::optional<uint32_t> Number(const Word& word, const std::string& what, uint64_t least,
                                 uint64_t most) {
    uint64_t value = 0;
    if (!ParseNumber(word.text, value) || value < least || value > most) {
      Error(word, fmt::format("{} is no {} (expected a number from {} to {})", Quote(word.text),
                              what, least, most));
      return std::nullopt;
    }
    return static_cast<uint32_t>(value);
  }

  bool ReadHeader() {
    const auto nodes = Number("number of nodes", 1, kMaxTopologyDevices);
    if (!nodes) return false;
    const std::vector<std::string> rest = words_.RestOfLine();
    nodes_ = *nodes;
    topology_.is_simai = rest.size() >= 5;
    if (!topology_.is_simai && rest.size() != 2) {
      findings_.Error(
          words_.line(), 1,
          fmt::format("{} numbers in the first line (expected NODES SWITCHES LINKS, or NODES "
                      "GPUS_PER_SERVER NVSWITCHES SWITCHES LINKS GPU_TYPE)",
                      rest.size() + 1));
      return false;
    }
    std::optional<uint32_t> gpus_per_server = 1;
    std::optional<uint32_t> nvswitches = 0;
    if (topology_.is_simai) {
      gpus_per_server = Number("number of GPUs per server", 1, kMaxGpusPerServer);
      nvswitches = Number("number of NVSwitches", 0, nodes_);
    }
    const auto switches = Number("number of switches", 0, nodes_);
    const auto links = Number("number of links", 1, kMaxFabricCables);
    if (topology_.is_simai) Expect("a GPU type");
    if (!gpus_per_server || !nvswitches || !switches || !links) return false;
    topology_.gpus_per_server = *gpus_per_server;
    nvswitches_ = *nvswitches;
    switches_ = *switches;
    links_declared_ = *links;
    words_.RestOfLine();
    const uint64_t hosts = uint64_t{nodes_} - std::min(nodes_, nvswitches_ + switches_);
    if (hosts == 0 || hosts > kMaxFabricGpus) {
      findings_.Error(
          words_.line(), 1,
          fmt::format("{} nodes of which {} are switches leave {} GPUs (expected 1 to {})", nodes_,
                      nvswitches_ + switches_, hosts, kMaxFabricGpus));
      return false;
    }
    return true;
  }

  bool ReadSwitches() {
    topology_.nodes.resize(nodes_);
    for (uint32_t i = 0; i < nvswitches_ + switches_; ++i) {
      const auto word = Expect(i < nvswitches_ ? "an NVSwitch's id" : "a switch's id");
      if (!word) return false;
      const auto id = Number(*word, "node's id", 0, nodes_ - 1);
      if (!id) {
        if (findings_.IsFull()) return false;
        continue;
      }
      Ns3Node& node = topology_.nodes[*id];
      if (node.kind != Ns3NodeKind::kHost) {
        Error(*word, fmt::format("node {} is listed twice", *id));
        continue;
      }
      node = {.kind = i < nvswitches_ ? Ns3NodeKind::kNvSwitch : Ns3NodeKind::kSwitch,
              .line = word->line};
    }
    return !findings_.HasErrors();
  }

  void ReadLinks() {
    for (uint32_t i = 0; i < links_declared_ && !findings_.IsFull(); ++i) {
      const std::string what = fmt::format("link {} of {}", i + 1, links_declared_);
      const auto source = Expect(what);
      if (!source) return;
      const auto target = Expect("the other end of " + what);
      const auto rate = Expect("the rate of " + what);
      const auto delay = Expect("the delay of " + what);
      const auto error_rate = Expect("the error rate of " + what);
      if (!error_rate) return;
      ReadLink(*source, *target, *rate, *delay, *error_rate);
    }
    if (const auto word = words_.Next(); word && !findings_.HasErrors()) {
      findings_.Warning(word->line, word->column,
                        fmt::format("what follows the {} links is not read", links_declared_));
    }
  }

  void ReadLink(const Word& source_word, const Word& target_word, const Word& rate,
                const Word& delay, const Word& error_rate) {
    const auto source = Number(source_word, "node's id", 0, nodes_ - 1);
    const auto target = Number(target_word, "node's id", 0, nodes_ - 1);
    const auto rate_bps = ParseRateBps(rate.text);
    if (!rate_bps) {
      Error(rate, fmt::format("{} {}", Quote(rate.text), WhyNoRate(rate.text)));
    } else if (*rate_bps < kMinLinkRateBps || *rate_bps > kMaxLinkRateBps) {
      Error(rate, fmt::format("{} is out of range (expected 1Mbps to 100Tbps)", Quote(rate.text)));
    }
    const auto delay_ps = ParseDurationPs(delay.text);
    if (!delay_ps) {
      Error(delay, fmt::format("{} {}", Quote(delay.text), WhyNoDuration(delay.text)));
    } else if (*delay_ps > kMaxLinkDelayPs) {
      Error(delay, fmt::format("{} is out of range (expected 0s to 1s)", Quote(delay.text)));
    }
    CheckErrorRate(error_rate);
    if (source && target && *source == *target) {
      Error(target_word, fmt::format("joins node {} to itself (expected another node)", *source));
    } else if (source && target && rate_bps && delay_ps) {
      AddLink({.source = *source,
               .target = *target,
               .rate_bps = *rate_bps,
               .delay_ps = *delay_ps,
               .line = source_word.line});
    }
  }

  void AddLink(const Ns3Link& link) {
    for (const uint32_t end : {link.source, link.target}) {
      Ns3Node& node = topology_.nodes[end];
      if (node.kind == Ns3NodeKind::kHost && node.line == 1) node.line = link.line;
    }
    topology_.links.push_back(link);
  }

  void CheckErrorRate(const Word& word) {
    double value = 0;
    if (!ParseNumber(word.text, value) || !(value >= 0 && value <= 1)) {
      Error(word, fmt::format("{} is not an error rate (expected 0 to 1)", Quote(word.text)));
    } else if (value > 0 && !has_error_rate_) {
      has_error_rate_ = true;
      findings_.Warning(word.line, word.column,
                        "error rates are not used: cables lose nothing by themselves");
    }
  }

  Words words_;
  LineFindings findings_;
  Ns3Topology topology_;
  bool has_error_rate_ = false;
  uint32_t nodes_ = 0;
  uint32_t nvswitches_ = 0;
  uint32_t switches_ = 0;
  uint32_t links_declared_ = 0;
};

}  // namespace

std::optional<Ns3Topology> ReadNs3Topology(const std::string& path, Diagnostics& diagnostics) {
  return Ns3TopologyReader(path, diagnostics).Read();
}

}  // namespace railyard
