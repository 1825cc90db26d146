// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/ns3_topology_loader.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/units/units.h"
#include "topologies/spec_check.h"
#include "topologies/topology_file_loader.h"
#include "topologies/topology_message_loader.h"

namespace railyard {
namespace {

using Part = TopologyMessage::Part;

constexpr size_t kMostLineBytes = size_t{16} << 20;  // the switches' ids stand in one line
constexpr size_t kMostWordBytes = 64;
constexpr int kMostFindings = 100;

struct Word {
  std::string text;
  int line = 0;
  int column = 0;
};

// Words across lines, as a C++ stream reads them.
class Words {
 public:
  explicit Words(const std::string& path) : file_(path) {
    if (!file_) throw EnvironmentError(fmt::format("cannot read {}", path));
  }
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
    return is_any;
  }

  std::ifstream file_;
  std::string line_;
  size_t at_ = 0;
  int number_ = 0;
  bool is_too_long_ = false;
};

enum class NodeKind : uint8_t { kHost, kNvSwitch, kSwitch };

struct Link {
  uint32_t source = 0;
  uint32_t target = 0;
  uint64_t rate_bps = 0;
  int64_t delay_ps = 0;
  int line = 0;
};

class Reader {
 public:
  Reader(const std::string& path, Diagnostics& diagnostics)
      : path_(path), diagnostics_(diagnostics), words_(path), message_(path) {}

  std::optional<FabricGraph> Read() {
    const int errors_before = diagnostics_.error_count();
    if (ReadHeader() && ReadSwitches()) ReadLinks();
    if (words_.is_too_long()) {
      Error({.text = {}, .line = words_.line(), .column = 0},
            fmt::format("a line of more than {} bytes", kMostLineBytes));
    }
    if (diagnostics_.error_count() > errors_before) return std::nullopt;
    PlaceHosts();
    PlaceNvSwitches();
    if (diagnostics_.error_count() > errors_before) return std::nullopt;
    AddDevices();
    AddLinks();
    return message_.Load(diagnostics_);
  }

 private:
  void Error(const Word& at, std::string what) {
    if (++errors_ > kMostFindings) return;
    diagnostics_.Error({.file = path_, .line = at.line, .column = at.column}, "", std::move(what));
  }
  bool IsOver() const { return errors_ >= kMostFindings; }

