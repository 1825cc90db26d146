// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/topology_file_loader.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/units/units.h"
#include "topologies/formats/topology.pb.h"
#include "topologies/generators/circuit_schedule.h"
#include "topologies/graph/lattice.h"
#include "topologies/graph/spec_check.h"
#include "topologies/platforms/cpu_vendor_reader.h"

namespace railyard {
namespace {

constexpr size_t kMaxNameLength = 200;
// Looking for the closest of many names is slow, and the first guesses are the useful ones: after
// this many comparisons unknown names are reported without a guess.
constexpr size_t kMaxComparedNames = 1'000'000;

// A name that can stand in a cable's ("A--B#1") and a link's ("A>B").
bool IsDeviceName(std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._:-";
  return name.size() <= kMaxNameLength && name.find("--") == std::string_view::npos &&
         !name.starts_with('-') && !name.ends_with('-') &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

bool IsOfPcie(DeviceKind kind) {
  return kind != DeviceKind::kSwitch && kind != DeviceKind::kNvSwitch;
}

// Returns which devices a link of the tier may join if (a, b), in either order, are not among them;
// empty if they are.
std::string WhyNotJoined(Tier tier, DeviceKind a, DeviceKind b) {
  using enum DeviceKind;
  const auto ends = std::minmax({a, b});
  const auto are = [&](DeviceKind first, DeviceKind second) {
    return ends == std::minmax({first, second});
  };
  const auto unless = [](bool allowed, const char* expected) {
    return allowed ? std::string() : std::string(expected);
  };
  switch (tier) {
    case Tier::kNvlink:
      return unless(are(kGpu, kNvSwitch) || are(kGpu, kGpu), "a GPU and an NVSWITCH or two GPUs");
    case Tier::kHost:
      return unless(IsOfPcie(a) && IsOfPcie(b) && !are(kGpu, kGpu) && !are(kNic, kNic),
                    "a GPU and a NIC, or one of them or a PCIE_SWITCH or HOST_BRIDGE and a "
                    "PCIE_SWITCH or HOST_BRIDGE");
    case Tier::kNicLeaf:
      return unless(are(kNic, kSwitch), "a NIC and a SWITCH");
    case Tier::kDirect:
      return unless(are(kGpu, kGpu) || are(kNic, kNic) || are(kSwitch, kSwitch),
                    "two GPUs, two NICs or two SWITCHes");
    case Tier::kLeafSpine:
    case Tier::kSpineCore:
    case Tier::kLocal:
    case Tier::kGlobal:
      return unless(are(kSwitch, kSwitch), "two SWITCHes");
  }
  return "no devices";
}

class TopologyReader {
 public:
  TopologyReader(const ProtoCursor& topology, Diagnostics& diagnostics)
      : topology_(topology),
        diagnostics_(diagnostics),
        errors_before_(ErrorCount()),
        names_are_known_(!topology.file().mistakes.contains("devices")) {}

  std::optional<FabricGraph> Read() && {
    fabric_.name =
        topology_.Text("name", std::filesystem::path(topology_.file().path).stem().string());
    ReadPolicies();
    ReadCircuits();
    CheckCounts();
    if (ErrorCount() > errors_before_) return std::nullopt;
    for (int i = 0; i < topology_.Size("devices"); ++i) ReadDevice(i);
    CheckServers();
    for (int i = 0; i < topology_.Size("links"); ++i) ReadLink(topology_.Child("links", i));
    // If a link was refused, a device without one needs no further finding.
    if (IsRightSoFar()) CheckEveryDeviceIsCabled();
    if (!IsRightSoFar()) return std::nullopt;
    return std::move(fabric_);
  }

 private:
  // An unchanged number means that all was well in between.
  int ErrorCount() const { return diagnostics_.error_count(); }
  bool IsRightSoFar() const {
    return ErrorCount() == errors_before_ && !topology_.IsDoubtfulSelf();
  }
  void Error(const ProtoCursor& cursor, const char* field, std::string what) {
    cursor.Error(diagnostics_, field, std::move(what));
  }
  void Missing(const ProtoCursor& cursor, const char* field, std::string_view expected) {
    cursor.Missing(diagnostics_, field, expected);
  }

  void ReadPolicies() {
    const auto& proto = topology_.As<protos::Topology>();
    // The enumerations are in the same order, after UNSPECIFIED.
    if (proto.routing() != protos::Topology::ROUTING_UNSPECIFIED) {
      fabric_.routing = static_cast<RoutingPolicy>(proto.routing() - 1);
    }
    if (proto.deadlock_avoidance() != protos::Topology::DEADLOCK_AVOIDANCE_UNSPECIFIED) {
      fabric_.deadlock_avoidance = static_cast<DeadlockAvoidance>(proto.deadlock_avoidance() - 1);
    }
  }

  void ReadCircuits() {
    if (!topology_.Has("circuit_slots")) {
      for (const char* field : {"slot_duration", "dark_time", "drain_time"}) {
        if (!topology_.Has(field)) continue;
        Error(topology_, field, "has no effect without circuit_slots (expected both or neither)");
      }
      return;
    }
    CircuitSchedule circuits;
    circuits.slots = static_cast<uint32_t>(
        topology_.Number(diagnostics_, "circuit_slots", 2, 2, kMaxCircuitSlots));
    if (!topology_.Has("slot_duration")) Missing(topology_, "slot_duration", kExpectedDuration);
    circuits.slot_ps = ReadDelay(topology_, "slot_duration");
    circuits.dark_ps = ReadDelay(topology_, "dark_time");
    circuits.drain_ps = ReadDelay(topology_, "drain_time");
    if (topology_.Has("slot_duration") && circuits.slot_ps < kSlotPsMin) {
      Error(topology_, "slot_duration",
            fmt::format("{} is out of range (expected {} to 1s)", FormatDuration(circuits.slot_ps),
                        FormatDuration(kSlotPsMin)));
    } else if (topology_.Has("slot_duration") &&
               circuits.dark_ps + circuits.drain_ps >= circuits.slot_ps) {
      Error(topology_, "slot_duration",
            fmt::format("{} leave no time between dark_time and drain_time (expected more than the "
                        "two together)",
                        FormatDuration(circuits.slot_ps)));
    }
    fabric_.circuits = std::move(circuits);
  }

  // Reads a circuit's slots: ascending numbers below the schedule's count, but not all of them.
  void ReadSlots(const ProtoCursor& link, uint32_t cable) {
    if (!link.Has("slots")) return;
    if (!fabric_.circuits) {
      Error(link, "slots", "has no effect without circuit_slots (expected both or neither)");
      return;
    }
    const LinkId forward = fabric_.cables()[cable].forward;
    for (const DeviceId end : {fabric_.link_source(forward), fabric_.link_target(forward)}) {
      if (fabric_.device(end).kind == DeviceKind::kSwitch) continue;
      Error(link, "slots", "is for cables between SWITCHes");
      return;
    }
    const std::string text = link.Text("slots", "");
    std::vector<uint32_t> slots;
    const char* at = text.data();
    const char* const end = text.data() + text.size();
    while (slots.size() < fabric_.circuits->slots) {
      uint32_t slot = 0;
      const auto [stop, error] = std::from_chars(at, end, slot);
      if (error != std::errc() || slot >= fabric_.circuits->slots ||
          (!slots.empty() && slot <= slots.back())) {
        break;
      }
      slots.push_back(slot);
      if (stop == end) {
        fabric_.circuits->slots_of_cable.emplace(cable, std::move(slots));
        return;
      }
      if (*stop != '.') break;
      at = stop + 1;
    }
    Error(
        link, "slots",
        fmt::format("{} are no configurations (expected ascending numbers below {}, e.g. \"0.3\")",
                    Quote(text), fabric_.circuits->slots));
  }

  void CheckCounts() {
    if (topology_.Size("devices") == 0) Missing(topology_, "devices", "at least one GPU");
    const auto at_most = [&](const char* field, int max) {
      if (topology_.Size(field) <= max) return;
      Error(topology_, field,
            fmt::format("there are {} (expected at most {})", topology_.Size(field), max));
    };
    at_most("devices", kMaxTopologyDevices);
    at_most("links", static_cast<int>(kMaxFabricCables));
  }

  // A number that must be there and be at most `max`.
  std::optional<int32_t> ReadIndex(const ProtoCursor& device, const char* field, uint32_t max) {
    if (!device.Has(field)) {
      Missing(device, field, "a number; only a SWITCH belongs to no server");
      return std::nullopt;
    }
    const uint64_t value = device.Number(diagnostics_, field, UINT64_MAX, 0, max);
    if (value == UINT64_MAX) return std::nullopt;
    return static_cast<int32_t>(value);
  }

  int64_t ReadDelay(const ProtoCursor& cursor, const char* field) {
    const int64_t delay_ps = cursor.DurationPs(diagnostics_, field, 0);
    if (delay_ps > kMaxLinkDelayPs) {
      Error(cursor, field,
            fmt::format("{} is out of range (expected 0s to 1s)", FormatDuration(delay_ps)));
    }
    return delay_ps;
  }

  void ReadDevice(int position) {
    const ProtoCursor cursor = topology_.Child("devices", position);
    const auto& proto = cursor.As<protos::TopologyDevice>();
    const int errors_before = ErrorCount();
    Device device = {.name = proto.name()};
    if (cursor.IsDoubtful("name")) names_are_known_ = false;
    if (!cursor.Has("name")) {
      Missing(cursor, "name", R"(a name, e.g. "server0/gpu0")");
    } else if (device.name.empty() || !IsDeviceName(device.name)) {
      Error(cursor, "name",
            fmt::format("{} is not a device name (expected letters, digits and / . _ : - inside, "
                        "no \"--\", at most {} characters)",
                        Quote(device.name), kMaxNameLength));
    } else if (const auto [other, is_new] = position_by_name_.emplace(device.name, position);
               !is_new) {
      Error(cursor, "name", fmt::format("there is already a device {}", Quote(device.name)));
      NoteOther(other->second, "name");
    }
    if (proto.kind() == protos::TopologyDevice::KIND_UNSPECIFIED ||
        !protos::TopologyDevice::Kind_IsValid(proto.kind())) {
      Missing(cursor, "kind", "GPU, NVSWITCH, NIC, SWITCH, PCIE_SWITCH or HOST_BRIDGE");
    } else {
      ReadKindAndPlace(cursor, proto, position, device);
    }
    device.forwarding_latency_ps = ReadDelay(cursor, "forwarding_latency");
    ReadCoordinates(cursor, device);
    if (ErrorCount() == errors_before && !cursor.IsDoubtfulSelf()) {
      fabric_.AddDevice(std::move(device));
    }
  }

  void ReadCoordinates(const ProtoCursor& cursor, Device& device) {
    if (!cursor.Has("coordinates")) return;
    const std::string text = cursor.Text("coordinates", "");
    if (device.kind != DeviceKind::kSwitch) {
      Error(cursor, "coordinates",
            fmt::format("has no effect on a {} (expected only on a SWITCH)",
                        DeviceKindName(device.kind)));
      return;
    }
    const char* at = text.data();
    const char* const end = at + text.size();
    while (device.coordinates.size() < kMaxDimensions) {
      uint16_t value = 0;
      const auto [stop, error] = std::from_chars(at, end, value);
      if (error != std::errc()) break;
      device.coordinates.push_back(value);
      if (stop == end) return;
      if (*stop != '.') break;
      at = stop + 1;
    }
    Error(cursor, "coordinates",
          fmt::format("{} is not a position (expected 1 to {} numbers below 65536, e.g. \"3.0.2\")",
                      Quote(text), kMaxDimensions));
  }

  void ReadKindAndPlace(const ProtoCursor& cursor, const protos::TopologyDevice& proto,
                        int position, Device& device) {
    // The enumerations are in the same order, after UNSPECIFIED.
    device.kind = static_cast<DeviceKind>(proto.kind() - 1);
    const bool forwards = device.kind != DeviceKind::kGpu && device.kind != DeviceKind::kNic;
    if (!forwards && cursor.Has("forwarding_latency")) {
      Error(cursor, "forwarding_latency",
            fmt::format("has no effect on a {} (expected only on what forwards)",
                        DeviceKindName(device.kind)));
    }
    for (const char* field : {"compute_capability", "peer_access", "cpu"}) {
      if (device.kind == DeviceKind::kGpu || !cursor.Has(field)) continue;
      Error(cursor, field,
            fmt::format("has no effect on a {} (expected only on a GPU)",
                        DeviceKindName(device.kind)));
    }
    device.compute_capability = proto.compute_capability();
    device.peer_access = cursor.Flag("peer_access", true);
    ReadCpuVendor(cursor, "cpu", device.cpu, diagnostics_);
    if (device.kind == DeviceKind::kSwitch) {
      for (const char* field : {"server", "local_index"}) {
        if (!cursor.Has(field)) continue;
        Error(cursor, field, "has no effect on a SWITCH (expected only on a device in a server)");
      }
      return;
    }
    const auto server = ReadIndex(cursor, "server", kMaxFabricGpus - 1);
    const auto local_index = ReadIndex(cursor, "local_index", kMaxLocalIndex);
    if (!server || !local_index) return;
    device.server = ServerIndex{*server};
    device.local_index = *local_index;
    places_.push_back({.server = ServerIndex{*server},
                       .kind = device.kind,
                       .local_index = *local_index,
                       .position = position});
  }

  void NoteOther(int position, const char* field) {
    const ProtoCursor other = topology_.Child("devices", position);
    diagnostics_.Note(other.Where(field), other.Path(field), "the other one is here");
  }

  // Places within servers are unique, servers have no gaps, there are GPUs and not too many.
  void CheckServers() {
    std::sort(places_.begin(), places_.end());
    // A device that was refused may have been the only GPU, or the only device of a server.
    const bool is_complete = ErrorCount() == errors_before_ && !topology_.IsDoubtful("devices");
    ServerIndex next_server{0};
    uint32_t gpus = 0;
    for (size_t i = 0; i < places_.size(); ++i) {
      const Place& place = places_[i];
      if (place.kind == DeviceKind::kGpu) ++gpus;
      if (i > 0 && places_[i - 1].SameAs(place)) {
        Error(topology_.Child("devices", place.position), "local_index",
              fmt::format("server {} already has a {} {}", place.server, DeviceKindName(place.kind),
                          place.local_index));
        NoteOther(places_[i - 1].position, "local_index");
      }
      if (is_complete && place.server > next_server) {
        Error(topology_.Child("devices", place.position), "server",
              fmt::format("there is a server {} but no server {} (expected servers numbered from "
                          "0 without gaps)",
                          place.server, next_server));
      }
      next_server = ServerIndex{place.server + 1};
    }
    if (is_complete && gpus == 0) {
      Error(topology_, "devices", "there is no GPU (expected at least one)");
    }
    if (gpus > kMaxFabricGpus) {
      Error(topology_, "devices",
            fmt::format("there are {} GPUs (expected at most {})", gpus, kMaxFabricGpus));
    }
  }

  std::optional<DeviceId> ReadEnd(const ProtoCursor& link, const char* field) {
    if (!link.Has(field)) {
      Missing(link, field, "the name of a device");
      return std::nullopt;
    }
    const std::string name = link.Text(field, "");
    if (!position_by_name_.contains(name)) {
      if (names_are_known_) Error(link, field, UnknownDevice(name));
      return std::nullopt;
    }
    // Absent if the device was refused, which has been said.
    return fabric_.FindDevice(name);
  }

  std::string UnknownDevice(const std::string& name) {
    compared_names_ += position_by_name_.size();
    if (compared_names_ > kMaxComparedNames) return fmt::format("unknown device {}", Quote(name));
    if (device_names_.empty()) {
      for (const auto& [known, position] : position_by_name_) device_names_.push_back(known);
      std::sort(device_names_.begin(), device_names_.end());
    }
    return fmt::format("unknown device {}{}", Quote(name), DidYouMean(name, device_names_));
  }

  void ReadLink(const ProtoCursor& cursor) {
    const auto& proto = cursor.As<protos::TopologyLink>();
    const int errors_before = ErrorCount();
    const auto from = ReadEnd(cursor, "from");
    const auto to = ReadEnd(cursor, "to");
    CableSpec spec;
    if (proto.tier() == protos::TopologyLink::TIER_UNSPECIFIED ||
        !protos::TopologyLink::Tier_IsValid(proto.tier())) {
      Missing(cursor, "tier",
              "NVLINK, HOST, NIC_LEAF, LEAF_SPINE, SPINE_CORE, DIRECT, LOCAL or GLOBAL");
    } else {
      // The enumerations are in the same order, after UNSPECIFIED.
      spec.tier = static_cast<Tier>(proto.tier() - 1);
      if (from && to) CheckEnds(cursor, spec.tier, *from, *to);
    }
    spec.rate_bps = ReadRate(cursor);
    spec.propagation_ps = ReadDelay(cursor, "delay");
    spec.lanes = static_cast<uint32_t>(cursor.Number(diagnostics_, "lanes", 1, 1, kMaxLanes));
    if (ErrorCount() == errors_before && !cursor.IsDoubtfulSelf() && from && to) {
      ReadSlots(cursor, fabric_.AddCable(*from, *to, spec));
    }
  }

  void CheckEnds(const ProtoCursor& cursor, Tier tier, DeviceId from_id, DeviceId to_id) {
    const Device& from = fabric_.device(from_id);
    const Device& to = fabric_.device(to_id);
    if (from_id == to_id) {
      Error(cursor, "to", fmt::format("joins {} to itself (expected another device)", from.name));
      return;
    }
    if (const std::string expected = WhyNotJoined(tier, from.kind, to.kind); !expected.empty()) {
      Error(cursor, "tier",
            fmt::format("{} does not join {} ({}) and {} ({}) (expected {})", TierName(tier),
                        from.name, DeviceKindName(from.kind), to.name, DeviceKindName(to.kind),
                        expected));
    } else if (tier == Tier::kHost && from.server != to.server) {
      Error(cursor, "to",
            fmt::format("HOST joins {} of server {} and {} of server {} (expected one server)",
                        from.name, from.server, to.name, to.server));
    }
  }

  uint64_t ReadRate(const ProtoCursor& cursor) {
    if (!cursor.Has("rate")) {
      Missing(cursor, "rate", kExpectedRate);
      return 0;
    }
    // Unreadable: reported by the reader, and any rate will do.
    const uint64_t rate_bps = cursor.RateBps(diagnostics_, "rate", kMaxLinkRateBps);
    if (rate_bps < kMinLinkRateBps || rate_bps > kMaxLinkRateBps) {
      Error(cursor, "rate",
            fmt::format("{} bps is out of range (expected 1Mbps to 100Tbps)", rate_bps));
    }
    return rate_bps;
  }

  void CheckEveryDeviceIsCabled() {
    for (DeviceId id{0}; id < fabric_.device_count(); ++id) {
      if (boost::out_degree(id, fabric_.graph()) > 0) continue;
      const std::string& name = fabric_.device(id).name;
      Error(topology_.Child("devices", position_by_name_.at(name)), "name",
            fmt::format("{} has no link (expected at least one)", name));
    }
  }

  // A device's place in a server, and where the device stands in the file.
  struct Place {
    ServerIndex server{};
    DeviceKind kind = DeviceKind::kGpu;
    int32_t local_index = 0;
    int position = 0;
    auto operator<=>(const Place&) const = default;
    bool SameAs(const Place& other) const {
      return std::tie(server, kind, local_index) ==
             std::tie(other.server, other.kind, other.local_index);
    }
  };

  const ProtoCursor& topology_;
  Diagnostics& diagnostics_;
  const int errors_before_;
  bool names_are_known_;  // none was lost to a mistake in the text
  FabricGraph fabric_;
  std::unordered_map<std::string, int> position_by_name_;
  std::vector<Place> places_;
  std::vector<std::string> device_names_;  // sorted, made when first needed
  size_t compared_names_ = 0;
};

}  // namespace

std::optional<FabricGraph> LoadTopology(const ProtoCursor& topology, Diagnostics& diagnostics) {
  return TopologyReader(topology, diagnostics).Read();
}

}  // namespace railyard
