// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/models/fabric_models_loader.h"

#include <initializer_list>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <ns3/enum.h>

#include "simulator/fabric/fabric_network.h"
#include "simulator/fabric/port/switch.h"
#include "simulator/scenario/models/model_attributes.h"
#include "simulator/scenario/models/named_devices.h"
#include "topologies/routing/deadlock.h"
#include "topologies/routing/lossless_classes.h"

namespace railyard {
namespace {

constexpr const char* kNetworkType = "railyard::FabricNetwork";
constexpr const char* kSwitchType = "railyard::Switch";

// `block.field` for each of `fields` that is set, an error: it changes nothing.
void RefuseWithoutEffect(const ProtoCursor& block, std::initializer_list<const char*> fields,
                         const std::string& why, Diagnostics& diagnostics) {
  for (const char* field : fields) {
    if (block.Has(field)) block.Error(diagnostics, field, "has no effect " + why);
  }
}

// `mtu_bytes` is the payload of the NICs' packets.
void CheckSwitch(const ProtoCursor& block, const BufferSettings& settings, FlowControl flow_control,
                 uint32_t mtu_bytes, Diagnostics& diagnostics) {
  if (settings.ecn_kmin_bytes > settings.ecn_kmax_bytes) {
    block.Error(
        diagnostics, block.Has("ecn_kmin") ? "ecn_kmin" : "ecn_kmax",
        fmt::format("marking would begin at {} and be certain at {} (expected ecn_kmin to "
                    "be at most ecn_kmax)",
                    FormatBytes(settings.ecn_kmin_bytes), FormatBytes(settings.ecn_kmax_bytes)));
  }
  if (!settings.ecn_enabled) {
    RefuseWithoutEffect(block, {"ecn_kmin", "ecn_kmax", "ecn_pmax"}, "with ecn_enabled: false",
                        diagnostics);
  }
  if (flow_control == FlowControl::kCredits) {
    RefuseWithoutEffect(
        block,
        {"buffer", "alpha", "lossless_data", "headroom", "headroom_scale", "mtu", "xon_offset"},
        "with network_flow_control: CREDITS, whose buffers are `network.credit`", diagnostics);
    return;
  }
  const std::initializer_list<const char*> of_pfc = {"headroom", "headroom_scale", "mtu",
                                                     "xon_offset"};
  if (flow_control == FlowControl::kNone) {
    RefuseWithoutEffect(block, {"lossless_data"}, "with network_flow_control: NONE", diagnostics);
    RefuseWithoutEffect(block, of_pfc, "with network_flow_control: NONE", diagnostics);
  } else if (!settings.lossless_data) {
    RefuseWithoutEffect(block, of_pfc, "with lossless_data: false", diagnostics);
  } else if (block.Has("headroom")) {
    RefuseWithoutEffect(block, {"mtu"}, "on a headroom that is given", diagnostics);
  } else if (settings.mtu_bytes < mtu_bytes) {
    block.Error(diagnostics, "mtu",
                fmt::format("packets with {} of payload would exceed the headroom for {} (expected "
                            "at least the former)",
                            FormatBytes(mtu_bytes), FormatBytes(settings.mtu_bytes)));
  }
}

class FabricModelsLoader {
 public:
  FabricModelsLoader(const ProtoCursor& scenario, const FabricGraph* fabric, NetPlugin net,
                     Diagnostics& diagnostics)
      : scenario_(scenario), fabric_(fabric), net_(net), diagnostics_(diagnostics) {}

  FabricModels Load(uint32_t mtu_bytes) {
    mtu_bytes_ = mtu_bytes;
    FabricModels models{.attributes = LoadNetwork(), .switch_variants = {}};
    std::vector<ModelAttribute> of_switch;
    if (is_tcp()) of_switch.push_back({kSwitchType, "EcnEnabled", "false"});
    if (scenario_.Has("switch")) LoadSwitch(scenario_.Child("switch"), of_switch);
    NoteLossless(of_switch);
    models.switch_variants = LoadVariants(of_switch);
    CheckLosslessClasses();
    models.attributes.insert(models.attributes.end(), of_switch.begin(), of_switch.end());
    return models;
  }

 private:
  bool is_tcp() const { return net_ == NetPlugin::kSocket; }

  std::vector<ModelAttribute> LoadNetwork() {
    std::vector<ModelAttribute> attributes;
    if (is_tcp()) attributes.push_back({kNetworkType, "NetworkFlowControl", "NONE"});
    if (net_ == NetPlugin::kAwsLibfabric) {
      attributes.push_back({kNetworkType, "LoadBalancing", "SPRAYING"});
    }
    if (scenario_.Has("network")) {
      const auto stated =
          LoadModelAttributes(scenario_.Child("network"), kNetworkType, diagnostics_);
      attributes.insert(attributes.end(), stated.begin(), stated.end());
    }
    const auto model = MakeModel<FabricNetwork>(attributes);
    ns3::EnumValue control(0);
    model->GetAttribute("NetworkFlowControl", control);
    flow_control_ = static_cast<FlowControl>(control.Get());
    if (is_tcp() && flow_control_ != FlowControl::kNone) {
      scenario_.Child("network").Error(
          diagnostics_, "network_flow_control",
          "TCP is in a class that loses what has no room (expected NONE with TCP sockets)");
    }
    if (scenario_.Has("network") && flow_control_ != FlowControl::kCredits) {
      RefuseWithoutEffect(scenario_.Child("network"), {"credit"},
                          "without network_flow_control: CREDITS", diagnostics_);
    }
    ns3::EnumValue balancing(0);
    model->GetAttribute("LoadBalancing", balancing);
    CheckLoadBalancing(static_cast<LoadBalancing>(balancing.Get()));
    return attributes;
  }

