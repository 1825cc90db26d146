// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/fault_loader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "simulator/scenario/scenario.pb.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

constexpr int kFaultsMax = 100'000;
// Looking for the closest of many names is slow, and the first guesses are the useful ones: so many
// names are compared before unknown ones are reported without a guess.
constexpr size_t kComparedNamesMax = 1'000'000;
// Later than any job ends; and sums of it still fit.
constexpr int64_t kFaultTimePsMax = 90LL * 24 * 3600 * kPsPerSecond;

class FaultLoader {
 public:
  FaultLoader(const ProtoCursor& scenario, const FabricGraph* fabric, Diagnostics& diagnostics)
      : scenario_(scenario), fabric_(fabric), diagnostics_(diagnostics) {}

  std::vector<FaultSpec> Load() && {
    if (scenario_.Size("faults") > kFaultsMax) {
      scenario_.Error(
          diagnostics_, "faults",
          fmt::format("there are {} (expected at most {})", scenario_.Size("faults"), kFaultsMax));
      return {};
    }
    for (int i = 0; i < scenario_.Size("faults"); ++i) LoadOne(scenario_.Child("faults", i));
    CheckOverlaps();
    return std::move(faults_);
  }

 private:
  void LoadOne(const ProtoCursor& cursor) {
    FaultSpec fault;
    fault.where = cursor.WhereSelf();
    fault.name = cursor.Text("name", cursor.PathSelf());
    CheckName(cursor, fault.name);
    if (!cursor.Has("kind")) cursor.Missing(diagnostics_, "kind", "LINK_DOWN");
    const bool times_are_right = LoadTimes(cursor, fault);
    const bool link_is_right = LoadLink(cursor, fault);
    if (!times_are_right || !link_is_right) return;
    faults_.push_back(fault);
    paths_.push_back(cursor.PathSelf());
  }

  void CheckName(const ProtoCursor& cursor, const std::string& name) {
    const auto [first, is_new] = path_by_name_.try_emplace(name, cursor.PathSelf());
    if (is_new) return;
    cursor.Error(diagnostics_, "name",
                 fmt::format("{} is called {} as well", first->second, Quote(name)));
  }

  bool LoadTimes(const ProtoCursor& cursor, FaultSpec& fault) {
    const int errors_before = diagnostics_.error_count();
    if (!cursor.Has("at")) cursor.Missing(diagnostics_, "at", kExpectedDuration);
    fault.at_ps = LoadTime(cursor, "at", 0);
    fault.until_ps = LoadTime(cursor, "until", kNeverPs);
    if (diagnostics_.error_count() > errors_before || cursor.IsDoubtful("at") ||
        cursor.IsDoubtful("until")) {
      return false;
    }
    if (fault.until_ps > fault.at_ps) return true;
    cursor.Error(diagnostics_, "until",
                 fmt::format("ends at {}, {} it begins at {} (expected a later time, or none for a "
                             "fault that stays)",
                             Quote(cursor.Text("until", "")),
                             fault.until_ps < fault.at_ps ? "before" : "just when",
                             Quote(cursor.Text("at", ""))));
    return false;
  }

  int64_t LoadTime(const ProtoCursor& cursor, const char* field, int64_t default_ps) {
    const int64_t time_ps = cursor.DurationPs(diagnostics_, field, default_ps);
    if (time_ps <= kFaultTimePsMax || !cursor.Has(field)) return time_ps;
    cursor.Error(diagnostics_, field,
                 fmt::format("{} is out of range (expected at most 90 days)",
                             Quote(cursor.Text(field, ""))));
    return default_ps;
  }

