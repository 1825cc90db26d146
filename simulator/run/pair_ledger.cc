// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/pair_ledger.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace railyard {
namespace {

constexpr std::string_view kNvSwitch = "NVSWITCH";
constexpr std::string_view kNetwork = "NETWORK";
constexpr std::string_view kReduce = "REDUCE";
constexpr std::string_view kMulticast = "MULTICAST";

bool IsBySwitch(const Connection& connection) {
  return connection.is_switch_operand() || connection.is_switch_result();
}

// The tiers that a connection's payload crosses, in order, each once.
std::vector<Tier> TiersOf(const Connection& connection, const FabricGraph& fabric,
                          const ConnectionTable& table) {
  if (IsBySwitch(connection)) return {Tier::kNvlink};
  std::vector<Tier> tiers;
  for (const LinkId link : table.LinksOf(connection)) {
    const Tier tier = fabric.link(link).tier;
    if (std::find(tiers.begin(), tiers.end(), tier) == tiers.end()) tiers.push_back(tier);
  }
  return tiers;
}

std::string NamesOf(const std::vector<Tier>& tiers) {
  std::vector<std::string_view> names;
  for (const Tier tier : tiers) names.push_back(TierName(tier));
  return fmt::format("{}", fmt::join(names, "+"));
}

// The ways between a pair, that of most bytes first; of equal ones the first by name.
std::string WaysOf(const std::map<std::string, uint64_t>& bytes_of_tiers) {
  std::vector<std::pair<std::string_view, uint64_t>> ways(bytes_of_tiers.begin(),
                                                          bytes_of_tiers.end());
  std::stable_sort(ways.begin(), ways.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string_view> names;
  for (const auto& way : ways) names.push_back(way.first);
  return fmt::format("{}", fmt::join(names, "|"));
}

}  // namespace

PairLedger::PairLedger(const FabricGraph& fabric, const ConnectionTable& table) {
  for (ConnectionId id; id < table.connections().size(); ++id) {
    const Connection& connection = table.connections()[id];
    const uint64_t payload_bytes = table.taken_bytes(id);
    if (payload_bytes == 0) continue;
    const std::vector<Tier> tiers = TiersOf(connection, fabric, table);
    if (IsBySwitch(connection)) AddSwitchConnection(connection, payload_bytes);
    if (connection.is_network_sum()) {
      AddNetworkSum(connection, table.aggregated(connection), NamesOf(tiers));
    } else {
      // An NVSwitch adds up a GPU's own operand too, and hands it its own copy.
      if (connection.from_gpu == connection.to_gpu) continue;
      bytes_[{connection.from_gpu, connection.to_gpu}][NamesOf(tiers)] += payload_bytes;
    }
    payload_bytes_ += payload_bytes;
    if (connection.is_on_network() || connection.is_network_sum())
      left_server_bytes_ += payload_bytes;
    const bool reached_spine = std::any_of(tiers.begin(), tiers.end(), [](Tier tier) {
      return tier == Tier::kLeafSpine || tier == Tier::kSpineCore;
    });
    if (reached_spine) reached_spine_bytes_ += payload_bytes;
  }
}

// An operand's connection leads from each GPU of the server to the one that asks for the sum, a
// result's from the one that sends to each that gets a copy; both have one of a GPU to itself, so
// what that one carried are the sums and the multicast data themselves.
void PairLedger::AddSwitchConnection(const Connection& connection, uint64_t payload_bytes) {
  const bool reduces = connection.is_switch_operand();
  const auto of = [&](GpuIndex gpu) -> SwitchBytes& {
    SwitchBytes& bytes = in_network_[{kNvSwitch, reduces ? kReduce : kMulticast, gpu}];
    bytes.tiers = TierName(Tier::kNvlink);
    return bytes;
  };
  const bool is_own = connection.from_gpu == connection.to_gpu;
  if (reduces || is_own) of(connection.from_gpu).sent += payload_bytes;
  if (!reduces || is_own) of(connection.to_gpu).received += payload_bytes;
}

void PairLedger::AddNetworkSum(const Connection& connection, const Aggregated& aggregated,
                               const std::string& tiers) {
  const auto add = [&](std::string_view operation, const AggregatedBytes& bytes) {
    if (bytes.sent == 0 && bytes.received == 0) return;
    SwitchBytes& sum = in_network_[{kNetwork, operation, connection.from_gpu}];
    sum.tiers = tiers;
    sum.sent += bytes.sent;
    sum.received += bytes.received;
  };
  add(kReduce, aggregated.reduced);
  add(kMulticast, aggregated.gathered);
}

void PairLedger::Record(RunResult& result) const {
  result.payload_bytes = payload_bytes_;
  result.payload_left_server_bytes = left_server_bytes_;
  result.payload_reached_spine_bytes = reached_spine_bytes_;
  for (const auto& [pair, bytes_of_tiers] : bytes_) {
    PairResult row{
        .source_gpu = pair.first, .destination_gpu = pair.second, .tiers = WaysOf(bytes_of_tiers)};
    for (const auto& [tiers, bytes] : bytes_of_tiers) row.payload_bytes += bytes;
    result.pairs.push_back(std::move(row));
  }
  for (const auto& [use, bytes] : in_network_) {
    const auto& [switches, operation, gpu] = use;
    result.in_network.push_back({.gpu = gpu,
                                 .switches = switches,
                                 .operation = operation,
                                 .tiers = bytes.tiers,
                                 .sent_bytes = bytes.sent,
                                 .received_bytes = bytes.received});
  }
}

}  // namespace railyard
