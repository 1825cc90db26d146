// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/fault_loader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "simulator/faults/keyed_draw.h"
#include "simulator/scenario/fault_targets.h"
#include "simulator/scenario/fault_timeline_loader.h"
#include "simulator/scenario/scenario.pb.h"
#include "simulator/units/units.h"
#include "workloads/job_iterations.h"

namespace railyard {
namespace {

constexpr int kFaultsMax = 100'000;
// Of all faults together: what a pattern that means too much would fill memory with.
constexpr size_t kHitLinksMax = 50'000'000;
constexpr uint64_t kDrawStream = 5;

using Kind = protos::Fault::Kind;

// The kinds that a field is of; it would change nothing with another.
struct FieldOfKinds {
  const char* field;
  std::set<int> kinds;
};
const std::vector<FieldOfKinds>& FieldsOfKinds() {
  static const std::vector<FieldOfKinds> kFields = {
      {"direction",
       {protos::Fault::LINK_DOWN, protos::Fault::DEGRADE, protos::Fault::LOSS, protos::Fault::DELAY,
        protos::Fault::PAUSE_STORM}},
      {"link",
       {protos::Fault::LINK_DOWN, protos::Fault::DEGRADE, protos::Fault::LOSS, protos::Fault::DELAY,
        protos::Fault::PAUSE_STORM}},
      {"device",
       {protos::Fault::LINK_DOWN, protos::Fault::SWITCH_REBOOT, protos::Fault::DEGRADE,
        protos::Fault::LOSS, protos::Fault::DELAY, protos::Fault::PAUSE_STORM,
        protos::Fault::STRAGGLER}},
      {"domain",
       {protos::Fault::LINK_DOWN, protos::Fault::SWITCH_REBOOT, protos::Fault::DEGRADE,
        protos::Fault::LOSS, protos::Fault::DELAY, protos::Fault::PAUSE_STORM}},
      {"draw",
       {protos::Fault::LINK_DOWN, protos::Fault::SWITCH_REBOOT, protos::Fault::DEGRADE,
        protos::Fault::LOSS, protos::Fault::DELAY, protos::Fault::PAUSE_STORM,
        protos::Fault::STRAGGLER}},
      {"log", {protos::Fault::LINK_DOWN}},
      {"training", {protos::Fault::LINK_DOWN, protos::Fault::SWITCH_REBOOT}},
      {"unnoticed", {protos::Fault::LINK_DOWN}},
      {"rate", {protos::Fault::DEGRADE}},
      {"rate_share", {protos::Fault::DEGRADE}},
      {"lanes", {protos::Fault::DEGRADE}},
      {"loss", {protos::Fault::LOSS}},
      {"delay", {protos::Fault::DELAY}},
      {"jitter", {protos::Fault::DELAY}},
      {"speed", {protos::Fault::STRAGGLER}},
      {"load", {protos::Fault::BACKGROUND_LOAD}},
  };
  return kFields;
}

std::optional<FaultKind> KindOf(Kind kind) {
  switch (kind) {
    case protos::Fault::LINK_DOWN:
      return FaultKind::kLinkDown;
    case protos::Fault::SWITCH_REBOOT:
      return FaultKind::kSwitchReboot;
    case protos::Fault::DEGRADE:
      return FaultKind::kDegrade;
    case protos::Fault::LOSS:
      return FaultKind::kLoss;
    case protos::Fault::DELAY:
      return FaultKind::kDelay;
    case protos::Fault::PAUSE_STORM:
      return FaultKind::kPauseStorm;
    case protos::Fault::BACKGROUND_LOAD:
      return FaultKind::kBackgroundLoad;
    case protos::Fault::STRAGGLER:
      return FaultKind::kStraggler;
    default:
      return std::nullopt;
  }
}

// Of bytes, FNV-1a; what a fault draws depends on its name and on no other fault.
uint64_t HashOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

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
    fault.seed = Mix64(Mix64(seed_) ^ HashOf(fault.name));
    CheckName(cursor, fault.name);
    const int errors_before = diagnostics_.error_count();
    const auto kind = KindOf(static_cast<const protos::Fault&>(cursor.message()).kind());
    if (!cursor.Has("kind")) {
      cursor.Missing(diagnostics_, "kind",
                     "LINK_DOWN, SWITCH_REBOOT, DEGRADE, LOSS, DELAY, PAUSE_STORM, "
                     "BACKGROUND_LOAD or STRAGGLER");
    }
    fault.kind = kind.value_or(FaultKind::kLinkDown);
    if (kind) CheckFields(cursor);
    LoadTimeline(cursor, fault.timeline, diagnostics_);
    if (cursor.Has("log")) {
      if (kind && diagnostics_.error_count() == errors_before) AddLogged(cursor, fault);
      return;
    }
    std::vector<FaultTarget> hit;
    if (fault.kind == FaultKind::kBackgroundLoad) {
      LoadLoad(cursor, fault);
    } else {
      hit = targets_.Load(cursor);
    }
    if (kind) LoadEffect(cursor, fault);
    if (diagnostics_.error_count() > errors_before || !kind || fabric_ == nullptr ||
        cursor.IsDoubtfulSelf()) {
      return;
    }
    Draw(cursor, fault, hit);
    if (diagnostics_.error_count() > errors_before) return;
    AddOverTargets(cursor, fault, hit);
  }

