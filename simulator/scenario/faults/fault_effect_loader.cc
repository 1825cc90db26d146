// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/faults/fault_effect_loader.h"

#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "simulator/scenario/check/field_ranges.h"
#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

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

void CheckFields(const ProtoCursor& cursor, Diagnostics& diagnostics) {
  const auto& message = cursor.As<protos::Fault>();
  for (const FieldOfKinds& of_kinds : FieldsOfKinds()) {
    if (!cursor.Has(of_kinds.field) || of_kinds.kinds.contains(message.kind())) continue;
    std::vector<std::string> names;
    for (const int kind : of_kinds.kinds) {
      names.push_back(protos::Fault::Kind_Name(static_cast<Kind>(kind)));
    }
    cursor.Error(diagnostics, of_kinds.field,
                 fmt::format("has no effect on {} (expected it with {} only)",
                             protos::Fault::Kind_Name(message.kind()), JoinAlternatives(names)));
  }
}

class EffectLoader {
 public:
  EffectLoader(const ProtoCursor& cursor, const FabricGraph* fabric, FaultTargets& targets,
               FaultSpec& fault, Diagnostics& diagnostics)
      : cursor_(cursor),
        message_(cursor.As<protos::Fault>()),
        fabric_(fabric),
        targets_(targets),
        fault_(fault),
        diagnostics_(diagnostics) {}

  void Load() {
    fault_.is_noticed = !message_.unnoticed();
    switch (fault_.kind) {
      case FaultKind::kDegrade:
        LoadRate();
        break;
      case FaultKind::kLoss:
        LoadLoss();
        break;
      case FaultKind::kDelay:
        if (!cursor_.Has("delay") && !cursor_.Has("jitter")) {
          cursor_.Missing(diagnostics_, "delay", kExpectedDuration);
        }
        fault_.delay_ps = LoadDelay(cursor_, "delay", 0, diagnostics_);
        fault_.jitter_ps = LoadDelay(cursor_, "jitter", 0, diagnostics_);
        break;
      case FaultKind::kStraggler:
        if (!cursor_.Has("speed")) {
          cursor_.Missing(diagnostics_, "speed", "the share of its own, e.g. 0.5");
        } else {
          fault_.speed = LoadShare(cursor_, "speed", message_.speed(), 0, 1, diagnostics_);
          if (fault_.speed > 0 && fault_.speed < 1e-6) {
            cursor_.Error(
                diagnostics_, "speed",
                fmt::format("{} is out of range (expected 0, or 0.000001 to 1)", fault_.speed));
          }
        }
        break;
      case FaultKind::kBackgroundLoad:
        LoadLoad();
        break;
      case FaultKind::kSwitchReboot:
        if (!cursor_.Has("until") && !cursor_.Has("repeat") && !cursor_.Has("by_chance")) {
          cursor_.Missing(diagnostics_, "until", "when the switch is back");
        }
        break;
      default:
        break;
    }
  }

 private:
  void LoadRate() {
    const int given = cursor_.Has("rate") + cursor_.Has("rate_share") + cursor_.Has("lanes");
    if (given == 0) cursor_.Missing(diagnostics_, "rate", "rate, rate_share or lanes");
    if (given > 1) {
      cursor_.Error(diagnostics_, cursor_.Has("lanes") ? "lanes" : "rate_share",
                    "stands beside another rate (expected one of rate, rate_share and lanes)");
    }
    if (given != 1) return;
    fault_.rate_bps = cursor_.RateBps(diagnostics_, "rate", 0);
    if (cursor_.Has("rate") && fault_.rate_bps < 1'000'000) {
      cursor_.Error(diagnostics_, "rate",
                    fmt::format("{} is out of range (expected at least 1Mbps; LINK_DOWN stops all)",
                                Quote(cursor_.Text("rate", ""))));
    }
    if (cursor_.Has("rate_share")) {
      fault_.rate_share =
          LoadShare(cursor_, "rate_share", message_.rate_share(), 0.00001, 1, diagnostics_);
    }
  }

