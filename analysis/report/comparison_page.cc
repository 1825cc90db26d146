// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/report/comparison_page.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "analysis/compare/comparison_text.h"
#include "analysis/report/page_contents.h"
#include "analysis/tables/figure_text.h"

namespace railyard {
namespace {

// Charts with a panel for each result draw so many.
constexpr size_t kPanelsMax = 12;
// Points of one distribution function.
constexpr size_t kSharesMax = 200;

// Names of results: the last parts of their directories' paths, or the whole paths where those are
// not distinct.
class ResultNames {
 public:
  explicit ResultNames(std::span<const Comparison> comparisons) {
    directories_.push_back(comparisons.front().first.directory);
    for (const Comparison& one : comparisons) directories_.push_back(one.second.directory);
    std::set<std::string> distinct;
    for (const std::string& directory : directories_) {
      std::filesystem::path path(directory);
      if (!path.has_filename()) path = path.parent_path();  // "before/"
      names_.push_back(path.filename().string());
      distinct.insert(names_.back());
    }
    if (distinct.size() == names_.size()) return;
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto times = std::ranges::count(directories_, directories_[i]);
      names_[i] = times == 1 ? directories_[i] : fmt::format("{} ({})", directories_[i], i + 1);
    }
  }

  size_t size() const { return names_.size(); }
  // 0 is the first result, with which the others are compared.
  const std::string& operator[](size_t index) const { return names_[index]; }
  const std::string& directory(size_t index) const { return directories_[index]; }