  void CheckName(const ProtoCursor& cursor, const std::string& name) {
    const auto [first, is_new] = path_by_name_.try_emplace(name, cursor.PathSelf());
    if (is_new) return;
    cursor.Error(diagnostics_, "name",
                 fmt::format("{} is called {} as well", first->second, Quote(name)));
  }

  void CheckFields(const ProtoCursor& cursor) {
    const auto& message = static_cast<const protos::Fault&>(cursor.message());
    for (const FieldOfKinds& of_kinds : FieldsOfKinds()) {
      if (!cursor.Has(of_kinds.field) || of_kinds.kinds.contains(message.kind())) continue;
      std::vector<std::string> names;
      for (const int kind : of_kinds.kinds) {
        names.push_back(protos::Fault::Kind_Name(static_cast<Kind>(kind)));
      }
      cursor.Error(diagnostics_, of_kinds.field,
                   fmt::format("has no effect on {} (expected it with {} only)",
                               protos::Fault::Kind_Name(message.kind()), JoinAlternatives(names)));
    }
  }

  // --- What it does ------------------------------------------------------------------------------

  void LoadEffect(const ProtoCursor& cursor, FaultSpec& fault) {
    const auto& message = static_cast<const protos::Fault&>(cursor.message());
    fault.is_noticed = !message.unnoticed();
    switch (fault.kind) {
      case FaultKind::kDegrade:
        LoadRate(cursor, fault);
        break;
      case FaultKind::kLoss:
        LoadLoss(cursor, fault);
        break;
      case FaultKind::kDelay:
        fault.delay_ps = cursor.DurationPs(diagnostics_, "delay", 0);
        fault.jitter_ps = cursor.DurationPs(diagnostics_, "jitter", 0);
        if (!cursor.Has("delay") && !cursor.Has("jitter")) {
          cursor.Missing(diagnostics_, "delay", kExpectedDuration);
        }
        for (const char* field : {"delay", "jitter"}) {
          if (cursor.DurationPs(diagnostics_, field, 0) <= 1000 * kPsPerSecond) continue;
          cursor.Error(diagnostics_, field,
                       fmt::format("{} is out of range (expected at most 1,000 s)",
                                   Quote(cursor.Text(field, ""))));
        }
        break;
      case FaultKind::kStraggler:
        if (!cursor.Has("speed")) {
          cursor.Missing(diagnostics_, "speed", "the share of its own, e.g. 0.5");
        } else {
          fault.speed = Share(cursor, "speed", message.speed(), 0, 1);
          if (fault.speed > 0 && fault.speed < 1e-6) {
            cursor.Error(
                diagnostics_, "speed",
                fmt::format("{} is out of range (expected 0, or 0.000001 to 1)", fault.speed));
          }
        }
        break;
      case FaultKind::kSwitchReboot:
        if (!cursor.Has("until") && !cursor.Has("repeat") && !cursor.Has("by_chance")) {
          cursor.Missing(diagnostics_, "until", "when the switch is back");
        }
        break;
      default:
        break;
    }
  }

