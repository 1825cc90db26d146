// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/study_check.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <new>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "railyard/scenario_builder.h"
#include "simulator/diagnostics/names.h"
#include "simulator/processes/forked_copies.h"
#include "simulator/processes/interruption.h"
#include "simulator/scenario/load/scenario_loader.h"
#include "simulator/text_proto/text_proto.h"
#include "simulator/text_proto/text_proto_check.h"

namespace railyard {
namespace {

// At the value's place in the study, or at the place of what made it.
void AddFindingOfValue(const StudyAxis& axis, const std::string& value, const std::string& what,
                       Diagnostics& diagnostics) {
  const auto number =
      static_cast<size_t>(std::ranges::find(axis.values, value) - axis.values.begin());
  if (axis.source == AxisSource::kValues && number < axis.values.size()) {
    diagnostics.Error(axis.where[number], fmt::format("{}.values[{}]", axis.path, number), what);
    return;
  }
  diagnostics.Error(axis.where.front(), axis.path,
                    fmt::format("with the value {}: {}", Quote(value), what));
}

// Returns true if a finding is about a set, "FIELD=VALUE". Without a value it removes a field,
// which may then be missing where the scenario has the rest.
bool IsAbout(const Finding& finding, const std::string& set) {
  return finding.where.file == SetLocation(set).file ||
         (set.ends_with('=') &&
          IsAtOrBelow(finding.field, std::string_view(set).substr(0, set.size() - 1)));
}

// A finding about a set, where the study has the set or the axis's value that it comes from; any
// other as it is.
void AddFinding(const Study& study, const StudyRun& run, const Finding& finding,
                Diagnostics& diagnostics) {
  const std::string subject = finding.field.empty() ? "" : finding.field + ": ";
  for (size_t i = 0; i < study.sets.size(); ++i) {
    if (!IsAbout(finding, study.sets[i])) continue;
    diagnostics.Error(study.set_places[i], fmt::format("sets[{}]", i), subject + finding.what);
    return;
  }
  for (size_t i = 0; i < study.axes.size(); ++i) {
    const StudyAxis& axis = study.axes[i];
    for (const std::string& field : axis.fields) {
      if (!IsAbout(finding, field + "=" + run.values[i] + axis.unit)) continue;
      AddFindingOfValue(axis, run.values[i], subject + finding.what, diagnostics);
      return;
    }
  }
  diagnostics.Error(finding.where, finding.field, finding.what);
}

// Describes what reading the scenario of a point found.
struct PointCheck {
  std::vector<Finding> errors;
  std::string failure;  // of the environment; empty: it was read to its end
};

// In a copy of this process, whose memory is free again when it ends.
PointCheck CheckPoint(const std::string& scenario, const std::vector<std::string>& sets) {
  PointCheck check;
  try {
    Diagnostics diagnostics;
    ReadScenario(scenario, sets, diagnostics);
    std::ranges::copy_if(
        diagnostics.findings(), std::back_inserter(check.errors),
        [](const Finding& finding) { return finding.severity == Severity::kError; });
  } catch (const EnvironmentError& error) {
    check.failure = error.what();
  } catch (const std::bad_alloc&) {
    check.failure = "not enough memory";
  }
  return check;
}

void Put(const PointCheck& check, Handover& to) {
  to.Put(check.failure);
  to.Put(uint64_t{check.errors.size()});
  for (const Finding& error : check.errors) {
    to.Put(error.where.file);
    to.Put(error.where.line);
    to.Put(error.where.column);
    to.Put(error.field);
    to.Put(error.what);
  }
}

PointCheck TakeCheck(const EndedCopy& copy) {
  PointCheck check;
  uint64_t count = 0;
  bool is_whole = copy.handover.Take(check.failure) && copy.handover.Take(count);
  while (is_whole && check.errors.size() < count) {
    Finding& error = check.errors.emplace_back();
    is_whole = copy.handover.Take(error.where.file) && copy.handover.Take(error.where.line) &&
               copy.handover.Take(error.where.column) && copy.handover.Take(error.field) &&
               copy.handover.Take(error.what);
  }
  if (is_whole) return check;
  return {.errors = {},
          .failure = copy.status > 128 ? "killed by " + SignalName(copy.status - 128)
                                       : "the process that read it ended"};
}

// Returns at most `count` of them, evenly spaced.
std::vector<size_t> Thinned(const std::vector<size_t>& points, size_t count) {
  if (points.size() <= count) return points;
  std::vector<size_t> thinned;
  for (size_t i = 0; i < count; ++i) thinned.push_back(points[i * points.size() / count]);
  return thinned;
}

// The values of an axis that a scenario is most likely not to take, numbered: all that are written
// down, else the least and the greatest number.
using TellingValues = std::unordered_map<std::string_view, size_t>;

TellingValues TellingValuesOf(const Study& study, size_t axis) {
  TellingValues values;
  const AxisSource source = study.axes[axis].source;
  if (source == AxisSource::kValues || source == AxisSource::kChoice ||
      source == AxisSource::kScenario || source == AxisSource::kPointName) {
    for (const auto& point : study.points) {
      values.try_emplace(point[axis], values.size());
      if (values.size() == kPointsCheckedMax) break;
    }
    return values;
  }
  std::vector<double> numbers;
  for (const auto& point : study.points) numbers.push_back(FiniteNumberOf(point[axis]).value_or(0));
  const auto [least, greatest] = std::ranges::minmax_element(numbers);
  for (const auto end : {least, greatest}) {
    const auto point = static_cast<size_t>(end - numbers.begin());
    values.try_emplace(study.points[point][axis], values.size());
  }
  return values;
}

// Pairs are those of the first axes: their number grows with its square.
constexpr size_t kPairedAxesMax = 32;

// Finds the first points with each telling value, and those with each pair of telling values of two
// axes.
class TellingPoints {
 public:
  explicit TellingPoints(const Study& study) {
    for (size_t axis = 0; axis < study.axes.size(); ++axis) {
      values_.push_back(TellingValuesOf(study, axis));
      is_seen_.emplace_back(values_.back().size());
    }
    for (size_t point = 0; point < study.points.size(); ++point) {
      Note(study.points[point]);
      if (AddSingles()) {
        singles_.push_back(point);
      } else if (AddPairs()) {
        pairs_.push_back(point);
      }
    }
  }