 private:
  std::vector<std::string> directories_;
  std::vector<std::string> names_;
};

StoredValue MaybeReal(const std::optional<double>& value) {
  return value ? StoredValue(*value) : StoredValue();
}

StoredValue Count(uint64_t value) { return static_cast<int64_t>(value); }

const StoredResult& ResultAt(std::span<const Comparison> comparisons, size_t index) {
  return index == 0 ? comparisons.front().first : comparisons[index - 1].second;
}

Chart DifferencesChart(std::span<const Comparison> comparisons, const ResultNames& names) {
  Chart chart{.id = "compared_differences",
              .title = "Differences",
              .caption = fmt::format(
                  "How much longer all collectives of a kind take than in {0}, with the 95 % "
                  "confidence interval of a bootstrap; left of 0 they take less time.",
                  names[0])};
  ChartTable table{
      .name = chart.id,
      .columns = {"result", "kind", "pairs", "equal", "slower", "first_total_ps", "second_total_ps",
                  "difference", "low", "high", "median_ratio", "largest_ratio", "verdict"}};
  for (size_t i = 0; i < comparisons.size(); ++i) {
    for (const KindComparison& kind : comparisons[i].kinds) {
      if (kind.pairs == 0) continue;
      table.rows.push_back({names[i + 1], kind.kind, Count(kind.pairs), Count(kind.equal),
                            Count(kind.slower), kind.first_total_ps, kind.second_total_ps,
                            kind.difference, MaybeReal(kind.low), MaybeReal(kind.high),
                            kind.median_ratio, kind.largest_ratio,
                            std::string(VerdictText(kind.verdict))});
    }
  }
  chart.tables.push_back(std::move(table));
  return chart;
}

// Chooses which of the pairs are drawn: all, or of every group of neighbours the one with the least
// and the one with the greatest ratio.
std::vector<size_t> PairsDrawn(const std::vector<double>& ratios, size_t points) {
  std::vector<size_t> drawn;
  const size_t groups = std::min(ratios.size(), std::max<size_t>(1, points / 2));
  for (size_t g = 0; g < groups; ++g) {
    const auto begin = ratios.begin() + static_cast<ptrdiff_t>(ratios.size() * g / groups);
    const auto end = ratios.begin() + static_cast<ptrdiff_t>(ratios.size() * (g + 1) / groups);
    const auto [least, greatest] = std::minmax_element(begin, end);
    drawn.push_back(static_cast<size_t>(std::min(least, greatest) - ratios.begin()));
    if (least != greatest) {
      drawn.push_back(static_cast<size_t>(std::max(least, greatest) - ratios.begin()));
    }
  }
  return drawn;
}

Chart RatiosChart(std::span<const Comparison> comparisons, const ResultNames& names) {
  Chart chart{
      .id = "compared_ratios",
      .title = "Collective by collective",
      .caption = fmt::format("Each point is a collective, in the order of the workload: its "
                             "duration over that in {}.",
                             names[0])};
  ChartTable table{.name = chart.id,
                   .columns = {"result", "kind", "collective_index", "bytes", "first_duration_ps",
                               "second_duration_ps", "ratio"}};
  const size_t panels = std::min(comparisons.size(), kPanelsMax);
  uint64_t all = 0;
  for (size_t i = 0; i < panels; ++i) {
    const Pairing pairing = PairCollectives(comparisons[i].first, comparisons[i].second);
    std::vector<PairedCollective> pairs;
    std::vector<double> ratios;
    for (const PairedCollective& pair : pairing.pairs) {
      if (*pair.first->duration_ps <= 0) continue;
      pairs.push_back(pair);
      ratios.push_back(static_cast<double>(*pair.second->duration_ps) /
                       static_cast<double>(*pair.first->duration_ps));
    }
    all += pairs.size();
    for (const size_t at : PairsDrawn(ratios, kChartPointsMax / panels)) {
      const PairedCollective& pair = pairs[at];
      table.rows.push_back({names[i + 1], pair.first->kind, Count(pair.first->index),
                            Count(pair.first->bytes), *pair.first->duration_ps,
                            *pair.second->duration_ps, ratios[at]});
    }
  }
  if (table.rows.size() < all) {
    chart.note = fmt::format(
        "{} of {} pairs are drawn: of every group of neighbours the least and the greatest.",
        CountText(table.rows.size()), CountText(all));
  }
  chart.tables.push_back(std::move(table));
  return chart;
}

Chart DurationsChart(std::span<const Comparison> comparisons, const ResultNames& names) {
  Chart chart{.id = "compared_durations",
              .title = "Durations by kind",
              .caption = "The share of a kind's collectives that take no longer, in each result."};
  ChartTable table{.name = chart.id, .columns = {"kind", "result", "duration_ps", "share"}};
  std::vector<std::string> kinds;
  std::map<std::string, std::map<size_t, std::vector<int64_t>>> durations;
  for (size_t i = 0; i < names.size(); ++i) {
    for (const StoredCollective& collective : ResultAt(comparisons, i).collectives) {
      if (!collective.duration_ps) continue;
      auto [found, is_new] = durations.try_emplace(collective.kind);
      if (is_new) kinds.push_back(collective.kind);
      found->second[i].push_back(*collective.duration_ps);
    }
  }
  for (const std::string& kind : kinds) {
    for (auto& [result, values] : durations[kind]) {
      std::sort(values.begin(), values.end());
      const size_t drawn = std::min(values.size(), kSharesMax);
      for (size_t k = 0; k < drawn; ++k) {
        const size_t rank = drawn == 1 ? 0 : k * (values.size() - 1) / (drawn - 1);
        table.rows.push_back({kind, names[result], values[rank],
                              static_cast<double>(rank + 1) / static_cast<double>(values.size())});
      }
    }
  }
  chart.tables.push_back(std::move(table));
  return chart;
}

Chart TiersChart(std::span<const Comparison> comparisons, const ResultNames& names) {
  Chart chart{.id = "compared_tiers",
              .title = "Bytes per tier",
              .caption = "Payload, counted once per link crossed."};
  ChartTable table{.name = chart.id, .columns = {"tier", "result", "payload_bytes"}};
  for (size_t i = 0; i < names.size(); ++i) {
    for (const StoredTier& tier : ResultAt(comparisons, i).tiers) {
      table.rows.push_back({tier.tier, names[i], Count(tier.payload_bytes)});
    }
  }
  chart.tables.push_back(std::move(table));
  return chart;
}

// The matrices of the first results, in blocks of GPUs that make them small enough together.
Chart PairsChart(const ResultNames& names, int64_t gpus) {
  Chart chart{.id = "compared_pairs",
              .title = "Who sent to whom",
              .caption =
                  "Payload from each GPU (down) to each other (across), on one logarithmic scale "
                  "for all results."};
  ChartTable table{.name = chart.id,
                   .columns = {"result", "source_gpu", "destination_gpu", "payload_bytes"}};
  const size_t panels = std::min(names.size(), kPanelsMax);
  std::vector<ResultStore> stores;
  int64_t pairs = 0;
  for (size_t i = 0; i < panels; ++i) {
    stores.emplace_back(names.directory(i));
    pairs =
        std::max(pairs, stores.back().Count("SELECT COUNT(*) FROM pairs WHERE payload_bytes > 0"));
  }
  int64_t block = 1;
  while (block < gpus && pairs / (block * block) * static_cast<int64_t>(panels) >
                             static_cast<int64_t>(kChartPointsMax)) {
    block *= 2;
  }
  for (size_t i = 0; i < panels; ++i) {
    ChartTable of_result = TableOf(
        stores[i], "",
        fmt::format("SELECT '' AS result, source_gpu / {0} * {0} AS source_gpu, destination_gpu / "
                    "{0} * {0} AS destination_gpu, SUM(payload_bytes) AS payload_bytes FROM pairs "
                    "WHERE payload_bytes > 0 GROUP BY 2, 3",
                    block));
    for (auto& row : of_result.rows) {
      row.front() = names[i];
      table.rows.push_back(std::move(row));
    }
  }
  if (block > 1) chart.note = fmt::format("Each cell is the sum over {0} by {0} GPUs.", block);
  if (panels < names.size()) {
    chart.note += fmt::format("{}The first {} of {} results are drawn.",
                              chart.note.empty() ? "" : " ", panels, names.size());
  }
  chart.tables.push_back(std::move(table));
  return chart;
}

// Figures of the run in which drawings place pairs of GPUs.
std::vector<std::pair<std::string, StoredValue>> SizesOf(const ResultNames& names) {
  int64_t gpus = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    gpus = std::max(
        gpus, ResultStore(names.directory(i)).Count("SELECT value FROM run WHERE key = 'gpus'"));
  }
  return {{"gpus", gpus}};
}