  // Within [min, max]; else an error, and the maximum.
  double Share(const ProtoCursor& cursor, const char* field, double value, double min, double max) {
    if (value >= min && value <= max) return value;
    cursor.Error(diagnostics_, field,
                 fmt::format("{} is out of range (expected {} to {})", value, min, max));
    return max;
  }

  void LoadRate(const ProtoCursor& cursor, FaultSpec& fault) {
    const auto& message = static_cast<const protos::Fault&>(cursor.message());
    const int given = cursor.Has("rate") + cursor.Has("rate_share") + cursor.Has("lanes");
    if (given == 0) cursor.Missing(diagnostics_, "rate", "rate, rate_share or lanes");
    if (given > 1) {
      cursor.Error(diagnostics_, cursor.Has("lanes") ? "lanes" : "rate_share",
                   "stands beside another rate (expected one of rate, rate_share and lanes)");
    }
    if (given != 1) return;
    fault.rate_bps = cursor.RateBps(diagnostics_, "rate", 0);
    if (cursor.Has("rate") && fault.rate_bps < 1'000'000) {
      cursor.Error(diagnostics_, "rate",
                   fmt::format("{} is out of range (expected at least 1Mbps; LINK_DOWN stops all)",
                               Quote(cursor.Text("rate", ""))));
    }
    if (cursor.Has("rate_share")) {
      fault.rate_share = Share(cursor, "rate_share", message.rate_share(), 0.00001, 1);
    }
  }

  void LoadLoss(const ProtoCursor& cursor, FaultSpec& fault) {
    if (!cursor.Has("loss")) {
      cursor.Missing(diagnostics_, "loss", "e.g. loss { probability: 0.001 }");
      return;
    }
    const ProtoCursor loss = cursor.Child("loss");
    const auto& message = static_cast<const protos::FaultLoss&>(loss.message());
    const int given = loss.Has("probability") + loss.Has("bit_error_ratio") +
                      loss.Has("gilbert_elliott") + loss.Has("packets");
    if (given != 1) {
      loss.Error(diagnostics_, "probability",
                 given == 0 ? "missing (expected probability, bit_error_ratio, gilbert_elliott or "
                              "packets)"
                            : "stands beside another model, or another beside it (expected one of "
                              "probability, bit_error_ratio, gilbert_elliott and packets)");
      return;
    }
    LossSpec& spec = fault.loss;
    if (loss.Has("probability")) {
      spec.model = LossSpec::Model::kUniform;
      spec.probability = Share(loss, "probability", message.probability(), 0, 1);
    } else if (loss.Has("bit_error_ratio")) {
      spec.model = LossSpec::Model::kBitErrors;
      spec.bit_error_ratio = Share(loss, "bit_error_ratio", message.bit_error_ratio(), 0, 0.5);
    } else if (loss.Has("gilbert_elliott")) {
      LoadGilbertElliott(loss.Child("gilbert_elliott"), spec);
    } else {
      LoadPackets(loss.Child("packets"), spec);
    }
  }

  void LoadGilbertElliott(const ProtoCursor& cursor, LossSpec& spec) {
    const auto& message = static_cast<const protos::GilbertElliott&>(cursor.message());
    spec.model = LossSpec::Model::kGilbertElliott;
    for (const char* field : {"to_bad", "to_good"}) {
      if (!cursor.Has(field)) cursor.Missing(diagnostics_, field, "a probability per packet");
    }
    spec.to_bad = Share(cursor, "to_bad", message.to_bad(), 0, 1);
    spec.to_good = Share(cursor, "to_good", message.to_good(), 0, 1);
    spec.loss_in_good = Share(cursor, "loss_in_good", message.loss_in_good(), 0, 1);
    if (cursor.Has("loss_in_bad")) {
      spec.loss_in_bad = Share(cursor, "loss_in_bad", message.loss_in_bad(), 0, 1);
    }
  }

