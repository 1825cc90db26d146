// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/models/choice_loader.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "workloads/nccl/nccl_versions.h"

namespace railyard {
namespace {

template <typename Value>
using Named = std::pair<std::string_view, Value>;

// NCCL's own spellings (ncclAlgoStr and ncclProtoStr, src/init.cc), the only ones that it takes
// besides other cases: FindAlgorithm would take underscores as well.
constexpr std::array<std::string_view, 7> kAlgorithmNames = {
    "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
constexpr std::array<std::string_view, 3> kProtocolNames = {"LL", "LL128", "Simple"};

template <typename Value>
std::vector<Named<Value>> ChoicesNamed(std::span<const std::string_view> names,
                                       std::optional<Value> (*find)(std::string_view)) {
  std::vector<Named<Value>> choices;
  for (const std::string_view name : names) choices.emplace_back(name, find(name).value());
  return choices;
}

// ncclFuncStr: the collectives that NCCL tunes.
constexpr std::array kTunedKinds = {CollectiveKind::kBroadcast, CollectiveKind::kReduce,
                                    CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                    CollectiveKind::kAllReduce};

std::vector<Named<CollectiveKind>> TunedKindsNamed() {
  std::vector<Named<CollectiveKind>> named;
  for (const CollectiveKind kind : kTunedKinds) named.emplace_back(CollectiveKindName(kind), kind);
  return named;
}

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Reads one of the two fields.
class ChoiceLoader {
 public:
  ChoiceLoader(const ProtoCursor& nccl, const char* field, Diagnostics& diagnostics)
      : nccl_(nccl), field_(field), diagnostics_(diagnostics) {}

  template <typename Value>
  void Load(std::span<const Named<Value>> known, bool has_lists_by_kind,
            const std::string& version_text, AllowedValues<Value>& allowed) const {
    bool is_first = true;
    const std::string text = nccl_.Text(field_, "");
    for (const std::string_view list : Split(text, ';')) {
      const size_t colon = list.find(':');
      const bool names_kind = colon != std::string_view::npos;
      if ((names_kind || !is_first) && !has_lists_by_kind) {
        nccl_.Error(diagnostics_, field_,
                    fmt::format("NCCL has lists by collective from 2.24 on, the job's is {} "
                                "(expected one list for all, e.g. {})",
                                version_text, known.front().first));
        return;
      }
      if (!names_kind && !is_first) {
        nccl_.Error(diagnostics_, field_,
                    fmt::format("{} has no collective before it (expected e.g. {} in every list "
                                "after the first)",
                                Quote(std::string(list)), Quote("allreduce:" + std::string(list))));
        return;
      }
      is_first = false;
      if (!names_kind) {
        if (const auto mask = MaskOf(list, known)) allowed.AllowOnly(*mask);
        continue;
      }
      const auto kind =
          Find<CollectiveKind>(list.substr(0, colon), "collective", TunedKindsNamed());
      const auto mask = MaskOf(list.substr(colon + 1), known);
      if (kind && mask) allowed.AllowOnly(*kind, *mask);
    }
  }

 private:
  // Returns nullopt, after an error, for a name that is not known.
  template <typename Value>
  std::optional<Value> Find(std::string_view name, const char* noun,
                            std::span<const Named<Value>> known) const {
    std::vector<std::string> names;
    for (const auto& [known_name, value] : known) {
      if (EqualsIgnoringCase(name, known_name)) return value;
      names.emplace_back(known_name);
    }
    nccl_.Error(diagnostics_, field_, UnknownName(noun, std::string(name), names));
    return std::nullopt;
  }

  template <typename Value>
  std::optional<uint32_t> MaskOf(std::string_view list, std::span<const Named<Value>> known) const {
    const bool excludes = list.starts_with('^');
    if (excludes) list.remove_prefix(1);
    uint32_t named = 0;
    for (const std::string_view name : Split(list, ',')) {
      const auto value = Find(name, "name", known);
      if (!value) return std::nullopt;
      named |= 1u << static_cast<uint32_t>(*value);
    }
    if (!excludes) return named;
    uint32_t all = 0;
    for (const auto& [name, value] : known) all |= 1u << static_cast<uint32_t>(value);
    return all & ~named;
  }

  const ProtoCursor& nccl_;
  const char* field_;
  Diagnostics& diagnostics_;
};

// From 2.31 on ALGO allows nothing to collectives that it does not name, but only those are held to
// it that ALGO or PROTO names (ncclTuningCostModelInit, src/tuning/cost_model.cc).
void ForbidUnnamed(NcclSettings& settings) {
  if (!settings.algorithms.IsStated()) return;
  for (const CollectiveKind kind : kTunedKinds) {
    if (!settings.algorithms.IsStatedFor(kind) && settings.protocols.IsStatedFor(kind)) {
      settings.algorithms.AllowOnly(kind, 0);
    }
  }
}

}  // namespace

void LoadChoices(const ProtoCursor& nccl, const std::string& version_text, NcclSettings& settings,
                 Diagnostics& diagnostics) {
  const bool has_lists_by_kind = settings.version >= kFirstStrictChoiceVersion;
  if (nccl.Has("ALGO")) {
    ChoiceLoader(nccl, "ALGO", diagnostics)
        .Load<Algorithm>(ChoicesNamed(kAlgorithmNames, FindAlgorithm), has_lists_by_kind,
                         version_text, settings.algorithms);
  }
  if (nccl.Has("PROTO")) {
    ChoiceLoader(nccl, "PROTO", diagnostics)
        .Load<Protocol>(ChoicesNamed(kProtocolNames, FindProtocol), has_lists_by_kind, version_text,
                        settings.protocols);
  }
  if (settings.version >= kFirstPartlyKnownVersion) ForbidUnnamed(settings);
}

}  // namespace railyard