  const std::vector<size_t>& singles() const { return singles_; }
  const std::vector<size_t>& pairs() const { return pairs_; }

 private:
  struct Telling {
    size_t axis;
    size_t number;  // of the value among those of the axis
  };

  void Note(const std::vector<std::string>& point) {
    telling_.clear();
    for (size_t axis = 0; axis < point.size(); ++axis) {
      const auto known = values_[axis].find(point[axis]);
      if (known != values_[axis].end()) telling_.push_back({axis, known->second});
    }
  }

  // They return true if there is one that no point before had.
  bool AddSingles() {
    bool is_any = false;
    for (const Telling& value : telling_) {
      is_any |= !is_seen_[value.axis][value.number];
      is_seen_[value.axis][value.number] = true;
    }
    return is_any;
  }
  bool AddPairs() {
    bool is_any = false;
    for (size_t i = 0; i < telling_.size() && telling_[i].axis < kPairedAxesMax; ++i) {
      for (size_t j = 0; j < i; ++j) {
        const auto [axis, number] = telling_[i];
        const auto [other_axis, other_number] = telling_[j];
        std::vector<bool>& seen = is_pair_seen_[axis * kPairedAxesMax + other_axis];
        seen.resize(values_[axis].size() * values_[other_axis].size());
        const size_t pair = number * values_[other_axis].size() + other_number;
        is_any |= !seen[pair];
        seen[pair] = true;
      }
    }
    return is_any;
  }

