// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/faults/fault_loader.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/scenario/faults/fault_aim.h"
#include "simulator/scenario/faults/fault_anchor_loader.h"
#include "simulator/scenario/faults/fault_effect_loader.h"
#include "simulator/scenario/faults/fault_targets.h"
#include "simulator/scenario/faults/fault_timeline_loader.h"
#include "simulator/units/mix64.h"

namespace railyard {
namespace {

constexpr int kFaultsMax = 100'000;
// Limit over all faults together, because a pattern that matches too much would fill memory.
constexpr size_t kHitLinksMax = 50'000'000;

class FaultLoader {
 public:
  FaultLoader(const ProtoCursor& scenario, const FabricGraph* fabric, const Job* job, uint64_t seed,
              Diagnostics& diagnostics)
      : scenario_(scenario),
        fabric_(fabric),
        job_(job),
        seed_(seed),
        diagnostics_(diagnostics),
        targets_(scenario, fabric, diagnostics) {}

  std::vector<FaultSpec> Load() && {
    if (scenario_.Size("faults") > kFaultsMax) {
      scenario_.Error(
          diagnostics_, "faults",
          fmt::format("there are {} (expected at most {})", scenario_.Size("faults"), kFaultsMax));
      return {};
    }
    for (int i = 0; i < scenario_.Size("faults"); ++i) LoadOne(scenario_.Child("faults", i));
    ResolveAnchors();
    return std::move(faults_);
  }

 private:
  void LoadOne(const ProtoCursor& cursor) {
    FaultSpec fault;
    fault.where = cursor.WhereSelf();
    fault.name = cursor.Text("name", cursor.PathSelf());
    fault.seed = Mix64(Mix64(seed_) ^ HashOfName(fault.name));
    CheckName(cursor, fault.name);
    const int errors_before = diagnostics_.error_count();
    const std::optional<FaultKind> kind = LoadFaultKind(cursor, diagnostics_);
    fault.kind = kind.value_or(FaultKind::kLinkDown);
    LoadTimeline(cursor, fault.timeline, diagnostics_);
    if (cursor.Has("log")) {
      if (kind && diagnostics_.error_count() == errors_before) AddLogged(cursor, fault);
      return;
    }
    std::vector<FaultTarget> hit;
    if (fault.kind != FaultKind::kBackgroundLoad) hit = targets_.Load(cursor);
    if (kind) LoadFaultEffect(cursor, fabric_, targets_, fault, diagnostics_);
    if (diagnostics_.error_count() > errors_before || !kind || fabric_ == nullptr ||
        cursor.IsDoubtfulSelf()) {
      return;
    }
    CheckRate(cursor, fault, hit);
    if (cursor.Has("draw")) AimOf(cursor).Draw(fault.seed, hit);
    if (diagnostics_.error_count() > errors_before) return;
    AddOverTargets(cursor, fault, hit);
  }

  // Refuses a rate that is above that of every cable: it would change nothing.
  void CheckRate(const ProtoCursor& cursor, const FaultSpec& fault,
                 const std::vector<FaultTarget>& hit) const {
    if (fault.kind != FaultKind::kDegrade || fault.rate_bps == 0) return;
    uint64_t largest_bps = 0;
    for (const FaultTarget& target : hit) {
      for (const LinkId link : target.forward) {
        largest_bps = std::max(largest_bps, fabric_->link(link).rate_bps);
      }
    }
    if (fault.rate_bps <= largest_bps) return;
    cursor.Error(
        diagnostics_, "rate",
        fmt::format("{} is more than the {:g}Gbps of its cables (expected less)",
                    Quote(cursor.Text("rate", "")), static_cast<double>(largest_bps) / 1e9));
  }

  // Precondition: the fabric is known.
  FaultAim AimOf(const ProtoCursor& cursor) const { return {cursor, *fabric_, diagnostics_}; }

  void CheckName(const ProtoCursor& cursor, const std::string& name) {
    const auto [first, is_new] = names_.path_by_name.try_emplace(name, cursor.PathSelf());
    if (is_new) return;
    cursor.Error(diagnostics_, "name",
                 fmt::format("{} is called {} as well", first->second, Quote(name)));
  }

