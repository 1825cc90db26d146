// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/compare/comparison_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analysis/tables/figure_text.h"
#include "analysis/tables/text_table.h"
#include "analysis/writers/json_writer.h"

namespace railyard {
namespace {

// Payload by tier, of the tiers of either.
std::vector<std::pair<std::string, std::pair<uint64_t, uint64_t>>> TiersOf(
    const Comparison& comparison) {
  std::vector<std::pair<std::string, std::pair<uint64_t, uint64_t>>> tiers;
  for (const StoredTier& tier : comparison.first.tiers) {
    tiers.push_back({tier.tier, {tier.payload_bytes, 0}});
  }
  for (const StoredTier& tier : comparison.second.tiers) {
    const auto found = std::find_if(tiers.begin(), tiers.end(),
                                    [&](const auto& known) { return known.first == tier.tier; });
    if (found == tiers.end()) {
      tiers.push_back({tier.tier, {0, tier.payload_bytes}});
    } else {
      found->second.second = tier.payload_bytes;
    }
  }
  return tiers;
}

void WriteKind(const KindComparison& kind, JsonWriter& json) {
  json.StartObject();
  json.Text("kind", kind.kind);
  json.Number("pairs", kind.pairs);
  json.Number("equal", kind.equal);
  json.Number("slower", kind.slower);
  json.Signed("first_total_ps", kind.first_total_ps);
  json.Signed("second_total_ps", kind.second_total_ps);
  const auto put = [&](const char* key, double figure) {
    json.Real(key, kind.pairs > 0 ? std::optional(figure) : std::nullopt);
  };
  put("median_ratio", kind.median_ratio);
  put("largest_ratio", kind.largest_ratio);
  put("difference", kind.difference);
  json.Real("difference_low", kind.low);
  json.Real("difference_high", kind.high);
  json.Text("verdict", VerdictText(kind.verdict));
  json.EndObject();
}

void WriteRun(const char* key, const StoredResult& result, JsonWriter& json) {
  json.StartObject(key);
  json.Text("directory", result.directory);
  json.Text("scenario", result.scenario);
  json.Text("fabric", result.fabric);
  json.Text("status", result.status);
  json.Text("fingerprint", result.fingerprint);
  json.Signed("simulated_time_ps", result.simulated_time_ps);
  json.EndObject();
}

void WriteComparison(const Comparison& comparison, double threshold, JsonWriter& json) {
  json.StartObject();
  WriteRun("first", comparison.first, json);
  WriteRun("second", comparison.second, json);
  json.Flag("exceeds", comparison.Exceeds(threshold));
  json.Number("first_alone", comparison.first_alone);
  json.Number("second_alone", comparison.second_alone);
  json.StartArray("kinds");
  for (const KindComparison& kind : comparison.kinds) WriteKind(kind, json);
  json.EndArray();
  json.StartArray("tiers");
  for (const auto& [tier, bytes] : TiersOf(comparison)) {
    json.StartObject();
    json.Text("tier", tier);
    json.Number("first_payload_bytes", bytes.first);
    json.Number("second_payload_bytes", bytes.second);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

}  // namespace

std::string DifferenceText(double difference) {
  if (difference == 0) return "0 %";
  if (difference >= 10) return fmt::format("x {:.4g}", difference + 1);
  return fmt::format("{:+.2f} %", 100 * difference);
}

std::string DifferenceText(const KindComparison& kind) {
  return kind.pairs > 0 ? DifferenceText(kind.difference) : std::string(kAbsentText);
}

std::string RatioText(const KindComparison& kind, double ratio) {
  return kind.pairs > 0 ? StretchText(ratio) : std::string(kAbsentText);
}

std::string IntervalText(const KindComparison& kind) {
  if (!kind.low) return std::string(kAbsentText);
  return fmt::format("{} to {}", DifferenceText(*kind.low), DifferenceText(*kind.high));
}

std::string ComparisonVerdict(const Comparison& comparison, const std::string& second,
                              const std::string& first) {
  const KindComparison& all = comparison.kinds.front();
  if (all.pairs == 0) return fmt::format("{} and {} have no collective in common.", second, first);
  switch (all.verdict) {
    case Verdict::kNothing:
    case Verdict::kEqual:
      return fmt::format("{} takes the same time as {} in every collective{}, to the picosecond.",
                         second, first, comparison.IsWhole() ? "" : " that both have");
    case Verdict::kNoDifference:
      return fmt::format(
          "{} is neither faster nor slower than {}: {} in all, within what chance "
          "explains.",
          second, first, DifferenceText(all.difference));
    case Verdict::kFaster:
    case Verdict::kSlower:
      break;
  }
  return fmt::format(
      "{} is {} than {}: its collectives take {} in all.", second, VerdictText(all.verdict), first,
      all.difference >= 10 ? fmt::format("{:.4g} times as long", all.difference + 1)
                           : fmt::format("{:.2f} % {}", std::abs(100 * all.difference),
                                         all.difference > 0 ? "more time" : "less time"));
}

std::vector<std::string> ComparisonNotes(const Comparison& comparison, const std::string& second,
                                         const std::string& first) {
  std::vector<std::string> notes;
  if (comparison.first.status != comparison.second.status) {
    notes.push_back(fmt::format("{} ended {}, {} ended {}.", first, comparison.first.status, second,
                                comparison.second.status));
  }
  if (comparison.first_alone > 0 || comparison.second_alone > 0) {
    notes.push_back(fmt::format("Without a partner: {} of {}, {} of {}.",
                                PluralText(comparison.first_alone, "collective"), first,
                                PluralText(comparison.second_alone, "collective"), second));
  }
  return notes;
}

std::string ComparisonText(const Comparison& comparison, double threshold) {
  const std::string& second = comparison.second.directory;
  const std::string& first = comparison.first.directory;
  std::string text = ComparisonVerdict(comparison, second, first) + "\n";
  for (const std::string& note : ComparisonNotes(comparison, second, first)) text += note + "\n";
  TextTable table({{"kind", Align::kLeft},
                   {"pairs"},
                   {"equal"},
                   {"slower"},
                   {"first, in all"},
                   {"second, in all"},
                   {"difference"},
                   {"95 % confidence"},
                   {"median"},
                   {"largest"},
                   {"verdict", Align::kLeft}});
  for (const KindComparison& kind : comparison.kinds) {
    table.AddRow({kind.kind, CountText(kind.pairs), CountText(kind.equal), CountText(kind.slower),
                  DurationText(kind.first_total_ps), DurationText(kind.second_total_ps),
                  DifferenceText(kind), IntervalText(kind), RatioText(kind, kind.median_ratio),
                  RatioText(kind, kind.largest_ratio), std::string(VerdictText(kind.verdict))});
  }
  text += "\n" + table.ToString();
  for (const auto& [tier, bytes] : TiersOf(comparison)) {
    if (bytes.first == bytes.second) continue;
    text += fmt::format("{} carries {} instead of {} bytes of payload.\n", tier,
                        CountText(bytes.second), CountText(bytes.first));
  }
  if (!comparison.IsWhole()) {
    text +=
        "Runs that do not have the same collectives, or end otherwise, are beyond any threshold.\n";
  } else {
    text += fmt::format("{} the threshold of {:g} %.\n",
                        comparison.Exceeds(threshold) ? "This exceeds" : "This is within",
                        100 * threshold);
  }
  return text;
}

std::string ComparisonsJson(const std::vector<Comparison>& comparisons, double threshold) {
  JsonWriter json;
  json.StartObject();
  json.Real("threshold", threshold);
  json.Flag("exceeds", std::any_of(comparisons.begin(), comparisons.end(),
                                   [&](const Comparison& one) { return one.Exceeds(threshold); }));
  json.StartArray("comparisons");
  for (const Comparison& comparison : comparisons) WriteComparison(comparison, threshold, json);
  json.EndArray();
  json.EndObject();
  return json.Take();
}

}  // namespace railyard