  std::vector<TellingValues> values_;  // by axis
  std::vector<Telling> telling_;       // of one point, in the order of axes
  std::vector<std::vector<bool>> is_seen_;
  std::vector<std::vector<bool>> is_pair_seen_{kPairedAxesMax * kPairedAxesMax};
  std::vector<size_t> singles_;
  std::vector<size_t> pairs_;
};

// Adds the points of one scenario with values that its fields cannot take, whatever the others
// are: the file is read once, and every value of each axis is set in turn.
void AddSuspicious(const Study& study, const std::string& scenario,
                   const std::vector<size_t>& points, std::set<size_t>& suspicious) {
  const StudyRun first{.point = points.front(), .values = study.points[points.front()]};
  for (size_t i = 0; i < study.axes.size(); ++i) {
    const StudyAxis& axis = study.axes[i];
    std::vector<std::string> sets = SetsOf(study, first);
    std::map<std::string, size_t> point_of_place;
    std::set<std::string_view> seen;
    for (const size_t point : points) {
      if (!seen.insert(study.points[point][i]).second) continue;
      for (const std::string& field : axis.fields) {
        sets.push_back(field + "=" + study.points[point][i] + axis.unit);
        point_of_place.emplace(SetLocation(sets.back()).file, point);
      }
    }
    Diagnostics diagnostics;
    ReadScenarioText(scenario, sets, diagnostics);
    for (const Finding& finding : diagnostics.findings()) {
      const auto found = point_of_place.find(finding.where.file);
      if (found != point_of_place.end()) suspicious.insert(found->second);
    }
  }
}

}  // namespace

std::vector<size_t> SuspiciousPoints(const Study& study) {
  std::set<size_t> suspicious;
  if (study.points.size() <= kPointsCheckedMax) return {};
  std::map<std::string, std::vector<size_t>> points_of_scenario;
  for (size_t point = 0; point < study.points.size(); ++point) {
    const StudyRun run{.point = point, .values = study.points[point]};
    points_of_scenario[ScenarioOf(study, run).path].push_back(point);
  }
  for (const auto& [scenario, points] : points_of_scenario) {
    AddSuspicious(study, scenario, points, suspicious);
  }
  return {suspicious.begin(), suspicious.end()};
}

std::vector<size_t> PointsToCheck(const Study& study, const std::vector<size_t>& suspicious) {
  std::vector<size_t> all(study.points.size());
  std::iota(all.begin(), all.end(), 0);
  if (all.size() <= kPointsCheckedMax) return all;
  std::set<size_t> chosen;
  const auto add = [&chosen](const std::vector<size_t>& points) {
    std::vector<size_t> others;
    std::ranges::copy_if(points, std::back_inserter(others),
                         [&](size_t point) { return !chosen.contains(point); });
    const std::vector<size_t> thinned = Thinned(others, kPointsCheckedMax - chosen.size());
    chosen.insert(thinned.begin(), thinned.end());
  };
  const TellingPoints telling(study);
  for (const auto& points :
       {suspicious, {0, all.size() - 1}, telling.singles(), telling.pairs(), all}) {
    add(points);
  }
  return {chosen.begin(), chosen.end()};
}

void CheckRuns(const Study& study, uint32_t jobs, Diagnostics& diagnostics) {
  std::vector<StudyRun> points;
  for (const size_t point : PointsToCheck(study, SuspiciousPoints(study))) {
    points.push_back({.point = point, .values = study.points[point], .seed = study.first_seed});
  }
  std::vector<PointCheck> checks(points.size());
  RunInCopies(
      points.size(), jobs,
      [&](size_t index, Handover& to) {
        const StudyRun& point = points[index];
        Put(CheckPoint(ScenarioOf(study, point).path, SetsOf(study, point)), to);
      },
      [&checks](const EndedCopy& copy) { checks[copy.index] = TakeCheck(copy); });
  std::set<std::string> seen;
  for (size_t i = 0; i < points.size(); ++i) {
    for (const Finding& error : checks[i].errors) {
      if (seen.insert(error.ToString()).second) AddFinding(study, points[i], error, diagnostics);
    }
    if (checks[i].failure.empty()) continue;
    throw EnvironmentError(fmt::format("{} cannot be read with {}: {}",
                                       ScenarioOf(study, points[i]).path,
                                       PointName(study, points[i]), checks[i].failure));
  }
}

}  // namespace railyard