  // Adds one fault, or one per target if each target fails independently.
  void AddOverTargets(const ProtoCursor& cursor, const FaultSpec& fault,
                      const std::vector<FaultTarget>& targets) {
    if (cursor.Has("by_chance")) AimOf(cursor).CheckComponents(targets);
    if (fault.kind == FaultKind::kBackgroundLoad) {
      Add(cursor, fault);
      return;
    }
    if (!cursor.Has("by_chance") || targets.size() == 1) {
      FaultSpec aimed = fault;
      AimOf(cursor).Aim(targets, aimed);
      Add(cursor, aimed);
      return;
    }
    for (const FaultTarget& target : targets) {
      FaultSpec aimed = fault;
      aimed.name = fmt::format("{}[{}]", fault.name, target.name);
      aimed.seed = Mix64(Mix64(seed_) ^ HashOfName(aimed.name));
      AimOf(cursor).Aim({target}, aimed);
      Add(cursor, aimed);
    }
  }

  void AddLogged(const ProtoCursor& cursor, const FaultSpec& fault) {
    const auto intervals = LoadFaultLog(cursor, fault.timeline.training_ps, diagnostics_);
    if (fabric_ == nullptr) return;
    for (const auto& [name, recorded] : intervals) {
      const auto target = targets_.Find(name);
      if (!target) {
        cursor.Error(diagnostics_, "log",
                     fmt::format("it names {}, which is neither a cable nor a device (expected "
                                 "e.g. \"server1/nic3--leaf3\")",
                                 Quote(name)));
        continue;
      }
      FaultSpec aimed = fault;
      aimed.name = intervals.size() == 1 ? fault.name : fmt::format("{}[{}]", fault.name, name);
      aimed.timeline.recorded = recorded;
      aimed.timeline.at_ps = recorded.front().from_ps;
      aimed.timeline.until_ps = recorded.back().until_ps;
      aimed.is_noticed = !cursor.Flag("unnoticed", false);
      AimOf(cursor).Aim({*target}, aimed);
      Add(cursor, aimed);
    }
  }

  void Add(const ProtoCursor& cursor, const FaultSpec& fault) {
    hit_links_ += fault.links.size();
    if (hit_links_ > kHitLinksMax || faults_.size() == kFaultsMax) {
      if (!is_too_much_) {
        cursor.Error(diagnostics_, "kind",
                     fmt::format("with it there are more than {} faults or {} links that they hit "
                                 "(expected fewer)",
                                 kFaultsMax, kHitLinksMax));
      }
      is_too_much_ = true;
      return;
    }
    names_.index_by_name.try_emplace(fault.name, static_cast<uint32_t>(faults_.size()));
    faults_.push_back(fault);
    cursors_.push_back(cursor);
  }

  void ResolveAnchors() {
    for (size_t i = 0; i < faults_.size(); ++i) {
      if (!cursors_[i].Has("when")) continue;
      LoadFaultAnchor(cursors_[i].Child("when"), names_, job_, faults_[i].timeline.anchor,
                      diagnostics_);
    }
    // A fault that waits for itself, directly or through others, never begins.
    for (size_t i = 0; i < faults_.size(); ++i) {
      FaultIndex at = faults_[i].timeline.anchor.fault;
      for (size_t steps = 0; at != FaultIndex::kNone && steps <= faults_.size(); ++steps) {
        if (at == i) {
          cursors_[i].Error(diagnostics_, "when",
                            "it waits for itself (expected a fault that does not wait for it)");
          break;
        }
        at = faults_[at].timeline.anchor.fault;
      }
    }
  }

  const ProtoCursor& scenario_;
  const FabricGraph* fabric_;
  const Job* job_;
  uint64_t seed_;
  Diagnostics& diagnostics_;
  FaultTargets targets_;
  std::vector<FaultSpec> faults_;
  std::vector<ProtoCursor> cursors_;  // of faults_
  FaultNames names_;
  size_t hit_links_ = 0;
  bool is_too_much_ = false;
};

}  // namespace

std::vector<FaultSpec> LoadFaults(const ProtoCursor& scenario, const FabricGraph* fabric,
                                  const Job* job, uint64_t seed, Diagnostics& diagnostics) {
  return FaultLoader(scenario, fabric, job, seed, diagnostics).Load();
}

}  // namespace railyard