  void CheckLoadBalancing(LoadBalancing balancing) {
    if (scenario_.Has("network") && balancing != LoadBalancing::kFlowlet) {
      RefuseWithoutEffect(scenario_.Child("network"), {"flowlet_gap"},
                          "without load_balancing: FLOWLET", diagnostics_);
    }
    if (fabric_ == nullptr || !IsValiant(fabric_->routing) || balancing == LoadBalancing::kEcmp) {
      return;
    }
    const bool is_stated =
        scenario_.Has("network") && scenario_.Child("network").Has("load_balancing");
    scenario_.Child(is_stated ? "network" : "nccl")
        .Error(diagnostics_, is_stated ? "load_balancing" : "NET",
               fmt::format("switches cannot balance {} routes, on which each flow draws its own "
                           "way (expected {}ECMP, or a fabric with other routes)",
                           RoutingPolicyName(fabric_->routing),
                           is_stated ? "" : "network.load_balancing: "));
  }

  // Adds the attributes that a block states to those that hold without it.
  void LoadSwitch(const ProtoCursor& block, std::vector<ModelAttribute>& attributes) {
    const auto stated = LoadModelAttributes(block, kSwitchType, diagnostics_);
    attributes.insert(attributes.end(), stated.begin(), stated.end());
    if (is_tcp()) RefuseWithoutEffect(block, {"ecn_enabled"}, "on TCP without ECN", diagnostics_);
    if (block.IsDoubtfulSelf() || scenario_.IsDoubtful("network")) return;
    CheckSwitch(block, MakeModel<Switch>(attributes)->buffer_settings(), flow_control_, mtu_bytes_,
                diagnostics_);
  }

  std::vector<SwitchVariant> LoadVariants(const std::vector<ModelAttribute>& common) {
    std::vector<SwitchVariant> variants;
    NamedDevices named(
        fabric_,
        {.kind = DeviceKind::kSwitch, .noun = "switch", .example = R"("leaf3" or "spine*")"},
        diagnostics_);
    for (int i = 0; i < scenario_.Size("switches"); ++i) {
      const ProtoCursor entry = scenario_.Child("switches", i);
      SwitchVariant variant{.switches = named.Resolve(entry), .attributes = {}};
      if (!entry.Has("switch")) {
        entry.Missing(diagnostics_, "switch", R"(what differs, e.g. switch { buffer: "32MiB" })");
        continue;
      }
      std::vector<ModelAttribute> attributes = common;
      const int errors_before = diagnostics_.error_count();
      LoadSwitch(entry.Child("switch"), attributes);
      NoteLossless(attributes);
      variant.attributes.assign(attributes.begin() + static_cast<std::ptrdiff_t>(common.size()),
                                attributes.end());
      if (variant.attributes.empty() && diagnostics_.error_count() == errors_before) {
        entry.Error(diagnostics_, "switch",
                    R"(states no difference (expected e.g. switch { buffer: "32MiB" }))");
      }
      variants.push_back(std::move(variant));
    }
    return variants;
  }

  void NoteLossless(const std::vector<ModelAttribute>& of_switch) {
    is_lossless_ |= flow_control_ == FlowControl::kCredits ||
                    (flow_control_ == FlowControl::kPfc &&
                     MakeModel<Switch>(of_switch)->buffer_settings().lossless_data);
  }

  void CheckLosslessClasses() {
    if (fabric_ == nullptr || !is_lossless_) return;
    const uint32_t classes = CountLosslessClasses(*fabric_);
    if (classes <= LosslessClasses::kMax) return;
    scenario_.Error(diagnostics_, "fabric",
                    fmt::format("its routes need {} lossless classes, and PFC has {} (expected a "
                                "fabric of shorter routes, or switch {{ lossless_data: false }})",
                                classes, LosslessClasses::kMax));
  }

  const ProtoCursor& scenario_;
  const FabricGraph* fabric_;
  NetPlugin net_;
  Diagnostics& diagnostics_;
  uint32_t mtu_bytes_ = 0;
  FlowControl flow_control_ = FlowControl::kPfc;
  bool is_lossless_ = false;  // of any switch
};

}  // namespace

FabricModels LoadFabricModels(const ProtoCursor& scenario, const FabricGraph* fabric, NetPlugin net,
                              uint32_t mtu_bytes, Diagnostics& diagnostics) {
  return FabricModelsLoader(scenario, fabric, net, diagnostics).Load(mtu_bytes);
}

bool HasCreditsByDefault() {
  ns3::EnumValue control(0);
  MakeModel<FabricNetwork>({})->GetAttribute("NetworkFlowControl", control);
  return static_cast<FlowControl>(control.Get()) == FlowControl::kCredits;
}

}  // namespace railyard