  bool LoadLink(const ProtoCursor& cursor, FaultSpec& fault) {
    if (!cursor.Has("link")) {
      cursor.Missing(diagnostics_, "link", R"(a cable's name, e.g. "server1/nic3--leaf3")");
      return false;
    }
    if (fabric_ == nullptr) return false;
    const std::string link = cursor.Text("link", "");
    std::optional<uint32_t> cable = fabric_->FindCable(link);
    const std::optional<uint32_t> cable_of_nic = cable ? std::nullopt : FirstCableOfNic(link);
    if (cable_of_nic) cable = cable_of_nic;
    if (!cable) {
      compared_names_ += fabric_->cables().size();
      std::string what = compared_names_ > kComparedNamesMax
                             ? UnknownName("link", link, {})
                             : UnknownName("link", link, CableNames());
      if (!what.ends_with(')')) {
        what += R"( (expected the two devices of a cable, e.g. "server1/nic3--leaf3"))";
      }
      cursor.Error(diagnostics_, "link", std::move(what));
      return false;
    }
    if (fabric_->circuits && fabric_->circuits->slots_of_cable.contains(*cable)) {
      cursor.Error(diagnostics_, "link",
                   fmt::format("{} is an optical circuit, which comes and goes by its timetable "
                               "(expected another cable)",
                               Quote(link)));
      return false;
    }
    fault.cable = *cable;
    // FORWARD is from the device that the scenario names first.
    const bool is_reversed =
        cable_of_nic ? !IsFrom(*cable, link) : fabric_->cables()[*cable].name != link;
    const auto& message = static_cast<const protos::Fault&>(cursor.message());
    switch (message.direction()) {
      case protos::Fault::FORWARD:
        fault.forward = !is_reversed;
        fault.backward = is_reversed;
        break;
      case protos::Fault::BACKWARD:
        fault.forward = is_reversed;
        fault.backward = !is_reversed;
        break;
      default:
        fault.forward = true;
        fault.backward = true;
    }
    return !cursor.IsDoubtful("link") && !cursor.IsDoubtful("direction");
  }

  // So that one scenario's faults fit fabrics whose switches have other names.
  std::optional<uint32_t> FirstCableOfNic(const std::string& name) const {
    const std::optional<DeviceId> nic = fabric_->FindDevice(name);
    if (!nic || fabric_->device(*nic).kind != DeviceKind::kNic) return std::nullopt;
    for (const auto& edge : boost::make_iterator_range(boost::out_edges(*nic, fabric_->graph()))) {
      const LinkProperties& link = fabric_->graph()[edge];
      if (link.tier != Tier::kHost) return link.cable;
    }
    return std::nullopt;
  }

  bool IsFrom(uint32_t cable, const std::string& device) const {
    return fabric_->device(fabric_->link_source(fabric_->cables()[cable].forward)).name == device;
  }

  const std::vector<std::string>& CableNames() {
    if (cable_names_.empty()) {
      for (const Cable& cable : fabric_->cables()) cable_names_.push_back(cable.name);
    }
    return cable_names_;
  }

  // Two faults that hold the same direction of a link at the same instant contradict each other
  // when the first of them ends.
  void CheckOverlaps() {
    std::vector<std::pair<uint64_t, size_t>> held;  // (cable and direction, fault)
    for (size_t i = 0; i < faults_.size(); ++i) {
      const uint64_t forward = uint64_t{faults_[i].cable} * 2;
      if (faults_[i].forward) held.emplace_back(forward, i);
      if (faults_[i].backward) held.emplace_back(forward + 1, i);
    }
    std::sort(held.begin(), held.end(), [this](const auto& a, const auto& b) {
      return std::tie(a.first, faults_[a.second].at_ps, a.second) <
             std::tie(b.first, faults_[b.second].at_ps, b.second);
    });
    std::vector<bool> is_reported(faults_.size());
    size_t longest = 0;  // of those before on the same direction, the one that ends last
    for (size_t i = 0; i < held.size(); ++i) {
      if (i == 0 || held[i].first != held[i - 1].first) {
        longest = held[i].second;
        continue;
      }
      const FaultSpec& earlier = faults_[longest];
      const FaultSpec& later = faults_[held[i].second];
      if (later.at_ps < earlier.until_ps && !is_reported[held[i].second]) {
        is_reported[held[i].second] = true;
        diagnostics_.Error(
            later.where, paths_[held[i].second],
            fmt::format("the link {} is already down from {} on (expected faults of one link to "
                        "follow each other)",
                        Quote(fabric_->cables()[later.cable].name), paths_[longest]));
        diagnostics_.Note(earlier.where, paths_[longest], "it is this one");
      }
      if (later.until_ps > earlier.until_ps) longest = held[i].second;
    }
  }

  const ProtoCursor& scenario_;
  const FabricGraph* fabric_;
  Diagnostics& diagnostics_;
  std::vector<FaultSpec> faults_;
  std::vector<std::string> paths_;  // of faults_
  std::map<std::string, std::string> path_by_name_;
  std::vector<std::string> cable_names_;
  size_t compared_names_ = 0;
};

}  // namespace

std::vector<FaultSpec> LoadFaults(const ProtoCursor& scenario, const FabricGraph* fabric,
                                  Diagnostics& diagnostics) {
  return FaultLoader(scenario, fabric, diagnostics).Load();
}

}  // namespace railyard
