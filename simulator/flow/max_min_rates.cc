// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/flow/max_min_rates.h"

#include <algorithm>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

using Wide = unsigned __int128;

constexpr uint32_t kFlowsMax = 1u << 24;

}  // namespace

FlowRate MaxMinRates::RateOf(uint64_t rate_bps) {
  constexpr uint64_t kBitsPsPerByteSecond = 8 * uint64_t{kPsPerSecond};
  const Wide rate = (Wide{rate_bps} << kFlowRateBits) / kBitsPsPerByteSecond;
  return static_cast<FlowRate>(rate);
}

void MaxMinRates::SetCapacity(LinkId id, uint64_t rate_bps) {
  Link& link = links_[id];
  link.capacity = RateOf(rate_bps);
  for (const User& user : link.users) {
    bundles_[user.bundle].solved_flows = 0;
    MarkChanged(user.bundle);
  }
  for (Bundle& bundle : bundles_) {
    if (std::ranges::any_of(UsesOf(bundle), [&](const Use& use) { return use.link == id; })) {
      SetAlone(bundle);
    }
  }
}

BundleId MaxMinRates::AddBundle(std::span<const RouteLink> route, uint32_t whole) {
  SIM_CHECK(!route.empty(), "a route without links");
  Bundle bundle;
  bundle.first_use = static_cast<uint32_t>(uses_.size());
  bundle.use_count = static_cast<uint32_t>(route.size());
  for (const RouteLink& over : route) {
    SIM_CHECK(over.weight > 0 && over.weight <= whole, "a link of a route without a share of it");
    const uint64_t weight = uint64_t{over.weight} << kShareBits;
    uses_.push_back({.share = DivideUp(weight, whole), .link = over.link});
  }
  SetAlone(bundle);
  bundles_.push_back(bundle);
  return BundleId{bundles_.size() - 1};
}

void MaxMinRates::SetAlone(Bundle& bundle) {
  bundle.alone = UINT64_MAX;
  for (const Use& use : UsesOf(bundle)) {
    const Wide alone = (Wide{links_[use.link].capacity} << kShareBits) / use.share;
    bundle.alone = std::min(bundle.alone, static_cast<FlowRate>(alone));
  }
}

void MaxMinRates::SetFlows(BundleId id, uint32_t flows) {
  SIM_CHECK(flows < kFlowsMax, "more flows on one route than can be counted");
  Bundle& bundle = bundles_[id];
  if (bundle.flows == flows) return;
  if (bundle.flows == 0) Join(id);
  if (flows == 0) Leave(id);
  bundle.flows = flows;
  MarkChanged(id);
}

void MaxMinRates::MarkChanged(BundleId id) {
  if (bundles_[id].is_changed) return;
  bundles_[id].is_changed = true;
  changed_.push_back(id);
}

void MaxMinRates::Join(BundleId id) {
  const Bundle& bundle = bundles_[id];
  for (uint32_t i = bundle.first_use; i < bundle.first_use + bundle.use_count; ++i) {
    std::vector<User>& users = links_[uses_[i].link].users;
    uses_[i].place = static_cast<uint32_t>(users.size());
    users.push_back({.bundle = id, .use = i});
  }
}

void MaxMinRates::Leave(BundleId id) {
  for (const Use& use : UsesOf(bundles_[id])) {
    std::vector<User>& users = links_[use.link].users;
    users[use.place] = users.back();
    uses_[users[use.place].use].place = use.place;
    users.pop_back();
  }
}

std::span<const BundleId> MaxMinRates::Solve() {
  solved_.clear();
  ++round_;
  for (const BundleId id : changed_) {
    Bundle& bundle = bundles_[id];
    bundle.is_changed = false;
    const bool is_undone = bundle.flows == bundle.solved_flows;
    bundle.solved_flows = bundle.flows;
    if (bundle.flows == 0) bundle.rate = 0;
    if (is_undone || bundle.round == round_) continue;
    FindComponent(id);
    if (component_.size() == 1) {
      Bundle& only = bundles_[component_.front()];
      only.rate = only.alone / only.flows;
    } else {
      Fill();
    }
    solved_.insert(solved_.end(), component_.begin(), component_.end());
  }
  changed_.clear();
  return solved_;
}

void MaxMinRates::AddLinksOf(const Bundle& bundle) {
  for (const Use& use : UsesOf(bundle)) {
    Link& link = links_[use.link];
    if (link.round == round_) continue;
    link.round = round_;
    component_links_.push_back(use.link);
  }
}

// Finds the bundles with flows that share links with one, directly or over others. The start may
// have lost its last flow; what it has left may then be several parts, which may be solved
// together.
void MaxMinRates::FindComponent(BundleId start) {
  component_.clear();
  component_links_.clear();
  Bundle& first = bundles_[start];
  first.round = round_;
  if (first.flows > 0) component_.push_back(start);
  AddLinksOf(first);
  for (size_t next = 0; next < component_links_.size(); ++next) {
    for (const User& user : links_[component_links_[next]].users) {
      Bundle& bundle = bundles_[user.bundle];
      if (bundle.round == round_) continue;
      bundle.round = round_;
      component_.push_back(user.bundle);
      AddLinksOf(bundle);
    }
  }
}

FlowRate MaxMinRates::LevelOf(const Link& link) {
  return static_cast<FlowRate>((Wide{link.left} << kShareBits) / link.shares);
}

void MaxMinRates::Fill() {
  for (const LinkId id : component_links_) {
    links_[id].left = links_[id].capacity;
    links_[id].shares = 0;
  }
  for (const BundleId id : component_) {
    Bundle& bundle = bundles_[id];
    bundle.is_settled = false;
    for (const Use& use : UsesOf(bundle)) links_[use.link].shares += use.share * bundle.flows;
  }
  levels_.clear();
  for (const LinkId id : component_links_) {
    if (links_[id].shares > 0) levels_.push_back({.rate = LevelOf(links_[id]), .link = id});
  }
  std::make_heap(levels_.begin(), levels_.end());
  // The level of a link never falls when flows of others settle below it, so the top of the heap,
  // if it is up to date, is the lowest of all.
  size_t unsettled = component_.size();
  while (unsettled > 0) {
    std::pop_heap(levels_.begin(), levels_.end());
    Level lowest = levels_.back();
    levels_.pop_back();
    const Link& link = links_[lowest.link];
    if (link.shares == 0) continue;
    const FlowRate level = LevelOf(link);
    if (level > lowest.rate) {
      lowest.rate = level;
      levels_.push_back(lowest);
      std::push_heap(levels_.begin(), levels_.end());
      continue;
    }
    for (const User& user : link.users) {
      if (bundles_[user.bundle].is_settled) continue;
      Settle(user.bundle, level);
      --unsettled;
    }
  }
}

void MaxMinRates::Settle(BundleId id, FlowRate rate) {
  Bundle& bundle = bundles_[id];
  bundle.is_settled = true;
  bundle.rate = rate;
  for (const Use& use : UsesOf(bundle)) {
    Link& link = links_[use.link];
    const uint64_t shares = use.share * bundle.flows;
    const auto taken = static_cast<FlowRate>((Wide{rate} * shares) >> kShareBits);
    link.left -= std::min(taken, link.left);
    link.shares -= shares;
  }
}

}  // namespace railyard