  void LoadPackets(const ProtoCursor& cursor, LossSpec& spec) {
    const auto& message = static_cast<const protos::NumberedPackets&>(cursor.message());
    spec.model = LossSpec::Model::kNumbered;
    spec.first_number = cursor.Number(diagnostics_, "number", 1, 1, UINT64_MAX);
    spec.count = cursor.Number(diagnostics_, "count", 1, 1, UINT64_MAX);
    switch (message.kind()) {
      case protos::NumberedPackets::DATA:
        spec.kind = PacketKind::kRdmaWrite;
        break;
      case protos::NumberedPackets::CLEAR_TO_SEND:
        spec.kind = PacketKind::kClearToSend;
        break;
      case protos::NumberedPackets::ACK:
        spec.kind = PacketKind::kAck;
        break;
      case protos::NumberedPackets::NACK:
        spec.kind = PacketKind::kNack;
        break;
      case protos::NumberedPackets::CNP:
        spec.kind = PacketKind::kCnp;
        break;
      default:
        cursor.Missing(diagnostics_, "kind", "DATA, CLEAR_TO_SEND, ACK, NACK or CNP");
    }
  }

  void LoadLoad(const ProtoCursor& cursor, FaultSpec& fault) {
    if (!cursor.Has("load")) {
      cursor.Missing(diagnostics_, "load",
                     R"(e.g. load { from: "server0/gpu*" to: "server1/gpu0" rate: "100Gbps" })");
      return;
    }
    const ProtoCursor load = cursor.Child("load");
    for (const char* field : {"from", "to"}) {
      if (!load.Has(field)) load.Missing(diagnostics_, field, R"(GPUs, e.g. "server1/gpu*")");
    }
    if (!load.Has("rate")) load.Missing(diagnostics_, "rate", kExpectedRate);
    LoadSpec& spec = fault.load;
    if (load.Has("from")) spec.senders = targets_.LoadGpus(load, "from");
    if (load.Has("to")) spec.receivers = targets_.LoadGpus(load, "to");
    spec.rate_bps = load.RateBps(diagnostics_, "rate", 1);
    if (spec.rate_bps < 1'000'000 && load.Has("rate")) {
      load.Error(diagnostics_, "rate",
                 fmt::format("{} is out of range (expected at least 1Mbps)",
                             Quote(load.Text("rate", ""))));
    }
    constexpr uint64_t kMessageBytes = 1 << 20;
    constexpr uint64_t kMessageBytesMax = 1 << 30;
    spec.message_bytes = load.Bytes(diagnostics_, "message", kMessageBytes);
    if (spec.message_bytes == 0 || spec.message_bytes > kMessageBytesMax) {
      load.Error(diagnostics_, "message",
                 fmt::format("{} is out of range (expected 1 B to 1 GiB)",
                             Quote(load.Text("message", ""))));
    }
    if (fabric_ == nullptr || spec.senders.empty() || spec.receivers.empty()) return;
    const auto nic_of = [this](uint32_t gpu) { return fabric_->NicOfGpu(fabric_->gpus()[gpu]); };
    size_t pairs = 0;
    for (const uint32_t sender : spec.senders) {
      for (const uint32_t receiver : spec.receivers) {
        const auto from = nic_of(sender);
        const auto to = nic_of(receiver);
        if (!from || !to) {
          load.Error(diagnostics_, from ? "to" : "from",
                     fmt::format("{} has no NIC (expected GPUs that have one)",
                                 fabric_->device(fabric_->gpus()[from ? receiver : sender]).name));
          return;
        }
        pairs += *from != *to;
      }
    }
    if (pairs == 0) {
      load.Error(diagnostics_, "to", "every pair of GPUs shares its NIC (expected others)");
    }
    fault.target = fmt::format("{} -> {}", load.Text("from", ""), load.Text("to", ""));
  }