  std::optional<Word> Expect(const std::string& what) {
    auto word = words_.Next();
    if (!word) {
      Error({.text = {}, .line = words_.line(), .column = 0},
            fmt::format("the file ends (expected {})", what));
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
    const char* const end = word.text.data() + word.text.size();
    const auto [stop, error] = std::from_chars(word.text.data(), end, value);
    if (error != std::errc() || stop != end || value < least || value > most) {
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
    is_simai_ = rest.size() >= 5;
    if (!is_simai_ && rest.size() != 2) {
      Error({.text = {}, .line = words_.line(), .column = 1},
            fmt::format("{} numbers in the first line (expected NODES SWITCHES LINKS, or NODES "
                        "GPUS_PER_SERVER NVSWITCHES SWITCHES LINKS GPU_TYPE)",
                        rest.size() + 1));
      return false;
    }
    std::optional<uint32_t> gpus_per_server = 1;
    std::optional<uint32_t> nvswitches = 0;
    if (is_simai_) {
      gpus_per_server = Number("number of GPUs per server", 1, kMaxGpusPerServer);
      nvswitches = Number("number of NVSwitches", 0, nodes_);
    }
    const auto switches = Number("number of switches", 0, nodes_);
    const auto links = Number("number of links", 1, kMaxFabricCables);
    if (is_simai_) Expect("a GPU type");
    if (!gpus_per_server || !nvswitches || !switches || !links) return false;
    gpus_per_server_ = *gpus_per_server;
    nvswitches_ = *nvswitches;
    switches_ = *switches;
    links_declared_ = *links;
    words_.RestOfLine();
    const uint64_t hosts = uint64_t{nodes_} - std::min(nodes_, nvswitches_ + switches_);
    if (hosts == 0 || hosts > kMaxFabricGpus) {
      Error({.text = {}, .line = words_.line(), .column = 1},
            fmt::format("{} nodes of which {} are switches leave {} GPUs (expected 1 to {})",
                        nodes_, nvswitches_ + switches_, hosts, kMaxFabricGpus));
      return false;
    }
    return true;
  }

  bool ReadSwitches() {
    kinds_.resize(nodes_, NodeKind::kHost);
    lines_.resize(nodes_, 1);
    for (uint32_t i = 0; i < nvswitches_ + switches_; ++i) {
      const auto word = Expect(i < nvswitches_ ? "an NVSwitch's id" : "a switch's id");
      if (!word) return false;
      const auto id = Number(*word, "node's id", 0, nodes_ - 1);
      if (!id) {
        if (IsOver()) return false;
        continue;
      }
      if (kinds_[*id] != NodeKind::kHost) {
        Error(*word, fmt::format("node {} is listed twice", *id));
        continue;
      }
      kinds_[*id] = i < nvswitches_ ? NodeKind::kNvSwitch : NodeKind::kSwitch;
      lines_[*id] = word->line;
    }
    return errors_ == 0;
  }

  void ReadLinks() {
    for (uint32_t i = 0; i < links_declared_ && !IsOver(); ++i) {
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
    if (const auto word = words_.Next(); word && errors_ == 0) {
      diagnostics_.Warning({.file = path_, .line = word->line, .column = word->column}, "",
                           fmt::format("what follows the {} links is not read", links_declared_));
    }
  }

  void ReadLink(const Word& source_word, const Word& target_word, const Word& rate,
                const Word& delay, const Word& error_rate) {
    const auto source = Number(source_word, "node's id", 0, nodes_ - 1);
    const auto target = Number(target_word, "node's id", 0, nodes_ - 1);
    const auto rate_bps = ParseRateBps(rate.text);
    if (!rate_bps) {
      Error(rate, fmt::format("{} is not a rate (expected {})", Quote(rate.text), kExpectedRate));
    } else if (*rate_bps < kMinLinkRateBps || *rate_bps > kMaxLinkRateBps) {
      Error(rate, fmt::format("{} is out of range (expected 1Mbps to 100Tbps)", Quote(rate.text)));
    }
    const auto delay_ps = ParseDurationPs(delay.text);
    if (!delay_ps) {
      Error(delay,
            fmt::format("{} is not a delay (expected {})", Quote(delay.text), kExpectedDuration));
    } else if (*delay_ps > kMaxLinkDelayPs) {
      Error(delay, fmt::format("{} is out of range (expected 0s to 1s)", Quote(delay.text)));
    }
    CheckErrorRate(error_rate);
    if (source && target && *source == *target) {
      Error(target_word, fmt::format("joins node {} to itself (expected another node)", *source));
    } else if (source && target && rate_bps && delay_ps) {
      links_.push_back({.source = *source,
                        .target = *target,
                        .rate_bps = *rate_bps,
                        .delay_ps = *delay_ps,
                        .line = source_word.line});
    }
  }

  void CheckErrorRate(const Word& word) {
    double value = 0;
    const char* const end = word.text.data() + word.text.size();
    const auto [stop, error] = std::from_chars(word.text.data(), end, value);
    if (error != std::errc() || stop != end || !(value >= 0 && value <= 1)) {
      Error(word, fmt::format("{} is not an error rate (expected 0 to 1)", Quote(word.text)));
    } else if (value > 0 && !has_error_rate_) {
      has_error_rate_ = true;
      diagnostics_.Warning({.file = path_, .line = word.line, .column = word.column}, "",
                           "error rates are not used: cables lose nothing by themselves");
    }
  }

  // Hosts are GPUs in the order of their ids.
  void PlaceHosts() {
    FindLevels();
    gpu_.resize(nodes_);
    uint32_t next = 0;
    for (uint32_t id = 0; id < nodes_; ++id) {
      if (kinds_[id] == NodeKind::kHost) gpu_[id] = next++;
    }
    has_nic_.resize(next);
    host_rate_bps_.resize(next);
    for (const Link& link : links_) {
      for (const uint32_t end : {link.source, link.target}) {
        if (kinds_[end] == NodeKind::kHost && lines_[end] == 1) lines_[end] = link.line;
      }
      if (TierOf(link) == Tier::kNvlink) continue;
      for (const uint32_t end : {link.source, link.target}) {
        if (kinds_[end] != NodeKind::kHost) continue;
        has_nic_[gpu_[end]] = true;
        host_rate_bps_[gpu_[end]] =
            std::min(kMaxLinkRateBps, host_rate_bps_[gpu_[end]] + link.rate_bps);
      }
    }
  }

  uint32_t ServerOf(uint32_t gpu) const { return gpu / gpus_per_server_; }

  // An NVSwitch is of the server whose GPUs hang on it.
  void PlaceNvSwitches() {
    constexpr uint32_t kNone = UINT32_MAX;
    server_of_nvswitch_.assign(nodes_, kNone);
    std::unordered_map<uint32_t, uint32_t> count_of_server;
    for (const Link& link : links_) {
      for (const auto& [nvswitch, other] :
           {std::pair(link.source, link.target), std::pair(link.target, link.source)}) {
        if (kinds_[nvswitch] != NodeKind::kNvSwitch) continue;
        const Word at = {.text = {}, .line = link.line, .column = 1};
        if (kinds_[other] != NodeKind::kHost) {
          Error(at, fmt::format("NVSwitch {} is cabled to node {} (expected GPUs only)", nvswitch,
                                other));
          continue;
        }
        const uint32_t server = ServerOf(gpu_[other]);
        if (server_of_nvswitch_[nvswitch] == kNone) {
          server_of_nvswitch_[nvswitch] = server;
          index_of_nvswitch_[nvswitch] = count_of_server[server]++;
        } else if (server_of_nvswitch_[nvswitch] != server) {
          Error(at,
                fmt::format("NVSwitch {} joins GPUs of servers {} and {} (expected GPUs of one)",
                            nvswitch, server_of_nvswitch_[nvswitch], server));
        }
      }
    }
    for (uint32_t id = 0; id < nodes_; ++id) {
      if (kinds_[id] == NodeKind::kNvSwitch && server_of_nvswitch_[id] == kNone) {
        Error({.text = {}, .line = lines_[id], .column = 1},
              fmt::format("NVSwitch {} has no link (expected at least one)", id));
      }
    }
  }

  // Cables between a switch and the nearest one with a host.
  void FindLevels() {
    level_.assign(nodes_, UINT32_MAX);
    std::vector<std::vector<uint32_t>> neighbours(nodes_);
    std::vector<uint32_t> queue;
    for (const Link& link : links_) {
      const bool is_switch[] = {kinds_[link.source] == NodeKind::kSwitch,
                                kinds_[link.target] == NodeKind::kSwitch};
      if (is_switch[0] && is_switch[1]) {
        neighbours[link.source].push_back(link.target);
        neighbours[link.target].push_back(link.source);
      } else if (is_switch[0] || is_switch[1]) {
        const uint32_t at = is_switch[0] ? link.source : link.target;
        if (level_[at] == 0) continue;
        level_[at] = 0;
        queue.push_back(at);
      }
    }
    for (size_t i = 0; i < queue.size(); ++i) {
      for (const uint32_t next : neighbours[queue[i]]) {
        if (level_[next] != UINT32_MAX) continue;
        level_[next] = level_[queue[i]] + 1;
        queue.push_back(next);
      }
    }
  }

  Tier TierOf(const Link& link) const {
    const NodeKind a = kinds_[link.source];
    const NodeKind b = kinds_[link.target];
    if (a == NodeKind::kNvSwitch || b == NodeKind::kNvSwitch) return Tier::kNvlink;
    if (a == NodeKind::kHost && b == NodeKind::kHost) {
      const bool is_inside =
          is_simai_ && ServerOf(gpu_[link.source]) == ServerOf(gpu_[link.target]);
      return is_inside ? Tier::kNvlink : Tier::kDirect;
    }
    if (a == NodeKind::kHost || b == NodeKind::kHost) return Tier::kNicLeaf;
    const auto [low, high] = std::minmax(level_[link.source], level_[link.target]);
    if (low == high) return Tier::kDirect;
    return low == 0 ? Tier::kLeafSpine : Tier::kSpineCore;
  }

  std::string NameOf(uint32_t id) const {
    if (kinds_[id] == NodeKind::kSwitch) return fmt::format("switch{}", id);
    if (kinds_[id] == NodeKind::kNvSwitch) {
      return fmt::format("server{}/nvswitch{}", server_of_nvswitch_[id], index_of_nvswitch_.at(id));
    }
    return fmt::format("server{}/gpu{}", ServerOf(gpu_[id]), gpu_[id] % gpus_per_server_);
  }

  std::string NicNameOf(uint32_t id) const {
    return fmt::format("server{}/nic{}", ServerOf(gpu_[id]), gpu_[id] % gpus_per_server_);
  }

  void AddDevice(int line, const std::string& name, const char* kind, uint32_t server,
                 uint32_t index) {
    message_.StartDevice(line);
    message_.Set(Part::kDevice, "name", name);
    message_.Set(Part::kDevice, "kind", kind);
    if (std::string_view(kind) == "SWITCH") return;
    message_.Set(Part::kDevice, "server", fmt::format("{}", server));
    message_.Set(Part::kDevice, "local_index", fmt::format("{}", index));
  }

  void AddCable(int line, const std::string& from, const std::string& to, Tier tier,
                uint64_t rate_bps, int64_t delay_ps) {
    message_.StartLink(line);
    message_.Set(Part::kLink, "from", from);
    message_.Set(Part::kLink, "to", to);
    message_.Set(Part::kLink, "tier", std::string(TierName(tier)));
    message_.Set(Part::kLink, "rate", fmt::format("{}bps", rate_bps));
    message_.Set(Part::kLink, "delay", fmt::format("{}ps", delay_ps));
  }

  void AddDevices() {
    for (uint32_t id = 0; id < nodes_; ++id) {
      if (kinds_[id] == NodeKind::kSwitch) {
        AddDevice(lines_[id], NameOf(id), "SWITCH", 0, 0);
      } else if (kinds_[id] == NodeKind::kNvSwitch) {
        AddDevice(lines_[id], NameOf(id), "NVSWITCH", server_of_nvswitch_[id],
                  index_of_nvswitch_.at(id));
      } else {
        const uint32_t server = ServerOf(gpu_[id]);
        const uint32_t index = gpu_[id] % gpus_per_server_;
        AddDevice(lines_[id], NameOf(id), "GPU", server, index);
        if (has_nic_[gpu_[id]]) AddDevice(lines_[id], NicNameOf(id), "NIC", server, index);
      }
    }
  }

  void AddLinks() {
    for (uint32_t id = 0; id < nodes_; ++id) {
      if (kinds_[id] != NodeKind::kHost || !has_nic_[gpu_[id]]) continue;
      AddCable(lines_[id], NameOf(id), NicNameOf(id), Tier::kHost, host_rate_bps_[gpu_[id]], 0);
    }
    for (const Link& link : links_) {
      const Tier tier = TierOf(link);
      const auto end = [&](uint32_t id) {
        return kinds_[id] == NodeKind::kHost && tier != Tier::kNvlink ? NicNameOf(id) : NameOf(id);
      };
      AddCable(link.line, end(link.source), end(link.target), tier, link.rate_bps, link.delay_ps);
    }
  }

  const std::string& path_;
  Diagnostics& diagnostics_;
  Words words_;
  TopologyMessage message_;
  int errors_ = 0;
  bool is_simai_ = false;
  bool has_error_rate_ = false;
  uint32_t nodes_ = 0;
  uint32_t gpus_per_server_ = 1;
  uint32_t nvswitches_ = 0;
  uint32_t switches_ = 0;
  uint32_t links_declared_ = 0;
  std::vector<NodeKind> kinds_;  // by node, as all that follows
  std::vector<int> lines_;       // where a finding about the node belongs
  std::vector<uint32_t> gpu_;    // number of the GPU that a host is
  std::vector<uint32_t> server_of_nvswitch_;
  std::unordered_map<uint32_t, uint32_t> index_of_nvswitch_;
  std::vector<uint32_t> level_;
  std::vector<Link> links_;
  std::vector<bool> has_nic_;  // by GPU
  std::vector<uint64_t> host_rate_bps_;
};

// Which node each device is; a NIC is its GPU's. Or why there is none.
class Nodes {
 public:
  explicit Nodes(const FabricGraph& fabric) : fabric_(fabric), node_(fabric.device_count()) {}

  std::string Number() {
    uint32_t next = 0;
    for (const DeviceId gpu : fabric_.gpus()) node_[gpu] = next++;
    for (const DeviceKind kind : {DeviceKind::kNvSwitch, DeviceKind::kSwitch}) {
      for (DeviceId id = 0; id < fabric_.device_count(); ++id) {
        if (fabric_.device(id).kind != kind) continue;
        (kind == DeviceKind::kSwitch ? switches_ : nvswitches_).push_back(next);
        node_[id] = next++;
      }
    }
    count_ = next;
    return NumberNics();
  }

  uint32_t Of(DeviceId id) const { return node_[id]; }
  uint32_t count() const { return count_; }
  const std::vector<uint32_t>& nvswitches() const { return nvswitches_; }
  const std::vector<uint32_t>& switches() const { return switches_; }
  // What HOST cables add to the delay of a NIC's own.
  int64_t HostDelay(DeviceId nic) const {
    const auto found = host_delay_ps_.find(nic);
    return found == host_delay_ps_.end() ? 0 : found->second;
  }
  // GPUs of every server, if it is the same number; in the order of servers. Else 0.
  uint32_t GpusPerServer() const {
    const size_t servers = fabric_.server_count();
    const size_t each = fabric_.gpus().size() / servers;
    for (size_t i = 0; i < fabric_.gpus().size(); ++i) {
      const Device& gpu = fabric_.device(fabric_.gpus()[i]);
      if (static_cast<size_t>(gpu.server) != i / each) return 0;
    }
    return static_cast<uint32_t>(each);
  }

 private:
  std::string NumberNics() {
    std::vector<bool> has_nic(fabric_.device_count());
    for (DeviceId id = 0; id < fabric_.device_count(); ++id) {
      const DeviceKind kind = fabric_.device(id).kind;
      if (kind == DeviceKind::kPcieSwitch || kind == DeviceKind::kHostBridge) {
        return fmt::format("{} is a {}", fabric_.device(id).name, DeviceKindName(kind));
      }
      if (kind != DeviceKind::kNic) continue;
      std::optional<DeviceId> gpu;
      for (const auto& edge : boost::make_iterator_range(boost::out_edges(id, fabric_.graph()))) {
        if (fabric_.graph()[edge].tier != Tier::kHost) continue;
        if (gpu) return fmt::format("GPUs share {}", fabric_.device(id).name);
        gpu = static_cast<DeviceId>(boost::target(edge, fabric_.graph()));
        host_delay_ps_[id] = fabric_.graph()[edge].propagation_ps;
      }
      if (!gpu) return fmt::format("{} has no GPU", fabric_.device(id).name);
      if (has_nic[*gpu]) {
        return fmt::format("{} has several NICs", fabric_.device(*gpu).name);
      }
      has_nic[*gpu] = true;
      node_[id] = node_[*gpu];
    }
    return {};
  }

  const FabricGraph& fabric_;
  std::vector<uint32_t> node_;
  uint32_t count_ = 0;
  std::vector<uint32_t> nvswitches_;
  std::vector<uint32_t> switches_;
  std::unordered_map<DeviceId, int64_t> host_delay_ps_;
};

}  // namespace

std::optional<FabricGraph> LoadNs3Topology(const std::string& path, Diagnostics& diagnostics) {
  return Reader(path, diagnostics).Read();
}

std::string ToNs3Topology(const FabricGraph& fabric, std::string& text) {
  Nodes nodes(fabric);
  if (std::string why = nodes.Number(); !why.empty()) return why;
  const uint32_t gpus_per_server = nodes.GpusPerServer();
  if (gpus_per_server == 0) return "servers have different numbers of GPUs";
  std::string links;
  uint32_t count = 0;
  for (const Cable& cable : fabric.cables()) {
    const LinkProperties& link = fabric.link(cable.forward);
    if (link.tier == Tier::kHost) continue;
    const DeviceId a = fabric.link_source(cable.forward);
    const DeviceId b = fabric.link_target(cable.forward);
    links += fmt::format("{} {} {}bps {}ps 0\n", nodes.Of(a), nodes.Of(b), link.rate_bps,
                         link.propagation_ps + nodes.HostDelay(a) + nodes.HostDelay(b));
    ++count;
  }
  const bool is_simai = gpus_per_server > 1 || !nodes.nvswitches().empty();
  text = is_simai ? fmt::format("{} {} {} {} {} NONE\n", nodes.count(), gpus_per_server,
                                nodes.nvswitches().size(), nodes.switches().size(), count)
                  : fmt::format("{} {} {}\n", nodes.count(), nodes.switches().size(), count);
  for (const uint32_t id : nodes.nvswitches()) text += fmt::format("{} ", id);
  for (const uint32_t id : nodes.switches()) text += fmt::format("{} ", id);
  text += "\n" + links;
  return {};
}

}  // namespace railyard
