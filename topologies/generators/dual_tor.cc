// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/dual_tor.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"
#include "topologies/graph/fabric_builder.h"

namespace railyard {

namespace {

constexpr uint32_t kPorts = 2;

uint64_t SegmentCount(const DualTorSpec& spec) {
  return DivideUp(spec.network.server_count(), spec.servers_per_segment);
}

uint64_t PodCount(const DualTorSpec& spec) {
  return DivideUp(SegmentCount(spec), spec.segments_per_pod);
}

// Returns the plane of a ToR.
uint32_t PlaneOf(const DualTorSpec& spec, uint32_t rail, uint32_t port) {
  return (rail * kPorts + port) % spec.planes;
}

class DualTorBuilder {
 public:
  explicit DualTorBuilder(const DualTorSpec& spec) : spec_(spec), builder_(spec.network) {}

  FabricGraph Build() && {
    nics_ = builder_.AddServers();
    tors_.resize(PodCount(spec_), std::vector<std::vector<DeviceId>>(spec_.planes));
    AddTors();
    AddAggs();
    builder_.fabric().routing = RoutingPolicy::kUpDown;
    return std::move(builder_).Take();
  }

 private:
  void AddTors() {
    std::map<std::pair<uint64_t, uint32_t>, std::vector<const BuiltNic*>> nics_of_rail;
    for (const BuiltNic& nic : nics_) {
      nics_of_rail[{nic.server / spec_.servers_per_segment, nic.index}].push_back(&nic);
    }
    for (const auto& [segment_and_rail, nics] : nics_of_rail) {
      const auto [segment, rail] = segment_and_rail;
      for (uint32_t port = 0; port < kPorts; ++port) {
        const DeviceId tor =
            builder_.AddSwitch(fmt::format("segment{}/rail{}/tor{}", segment, rail, port));
        for (const BuiltNic* nic : nics) builder_.Attach(*nic, tor);
        tors_[segment / spec_.segments_per_pod][PlaneOf(spec_, rail, port)].push_back(tor);
      }
    }
  }

  void AddAggs() {
    std::vector<std::vector<DeviceId>> aggs(spec_.planes);
    for (size_t pod = 0; pod < tors_.size(); ++pod) {
      for (uint32_t plane = 0; plane < spec_.planes; ++plane) {
        for (uint32_t i = 0; i < spec_.aggs_per_plane; ++i) {
          const DeviceId agg =
              builder_.AddSwitch(fmt::format("pod{}/{}agg{}", pod, Prefix(plane), i));
          for (const DeviceId tor : tors_[pod][plane]) {
            builder_.Join(tor, agg, Tier::kLeafSpine, spec_.leaf_spine);
          }
          aggs[plane].push_back(agg);
        }
      }
    }
    for (uint32_t plane = 0; plane < spec_.planes; ++plane) {
      for (uint32_t i = 0; i < spec_.cores_per_plane; ++i) {
        const DeviceId core = builder_.AddSwitch(fmt::format("{}core{}", Prefix(plane), i));
        for (const DeviceId agg : aggs[plane]) {
          builder_.Join(agg, core, Tier::kSpineCore, spec_.spine_core);
        }
      }
    }
  }

  std::string Prefix(uint32_t plane) const {
    return spec_.planes == 1 ? std::string() : fmt::format("plane{}/", plane);
  }

  const DualTorSpec& spec_;
  FabricBuilder builder_;
  std::vector<BuiltNic> nics_;
  std::vector<std::vector<std::vector<DeviceId>>> tors_;  // by pod, then plane
};

}  // namespace

std::vector<SpecProblem> CheckDualTor(const DualTorSpec& spec) {
  SpecChecker check;
  CheckNetwork(spec.network, check);
  check.Count("servers_per_segment", spec.servers_per_segment, 1, kMaxFabricGpus);
  check.Count("segments_per_pod", spec.segments_per_pod, 1, kMaxFabricGpus);
  check.Count("aggs_per_plane", spec.aggs_per_plane, 1, kMaxFabricSpines);
  check.Count("cores_per_plane", spec.cores_per_plane, 0, kMaxFabricSpines);
  check.Links("leaf_spine", spec.leaf_spine);
  check.Links("spine_core", spec.spine_core);
  if (!check.Clean()) return check.Take();
  const uint32_t rails = spec.network.most_nics_per_server();
  if (spec.planes != 1 && spec.planes != kPorts && spec.planes != kPorts * rails) {
    check.Add("planes", fmt::format("{} planes do not divide {} ToRs per segment by port or rail "
                                    "(expected 1, {} or {})",
                                    spec.planes, kPorts * rails, kPorts, kPorts * rails));
    return check.Take();
  }
  if (spec.cores_per_plane == 0 && PodCount(spec) > 1) {
    check.Add(
        "cores_per_plane",
        fmt::format("{} pods that no core joins (expected at least one core, or at most {} "
                    "servers)",
                    PodCount(spec), uint64_t{spec.servers_per_segment} * spec.segments_per_pod));
  }
  const uint64_t tors = SegmentCount(spec) * rails * kPorts;
  const uint64_t aggs =
      SaturatingProduct(PodCount(spec), uint64_t{spec.planes} * spec.aggs_per_plane);
  const uint64_t cores = uint64_t{spec.planes} * spec.cores_per_plane;
  check.Totals("aggs_per_plane", tors + aggs + cores,
               spec.network.cables_in_servers() + kPorts * spec.network.nic_count() +
                   SaturatingProduct(tors, uint64_t{spec.aggs_per_plane} * spec.leaf_spine.count) +
                   SaturatingProduct(aggs, uint64_t{spec.cores_per_plane} * spec.spine_core.count));
  return check.Take();
}

FabricGraph MakeDualTor(const DualTorSpec& spec) {
  SIM_CHECK(CheckDualTor(spec).empty(), "a dual-ToR fabric that fails its check");
  return DualTorBuilder(spec).Build();
}

}  // namespace railyard