KeyFigure Said(std::string label, std::string text) {
  return {.label = std::move(label), .figure = {.text = std::move(text)}};
}

void AddVerdicts(std::span<const Comparison> comparisons, const ResultNames& names,
                 double threshold, PageContents& contents) {
  for (size_t i = 0; i < comparisons.size(); ++i) {
    const Comparison& comparison = comparisons[i];
    const KindComparison& all = comparison.kinds.front();
    const std::string& name = names[i + 1];
    contents.verdict.push_back({.text = ComparisonVerdict(comparison, name, names[0])});
    contents.verdict.push_back({.text = " "});
    if (i < kPanelsMax) {
      contents.figures.push_back(Said(name, DifferenceText(all)));
    }
    for (const std::string& note : ComparisonNotes(comparison, name, names[0])) {
      contents.notes.push_back(note);
    }
    if (comparison.IsWhole() && comparison.Exceeds(threshold)) {
      contents.notes.push_back(
          fmt::format("The difference between {} and {} exceeds the threshold "
                      "of {:g} %.",
                      name, names[0], 100 * threshold));
    }
  }
  if (comparisons.size() > 1) return;
  const KindComparison& all = comparisons.front().kinds.front();
  contents.figures.push_back(Said("95 % confidence", IntervalText(all)));
  contents.figures.push_back(Said("Median ratio", RatioText(all, all.median_ratio)));
  contents.figures.push_back(Said("Largest ratio", RatioText(all, all.largest_ratio)));
  contents.figures.push_back(Said("Pairs", CountText(all.pairs)));
  contents.figures.push_back(Said("Of these equal", CountText(all.equal)));
  contents.figures.push_back(Said("Of these slower", CountText(all.slower)));
}

}  // namespace

std::string ComparisonPage(std::span<const Comparison> comparisons, double threshold) {
  const ResultNames names(comparisons);
  PageContents contents;
  contents.title = fmt::format("{} compared: Railyard report", names[0]);
  contents.run = SizesOf(names);
  const int64_t gpus = std::get<int64_t>(contents.run.front().second);
  for (size_t i = 0; i < names.size(); ++i) {
    const StoredResult& result = ResultAt(comparisons, i);
    if (i > 0) contents.subject += i == 1 ? " beside " : ", ";
    contents.subject += names[i];
    contents.notes.push_back(fmt::format("{}: {} on {}, {}, fingerprint {}, in {}.", names[i],
                                         result.scenario, result.fabric, result.status,
                                         result.fingerprint, result.directory));
  }
  contents.provenance = "Data: results.sqlite of the directories named in the notes.";
  AddVerdicts(comparisons, names, threshold, contents);
  for (Chart& chart :
       std::vector<Chart>{DifferencesChart(comparisons, names), RatiosChart(comparisons, names),
                          DurationsChart(comparisons, names), TiersChart(comparisons, names),
                          PairsChart(names, gpus)}) {
    if (!chart.tables.front().rows.empty()) contents.charts.push_back(std::move(chart));
  }
  return PageOf(contents);
}

}  // namespace railyard
