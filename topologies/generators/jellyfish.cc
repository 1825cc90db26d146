// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/jellyfish.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/units/mix64.h"
#include "topologies/graph/fabric_builder.h"

namespace railyard {
namespace {

using Pair = std::pair<uint32_t, uint32_t>;  // the smaller first

Pair Ordered(uint32_t a, uint32_t b) { return {std::min(a, b), std::max(a, b)}; }

class RandomRegularGraph {
 public:
  RandomRegularGraph(uint32_t vertices, uint32_t degree, uint64_t seed)
      : vertices_(vertices), degree_(degree), seed_(seed) {}

  std::vector<Pair> Draw() {
    do {
      DrawOnce();
    } while (!IsConnected());
    return edges_;
  }

 private:
  uint64_t Random(uint64_t bound) { return ScaleTo(Mix64(Mix64(seed_) ^ drawn_++), bound); }

  // Pairs the ends at random (Bollobás 1980: "configuration model"), then removes each loop or
  // repeated pair by exchanging an end with a random good pair.
  void DrawOnce() {
    std::vector<uint32_t> ends;
    for (uint32_t vertex = 0; vertex < vertices_; ++vertex) {
      ends.insert(ends.end(), degree_, vertex);
    }
    for (size_t i = ends.size(); i > 1; --i) std::swap(ends[i - 1], ends[Random(i)]);
    edges_.clear();
    present_.clear();
    std::vector<Pair> bad;
    for (size_t i = 0; i < ends.size(); i += 2) {
      const Pair pair = Ordered(ends[i], ends[i + 1]);
      if (MayAdd(pair)) {
        Add(pair);
      } else {
        bad.push_back(pair);
      }
    }
    for (const Pair& pair : bad) Exchange(pair);
  }

  bool MayAdd(const Pair& pair) const {
    return pair.first != pair.second && !present_.contains(pair);
  }

  void Add(const Pair& pair) {
    edges_.push_back(pair);
    present_.insert(pair);
  }

  // (a,b) and a good (c,d) become (a,c) and (b,d). If the graph is so small or dense that no
  // exchange is found, an edge is missing, IsConnected() notices it, and the graph is drawn again.
  void Exchange(const Pair& pair) {
    constexpr int kAttempts = 10'000;
    for (int attempt = 0; attempt < kAttempts && !edges_.empty(); ++attempt) {
      const size_t chosen = Random(edges_.size());
      auto [c, d] = edges_[chosen];
      if (Random(2) == 1) std::swap(c, d);
      const Pair first = Ordered(pair.first, c);
      const Pair second = Ordered(pair.second, d);
      if (first == second || !MayAdd(first) || !MayAdd(second)) continue;
      present_.erase(edges_[chosen]);
      edges_[chosen] = first;
      present_.insert(first);
      Add(second);
      return;
    }
  }

  // And has all its edges.
  bool IsConnected() const {
    if (edges_.size() != uint64_t{vertices_} * degree_ / 2) return false;
    std::vector<uint32_t> parent(vertices_);
    for (uint32_t i = 0; i < vertices_; ++i) parent[i] = i;
    const auto root = [&](uint32_t vertex) {
      while (parent[vertex] != vertex) vertex = parent[vertex] = parent[parent[vertex]];
      return vertex;
    };
    uint32_t components = vertices_;
    for (const auto& [a, b] : edges_) {
      const uint32_t root_a = root(a);
      const uint32_t root_b = root(b);
      if (root_a == root_b) continue;
      parent[root_a] = root_b;
      --components;
    }
    return components == 1;
  }

  const uint32_t vertices_;
  const uint32_t degree_;
  const uint64_t seed_;
  uint64_t drawn_ = 0;
  std::vector<Pair> edges_;
  std::set<Pair> present_;
};

}  // namespace

std::vector<SpecProblem> CheckJellyfish(const JellyfishSpec& spec) {
  SpecChecker check;
  CheckNetwork(spec.network, check);
  check.Count("switches", spec.switches, 6, 65'536);
  check.Count("degree", spec.degree, 3, 1'024);
  check.Count("nics_per_switch", spec.nics_per_switch, 1, kMaxFabricGpus);
  check.Links("global", spec.global);
  if (!check.Clean()) return check.Take();
  if (spec.degree > spec.switches / 2) {
    // Denser ones are nearly complete, and random exchanges hardly find their last edges.
    check.Add("degree", fmt::format("{} of {} switches are no sparse graph (expected at most {})",
                                    spec.degree, spec.switches, spec.switches / 2));
  } else if (spec.switches * uint64_t{spec.degree} % 2 != 0) {
    check.Add("degree", fmt::format("{} switches of odd degree {} cannot be paired (expected an "
                                    "even product)",
                                    spec.switches, spec.degree));
  }
  check.Capacity("switches", spec.network.nic_count(),
                 uint64_t{spec.switches} * spec.nics_per_switch);
  check.Totals("switches", spec.switches,
               spec.network.cables_in_servers() + spec.network.nic_count() +
                   uint64_t{spec.switches} * spec.degree / 2 * spec.global.count);
  return check.Take();
}

FabricGraph MakeJellyfish(const JellyfishSpec& spec) {
  SIM_CHECK(CheckJellyfish(spec).empty(), "a Jellyfish that fails its check");
  FabricBuilder builder(spec.network);
  const std::vector<BuiltNic> nics = builder.AddServers();
  std::vector<DeviceId> switches(spec.switches);
  for (uint32_t i = 0; i < spec.switches; ++i) {
    switches[i] = builder.AddSwitch(fmt::format("switch{}", i));
  }
  builder.AttachInOrder(nics, switches, spec.nics_per_switch);
  for (const auto& [a, b] : RandomRegularGraph(spec.switches, spec.degree, spec.seed).Draw()) {
    builder.Join(switches[a], switches[b], Tier::kGlobal, spec.global);
  }
  builder.fabric().deadlock_avoidance = DeadlockAvoidance::kHopClasses;
  return std::move(builder).Take();
}

}  // namespace railyard