  // --- To what -----------------------------------------------------------------------------------

  // Keeps those that the draw chooses, in the order of their names.
  void Draw(const ProtoCursor& cursor, const FaultSpec& fault, std::vector<FaultTarget>& targets) {
    if (!cursor.Has("draw")) return;
    const ProtoCursor draw = cursor.Child("draw");
    const uint64_t count = draw.Number(diagnostics_, "count", 1, 1, UINT32_MAX);
    if (count > targets.size()) {
      draw.Error(diagnostics_, "count",
                 fmt::format("{} are to be drawn of {} (expected no more than there are)", count,
                             targets.size()));
      return;
    }
    std::vector<std::pair<uint64_t, size_t>> keys;
    for (size_t i = 0; i < targets.size(); ++i) {
      const KeyedDraw key(fault.seed, kDrawStream, HashOf(targets[i].name));
      keys.emplace_back(key.Below(UINT64_MAX), i);
    }
    std::sort(keys.begin(), keys.end());
    keys.resize(count);
    std::vector<FaultTarget> chosen;
    for (const auto& [key, index] : keys) chosen.push_back(std::move(targets[index]));
    std::sort(chosen.begin(), chosen.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    targets = std::move(chosen);
  }

  static std::string NameOf(const std::vector<FaultTarget>& targets) {
    std::string text = targets.front().name;
    if (targets.size() == 2) text += ", " + targets.back().name;
    if (targets.size() > 2) text += fmt::format(" and {} more", targets.size() - 1);
    return text;
  }

  // One fault, or, where each target fails by itself, one for each.
  // That what is said to be links between NICs and ToRs, or ToRs, is.
  void CheckComponents(const ProtoCursor& cursor, const std::vector<FaultTarget>& targets) {
    const auto& message = static_cast<const protos::Fault&>(cursor.message());
    const auto component = message.by_chance().component();
    const auto is_nic_link = [this](LinkId link) {
      return fabric_->link(link).tier == Tier::kNicLeaf;
    };
    for (const FaultTarget& target : targets) {
      const bool fits = component == protos::FaultByChance::TOR_SWITCH
                            ? std::any_of(target.forward.begin(), target.forward.end(), is_nic_link)
                        : component == protos::FaultByChance::NIC_TOR_LINK
                            ? std::all_of(target.forward.begin(), target.forward.end(), is_nic_link)
                            : true;
      if (fits) continue;
      cursor.Child("by_chance")
          .Error(diagnostics_, "component",
                 fmt::format("{} is no {} (expected {})", target.name,
                             protos::FaultByChance::Component_Name(component),
                             component == protos::FaultByChance::TOR_SWITCH
                                 ? "switches with cables to NICs"
                                 : "cables between NICs and leaves"));
      return;
    }
  }

  void AddOverTargets(const ProtoCursor& cursor, const FaultSpec& fault,
                      const std::vector<FaultTarget>& targets) {
    if (cursor.Has("by_chance")) CheckComponents(cursor, targets);
    if (fault.kind == FaultKind::kBackgroundLoad) {
      Add(cursor, fault);
      return;
    }
    if (!cursor.Has("by_chance") || targets.size() == 1) {
      FaultSpec aimed = fault;
      Aim(cursor, targets, aimed);
      Add(cursor, aimed);
      return;
    }
    for (const FaultTarget& target : targets) {
      FaultSpec aimed = fault;
      aimed.name = fmt::format("{}[{}]", fault.name, target.name);
      aimed.seed = Mix64(Mix64(seed_) ^ HashOf(aimed.name));
      Aim(cursor, {target}, aimed);
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
      Aim(cursor, {*target}, aimed);
      Add(cursor, aimed);
    }
  }

  void Aim(const ProtoCursor& cursor, const std::vector<FaultTarget>& targets, FaultSpec& fault) {
    const char* const field = cursor.Has("domain")   ? "domain"
                              : cursor.Has("device") ? "device"
                              : cursor.Has("link")   ? "link"
                                                     : "log";
    fault.target = NameOf(targets);
    if (fault.kind == FaultKind::kStraggler) {
      AimAtGpus(cursor, targets, fault);
      return;
    }
    if (fault.kind == FaultKind::kSwitchReboot) {
      for (const FaultTarget& target : targets) {
        if (target.device && fabric_->device(*target.device).kind == DeviceKind::kSwitch) continue;
        cursor.Error(diagnostics_, field,
                     fmt::format("{} is no switch (expected e.g. \"leaf3\")", Quote(target.name)));
        return;
      }
    }
    const auto& message = static_cast<const protos::Fault&>(cursor.message());
    auto direction = message.direction();
    const bool is_storm = fault.kind == FaultKind::kPauseStorm;
    // Pause frames of a device stop what is sent to it.
    if (is_storm && !cursor.Has("direction") && targets.front().device) {
      direction = protos::Fault::BACKWARD;
    }
    if (is_storm && direction != protos::Fault::FORWARD && direction != protos::Fault::BACKWARD) {
      cursor.Error(diagnostics_, "direction",
                   "a cable's one end sends pause frames to the other (expected FORWARD or "
                   "BACKWARD, whichever way the data goes that has to wait)");
      return;
    }
    for (const FaultTarget& target : targets) {
      if (direction != protos::Fault::BACKWARD) Hit(target.forward, fault);
      if (direction != protos::Fault::FORWARD) Hit(target.backward, fault);
    }
    if (direction == protos::Fault::FORWARD && !is_storm) fault.target += " (forward)";
    if (direction == protos::Fault::BACKWARD && !is_storm) fault.target += " (backward)";
    if (is_storm) {
      std::erase_if(fault.links, [this](LinkId link) {
        const Tier tier = fabric_->link(link).tier;
        return tier == Tier::kNvlink || tier == Tier::kHost;
      });
    }
    std::sort(fault.links.begin(), fault.links.end());
    fault.links.erase(std::unique(fault.links.begin(), fault.links.end()), fault.links.end());
    if (fault.links.empty()) {
      cursor.Error(diagnostics_, field,
                   fmt::format("{} has no cable that this could hit (expected another target)",
                               Quote(fault.target)));
    }
    if (cursor.Has("lanes")) CheckLanes(cursor, fault);
  }

  static void Hit(const std::vector<LinkId>& links, FaultSpec& fault) {
    fault.links.insert(fault.links.end(), links.begin(), links.end());
  }

  void AimAtGpus(const ProtoCursor& cursor, const std::vector<FaultTarget>& targets,
                 FaultSpec& fault) {
    for (const FaultTarget& target : targets) {
      const auto& gpus = fabric_->gpus();
      const auto gpu =
          target.device ? std::find(gpus.begin(), gpus.end(), *target.device) : gpus.end();
      if (gpu == gpus.end()) {
        cursor.Error(
            diagnostics_, "device",
            fmt::format("{} is no GPU (expected e.g. \"server1/gpu3\")", Quote(target.name)));
        return;
      }
      fault.gpus.push_back(static_cast<uint32_t>(gpu - gpus.begin()));
    }
  }

  // Links that are bundles keep so many of their lanes.
  void CheckLanes(const ProtoCursor& cursor, FaultSpec& fault) {
    if (fault.links.empty()) return;
    const uint32_t own = fabric_->link(fault.links.front()).lanes;
    const uint64_t lanes = cursor.Number(diagnostics_, "lanes", 1, 1, UINT32_MAX);
    for (const LinkId link : fault.links) {
      if (fabric_->link(link).lanes != own || lanes >= own) {
        cursor.Error(diagnostics_, "lanes",
                     fmt::format("{} of the {} of {} are left (expected fewer, and links with "
                                 "equally many)",
                                 lanes, fabric_->link(link).lanes, fabric_->link(link).name));
        return;
      }
    }
    fault.rate_share = static_cast<double>(lanes) / own;
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
    index_by_name_.try_emplace(fault.name, static_cast<uint32_t>(faults_.size()));
    faults_.push_back(fault);
    cursors_.push_back(cursor);
  }

  // --- When --------------------------------------------------------------------------------------

  void ResolveAnchors() {
    for (size_t i = 0; i < faults_.size(); ++i) {
      if (cursors_[i].Has("when")) ResolveAnchor(cursors_[i].Child("when"), faults_[i]);
    }
    // Whoever waits for himself, over whomever, never begins.
    for (size_t i = 0; i < faults_.size(); ++i) {
      uint32_t at = faults_[i].timeline.anchor.fault;
      for (size_t steps = 0; at != FaultAnchor::kNone && steps <= faults_.size(); ++steps) {
        if (at == i) {
          cursors_[i].Error(diagnostics_, "when",
                            "it waits for itself (expected a fault that does not wait for it)");
          break;
        }
        at = faults_[at].timeline.anchor.fault;
      }
    }
  }

  void ResolveAnchor(const ProtoCursor& when, FaultSpec& fault) {
    FaultAnchor& anchor = fault.timeline.anchor;
    const int given =
        when.Has("begin_of") + when.Has("end_of") + when.Has("number") + when.Has("iteration");
    if (given != 1) {
      when.Error(diagnostics_, "number",
                 given == 0
                     ? "missing (expected begin_of, end_of, the number of a collective or an "
                       "iteration)"
                     : "stands beside another anchor, or another beside it (expected one of "
                       "begin_of, end_of, number and iteration)");
      return;
    }
    for (const char* field : {"begin_of", "end_of"}) {
      if (!when.Has(field)) continue;
      const std::string name = when.Text(field, "");
      const auto it = index_by_name_.find(name);
      if (it == index_by_name_.end()) {
        // One that is wrong in itself has been reported.
        if (path_by_name_.contains(name)) return;
        std::vector<std::string> names;
        for (const auto& [known, index] : index_by_name_) names.push_back(known);
        when.Error(diagnostics_, field, UnknownName("fault", name, names));
        return;
      }
      anchor.fault = it->second;
      anchor.at_end = field == std::string_view("end_of");
    }
    for (const char* field : {"kind", "communicator", "progress"}) {
      if (when.Has(field) && !when.Has("number")) {
        when.Error(diagnostics_, field, "has no effect without number (expected it beside number)");
      }
    }
    if (when.Has("job") && !when.Has("iteration")) {
      when.Error(diagnostics_, "job", "has no effect without iteration (expected it beside that)");
    }
    if (when.Has("number") && job_ != nullptr) FindCollective(when, anchor);
    if (when.Has("iteration") && job_ != nullptr) FindIteration(when, anchor);
  }

  // The part of the job whose iterations are meant; nullopt after an error.
  std::optional<uint32_t> PartOf(const ProtoCursor& when) {
    std::vector<std::string> names;
    for (const JobPart& part : job_->parts) names.push_back(part.name);
    if (!when.Has("job")) {
      if (names.size() == 1) return 0;
      when.Missing(diagnostics_, "job", JoinAlternatives(names));
      return std::nullopt;
    }
    const std::string name = when.Text("job", "");
    const auto it = std::find(names.begin(), names.end(), name);
    if (names.size() > 1 && it != names.end()) return static_cast<uint32_t>(it - names.begin());
    when.Error(diagnostics_, "job",
               names.size() == 1 ? "names one of several jobs, and there is one (expected none)"
                                 : UnknownName("job", name, names));
    return std::nullopt;
  }

  // The first call of every rank in it: it begins when the first of these does.
  void FindIteration(const ProtoCursor& when, FaultAnchor& anchor) {
    const std::optional<uint32_t> part = PartOf(when);
    if (!part) return;
    const IterationBegins iterations = FindIterations(*job_, *part);
    const uint64_t number = when.Number(diagnostics_, "iteration", 1, 1, UINT32_MAX);
    if (number > iterations.count) {
      when.Error(
          diagnostics_, "iteration",
          fmt::format("the job has {} (expected 1 to {})", iterations.count, iterations.count));
      return;
    }
    std::set<uint32_t> first_calls;
    for (const uint32_t rank : job_->parts[*part].global_ranks) {
      const auto& begins = iterations.of_program[job_->operations.program_of_rank(rank)];
      const std::vector<JobOperation>& operations = job_->operations[rank];
      if (operations.empty()) continue;
      const uint32_t begin = begins[number - 1];
      // What waits for nothing of the iteration may begin before it, as Recvs are posted.
      const auto is_call = [begin](const JobOperation& operation) {
        return !operation.is_compute() &&
               (operation.after == JobOperation::kNone || operation.after >= begin);
      };
      const auto call = std::find_if(operations.begin() + begin, operations.end(), is_call);
      if (call != operations.end()) first_calls.insert(call->collective);
    }
    anchor.collectives.assign(first_calls.begin(), first_calls.end());
  }

  void FindCollective(const ProtoCursor& when, FaultAnchor& anchor) {
    const auto& message = static_cast<const protos::FaultAnchor&>(when.message());
    const uint64_t number = when.Number(diagnostics_, "number", 1, 1, UINT32_MAX);
    if (when.Has("progress")) anchor.progress = Share(when, "progress", message.progress(), 0, 1);
    const std::optional<CollectiveKind> kind =
        when.Has("kind") ? std::optional(CollectiveKindOf(message.kind())) : std::nullopt;
    uint64_t found = 0;
    std::set<std::string> communicators;
    for (size_t i = 0; i < job_->collectives.size(); ++i) {
      const JobCollective& collective = job_->collectives[i];
      const std::string& communicator = job_->communicators[collective.communicator].name;
      communicators.insert(communicator);
      if (kind && collective.kind != *kind) continue;
      if (when.Has("communicator") && communicator != message.communicator()) continue;
      if (++found != number) continue;
      anchor.collectives = {static_cast<uint32_t>(i)};
      if (anchor.progress > 0 && collective.is_p2p()) {
        when.Error(diagnostics_, "progress",
                   "is not kept of what is made of Send and Recv (expected none, or another "
                   "collective)");
      }
      return;
    }
    if (when.Has("communicator") && !communicators.contains(message.communicator())) {
      when.Error(diagnostics_, "communicator",
                 UnknownName("communicator", message.communicator(),
                             {communicators.begin(), communicators.end()}));
      return;
    }
    when.Error(diagnostics_, "number",
               fmt::format("the job has {} of these (expected 1 to {})", found, found));
  }

  static CollectiveKind CollectiveKindOf(protos::ProgramCollective::Kind kind) {
    switch (kind) {
      case protos::ProgramCollective::ALL_GATHER:
        return CollectiveKind::kAllGather;
      case protos::ProgramCollective::REDUCE_SCATTER:
        return CollectiveKind::kReduceScatter;
      case protos::ProgramCollective::BROADCAST:
        return CollectiveKind::kBroadcast;
      case protos::ProgramCollective::REDUCE:
        return CollectiveKind::kReduce;
      case protos::ProgramCollective::ALL_TO_ALL:
        return CollectiveKind::kAllToAll;
      case protos::ProgramCollective::GATHER:
        return CollectiveKind::kGather;
      case protos::ProgramCollective::SCATTER:
        return CollectiveKind::kScatter;
      case protos::ProgramCollective::SEND_RECV:
      case protos::ProgramCollective::PERMUTATION:
        return CollectiveKind::kSend;
      default:
        return CollectiveKind::kAllReduce;
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
  std::map<std::string, std::string> path_by_name_;
  std::map<std::string, uint32_t> index_by_name_;  // into faults_
  size_t hit_links_ = 0;
  bool is_too_much_ = false;
};

}  // namespace

std::vector<FaultSpec> LoadFaults(const ProtoCursor& scenario, const FabricGraph* fabric,
                                  const Job* job, uint64_t seed, Diagnostics& diagnostics) {
  return FaultLoader(scenario, fabric, job, seed, diagnostics).Load();
}

}  // namespace railyard
