// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/prices/prices.h"

#include <cmath>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/text_proto/text_proto.h"
#include "simulator/units/units.h"
#include "topologies/graph/spec_check.h"
#include "topologies/prices/prices.pb.h"
#include "topologies/prices/public_prices.h"

namespace railyard {
namespace {

constexpr double kMostOfAPart = 1e9;  // in the currency's unit, or watts

std::optional<double> ReadFigure(const ProtoCursor& part, const char* field, const char* source,
                                 double value, Diagnostics& diagnostics) {
  if (!part.Has(field)) {
    if (part.Has(source)) {
      part.Error(diagnostics, source,
                 fmt::format("has no effect without {} (expected both or neither)", field));
    }
    return std::nullopt;
  }
  if (!std::isfinite(value) || value < 0 || value > kMostOfAPart) {
    part.Error(diagnostics, field,
               fmt::format("{} is out of range (expected 0 to {})", value, kMostOfAPart));
  }
  if (part.Text(source, "").empty()) {
    part.Missing(diagnostics, source, fmt::format("where {} is from", field));
  }
  return value;
}

PartPrice ReadPart(const ProtoCursor& cursor, Diagnostics& diagnostics) {
  const auto& proto = cursor.As<protos::Part>();
  PartPrice part;
  if (!cursor.Has("rate")) cursor.Missing(diagnostics, "rate", kExpectedRate);
  part.rate_bps = cursor.RateBps(diagnostics, "rate", part.rate_bps);
  if (part.rate_bps < kMinLinkRateBps || part.rate_bps > kMaxLinkRateBps) {
    cursor.Error(diagnostics, "rate",
                 fmt::format("{} bps is out of range (expected 1Mbps to 100Tbps)", part.rate_bps));
  }
  part.cost = ReadFigure(cursor, "cost", "cost_source", proto.cost(), diagnostics);
  part.watts = ReadFigure(cursor, "watts", "watts_source", proto.watts(), diagnostics);
  part.cost_source = proto.cost_source();
  part.watts_source = proto.watts_source();
  return part;
}

Prices ReadPrices(const TextProtoFile& file, Diagnostics& diagnostics) {
  const ProtoCursor cursor(file);
  Prices prices = {.name = cursor.Text("name", std::filesystem::path(file.path).stem().string()),
                   .currency = cursor.Text("currency", ""),
                   .parts = {}};
  bool has_cost = false;
  for (int i = 0; i < kNetworkPartCount; ++i) {
    const std::string field(NetworkPartName(static_cast<NetworkPart>(i)));
    if (!cursor.Has(field.c_str())) continue;
    PartPrice& part = prices.parts[static_cast<size_t>(i)];
    part = ReadPart(cursor.Child(field.c_str()), diagnostics);
    has_cost |= part.cost.has_value();
  }
  if (has_cost && prices.currency.empty()) {
    cursor.Missing(diagnostics, "currency", R"(e.g. "USD")");
  }
  return prices;
}

}  // namespace

std::string_view NetworkPartName(NetworkPart part) {
  static constexpr std::array<std::string_view, kNetworkPartCount> kNames = {
      "switch_port", "switch_transceiver", "nic_transceiver", "cable", "nic_port", "circuit_port"};
  return kNames[static_cast<size_t>(part)];
}

std::optional<Prices> LoadPrices(const std::string& path, Diagnostics& diagnostics) {
  if (const std::string why = WhyNotAFile(path); !why.empty()) {
    diagnostics.Error({.file = path}, "", why + " (expected a price file)");
    return std::nullopt;
  }
  const int errors_before = diagnostics.error_count();
  const auto file = LoadTextProto(path, protos::Prices(), {}, diagnostics);
  if (file == nullptr) return std::nullopt;
  Prices prices = ReadPrices(*file, diagnostics);
  if (diagnostics.error_count() > errors_before) return std::nullopt;
  return prices;
}

const Prices& PublicPrices() {
  static const Prices kPrices = [] {
    auto message = std::make_unique<protos::Prices>();
    const bool is_text =
        google::protobuf::TextFormat::ParseFromString(kPublicPrices, message.get());
    SIM_CHECK(is_text, "the public prices are no text");
    const TextProtoFile file = {.path = "public prices",
                                .message = std::move(message),
                                .sets = {},
                                .places = {},
                                .mistakes = {}};
    Diagnostics diagnostics;
    Prices prices = ReadPrices(file, diagnostics);
    SIM_CHECK(!diagnostics.HasErrors(), diagnostics.ToString());
    return prices;
  }();
  return kPrices;
}

}  // namespace railyard