  void LoadLoss() {
    if (!cursor_.Has("loss")) {
      cursor_.Missing(diagnostics_, "loss", "e.g. loss { probability: 0.001 }");
      return;
    }
    const ProtoCursor loss = cursor_.Child("loss");
    const auto& message = loss.As<protos::FaultLoss>();
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
    LossSpec& spec = fault_.loss;
    if (loss.Has("probability")) {
      spec.model = LossSpec::Model::kUniform;
      spec.probability = LoadShare(loss, "probability", message.probability(), 0, 1, diagnostics_);
    } else if (loss.Has("bit_error_ratio")) {
      spec.model = LossSpec::Model::kBitErrors;
      spec.bit_error_ratio =
          LoadShare(loss, "bit_error_ratio", message.bit_error_ratio(), 0, 0.5, diagnostics_);
    } else if (loss.Has("gilbert_elliott")) {
      LoadGilbertElliott(loss.Child("gilbert_elliott"), spec);
    } else {
      LoadPackets(loss.Child("packets"), spec);
    }
  }

  void LoadGilbertElliott(const ProtoCursor& cursor, LossSpec& spec) {
    const auto& message = cursor.As<protos::GilbertElliott>();
    spec.model = LossSpec::Model::kGilbertElliott;
    for (const char* field : {"to_bad", "to_good"}) {
      if (!cursor.Has(field)) cursor.Missing(diagnostics_, field, "a probability per packet");
    }
    spec.to_bad = LoadShare(cursor, "to_bad", message.to_bad(), 0, 1, diagnostics_);
    spec.to_good = LoadShare(cursor, "to_good", message.to_good(), 0, 1, diagnostics_);
    spec.loss_in_good =
        LoadShare(cursor, "loss_in_good", message.loss_in_good(), 0, 1, diagnostics_);
    if (cursor.Has("loss_in_bad")) {
      spec.loss_in_bad =
          LoadShare(cursor, "loss_in_bad", message.loss_in_bad(), 0, 1, diagnostics_);
    }
  }

  void LoadPackets(const ProtoCursor& cursor, LossSpec& spec) {
    const auto& message = cursor.As<protos::NumberedPackets>();
    spec.model = LossSpec::Model::kNumbered;
    spec.first_number = cursor.Number(diagnostics_, "number", 1, 1, UINT64_MAX);
    spec.count = cursor.Number(diagnostics_, "count", 1, 1, UINT64_MAX);
    switch (message.kind()) {
      case protos::NumberedPackets::DATA:
        break;  // any kind with data
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

  void LoadLoad() {
    if (!cursor_.Has("load")) {
      cursor_.Missing(diagnostics_, "load",
                      R"(e.g. load { from: "server0/gpu*" to: "server1/gpu0" rate: "100Gbps" })");
      return;
    }
    const ProtoCursor load = cursor_.Child("load");
    for (const char* field : {"from", "to"}) {
      if (!load.Has(field)) load.Missing(diagnostics_, field, R"(GPUs, e.g. "server1/gpu*")");
    }
    if (!load.Has("rate")) load.Missing(diagnostics_, "rate", kExpectedRate);
    LoadSpec& spec = fault_.load;
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
    const auto nic_of = [this](GpuIndex gpu) { return fabric_->NicOfGpu(fabric_->gpus()[gpu]); };
    size_t pairs = 0;
    for (const GpuIndex sender : spec.senders) {
      for (const GpuIndex receiver : spec.receivers) {
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
    fault_.target = fmt::format("{} -> {}", load.Text("from", ""), load.Text("to", ""));
  }

  const ProtoCursor& cursor_;
  const protos::Fault& message_;
  const FabricGraph* fabric_;
  FaultTargets& targets_;
  FaultSpec& fault_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::optional<FaultKind> LoadFaultKind(const ProtoCursor& fault, Diagnostics& diagnostics) {
  const auto kind = KindOf(fault.As<protos::Fault>().kind());
  if (!fault.Has("kind")) {
    fault.Missing(diagnostics, "kind",
                  "LINK_DOWN, SWITCH_REBOOT, DEGRADE, LOSS, DELAY, PAUSE_STORM, "
                  "BACKGROUND_LOAD or STRAGGLER");
  }
  if (kind) CheckFields(fault, diagnostics);
  return kind;
}

void LoadFaultEffect(const ProtoCursor& fault, const FabricGraph* fabric, FaultTargets& targets,
                     FaultSpec& spec, Diagnostics& diagnostics) {
  EffectLoader(fault, fabric, targets, spec, diagnostics).Load();
}

}  // namespace railyard
