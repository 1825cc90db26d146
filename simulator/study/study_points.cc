// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/study/study.pb.h"
#include "simulator/study/study_loading.h"

namespace railyard {
namespace {

using PointValues = std::vector<std::string>;

// Axes that advance together.
struct Dimension {
  std::vector<size_t> axes;
  size_t count = 0;
};

bool HasOwnValues(const StudyAxis& axis) {
  return axis.source != AxisSource::kExpression && axis.source != AxisSource::kPoints;
}

std::vector<std::string> AxisNamesOf(const Study& study) {
  std::vector<std::string> names;
  for (const StudyAxis& axis : study.axes) names.push_back(axis.name);
  return names;
}

// Returns the axis of that name; the number of axes after an error, which `report` gets.
template <typename Report>
size_t FindAxis(const Study& study, std::string_view name, const Report& report) {
  const auto found = std::ranges::find(study.axes, name, &StudyAxis::name);
  if (found == study.axes.end()) {
    const std::string closest = ClosestName(std::string(name), AxisNamesOf(study));
    report(fmt::format("{} is no axis ({})", Quote(std::string(name)),
                       closest.empty() ? "expected the name of one"
                                       : fmt::format("did you mean {}?", Quote(closest))));
  }
  return static_cast<size_t>(found - study.axes.begin());
}

// An expression, the axes whose values it takes, and where it is written.
class BoundExpression {
 public:
  // Names must be those of the first `axes` axes. Mistakes are findings.
  BoundExpression(const Study& study, const Expression& expression, size_t axes,
                  const ProtoCursor& cursor, const char* field, int index, Diagnostics& diagnostics)
      : study_(study), expression_(expression), cursor_(cursor), field_(field), index_(index) {
    for (const std::string& name : expression.names()) {
      const size_t axis = FindAxis(study, name, [&](const std::string& what) {
        cursor_.Error(diagnostics, field_, what, index_);
      });
      if (axis >= axes && axis < study.axes.size()) {
        cursor_.Error(
            diagnostics, field_,
            fmt::format("{} is no axis before this one (expected another order)", Quote(name)),
            index_);
      }
      axes_.push_back(axis);
    }
  }

  // Returns nullopt after an error.
  std::optional<double> At(const PointValues& point, Diagnostics& diagnostics) {
    values_.clear();
    for (const size_t axis : axes_) values_.push_back(point[axis]);
    const auto result = expression_.Evaluate(values_);
    if (const double* const number = std::get_if<double>(&result)) return *number;
    const auto& error = std::get<ExpressionError>(result);
    std::string where;
    for (size_t i = 0; i < axes_.size(); ++i) {
      where += fmt::format("{}{}={}", i == 0 ? " where " : ", ", study_.axes[axes_[i]].name,
                           Quote(values_[i]));
    }
    cursor_.Error(diagnostics, field_,
                  fmt::format("at character {}{}: {}", error.character, where, error.what), index_);
    return std::nullopt;
  }

 private:
  const Study& study_;
  const Expression& expression_;
  ProtoCursor cursor_;
  const char* field_;
  int index_;
  std::vector<size_t> axes_;
  std::vector<std::string> values_;
};

class PointMaker {
 public:
  PointMaker(const ProtoCursor& cursor, Study& study, Diagnostics& diagnostics)
      : cursor_(cursor),
        message_(cursor.As<protos::Study>()),
        study_(study),
        diagnostics_(diagnostics) {}

  void Make() {
    const int errors_before = diagnostics_.error_count();
    MakeDimensions();
    BindDependents();
    BindConditions();
    CheckAxesWithoutFields();
    if (diagnostics_.error_count() > errors_before || !CheckCount()) return;
    if (!MakeProduct()) return;
    for (int i = 0; i < cursor_.Size("points"); ++i) MakeNamed(cursor_.Child("points", i));
    if (diagnostics_.error_count() > errors_before) return;
    if (study_.points.empty()) {
      cursor_.Error(diagnostics_, "conditions", "leave no point (expected others)", 0);
    }
    CheckRunCount(study_.points.size());
  }

 private:
  // Each axis is its own dimension, but for zips and for all that are drawn; in the order of their
  // first axes.
  void MakeDimensions() {
    std::vector<std::vector<size_t>> zips;
    std::vector<bool> is_zipped(study_.axes.size());
    for (int i = 0; i < cursor_.Size("zips"); ++i) {
      zips.push_back(LoadZip(cursor_.Child("zips", i), is_zipped));
    }
    std::vector<size_t> drawn;
    for (size_t i = 0; i < study_.axes.size(); ++i) {
      if (study_.axes[i].IsDrawn()) drawn.push_back(i);
    }
    if (!drawn.empty()) zips.push_back(drawn);
    for (size_t i = 0; i < study_.axes.size(); ++i) {
      if (!HasOwnValues(study_.axes[i])) continue;
      std::vector<size_t> axes = {i};
      for (const std::vector<size_t>& zip : zips) {
        if (std::ranges::find(zip, i) != zip.end()) axes = zip;
      }
      if (*std::ranges::min_element(axes) != i) continue;
      for (const size_t axis : axes) study_.axes[axis].dimension = dimensions_.size();
      dimensions_.push_back({.axes = axes, .count = study_.axes[i].values.size()});
    }
  }

  std::vector<size_t> LoadZip(const ProtoCursor& zip, std::vector<bool>& is_zipped) {
    const auto& message = zip.As<protos::StudyZip>();
    std::vector<size_t> axes;
    if (zip.Size("axes") < 2) {
      zip.Error(diagnostics_, "axes", "too few to advance together (expected two or more)");
    }
    for (int i = 0; i < zip.Size("axes"); ++i) {
      const auto report = [&](const std::string& what) {
        zip.Error(diagnostics_, "axes", what, i);
      };
      const size_t index = FindAxis(study_, message.axes(i), report);
      if (index == study_.axes.size()) continue;
      const StudyAxis& axis = study_.axes[index];
      if (axis.IsDrawn() || !HasOwnValues(axis)) {
        report(
            fmt::format("{} has no list of values (expected an axis with values, range or "
                        "log_range)",
                        Quote(axis.name)));
      } else if (is_zipped[index]) {
        report(fmt::format("{} is in a zip already (expected another axis)", Quote(axis.name)));
      } else if (!axes.empty() && study_.axes[axes[0]].values.size() != axis.values.size()) {
        report(fmt::format("{} has {} values and {} has {} (expected as many)", Quote(axis.name),
                           axis.values.size(), Quote(study_.axes[axes[0]].name),
                           study_.axes[axes[0]].values.size()));
      } else {
        is_zipped[index] = true;
        axes.push_back(index);
      }
    }
    return axes;
  }

  void BindDependents() {
    for (size_t i = 0; i < study_.axes.size(); ++i) {
      const StudyAxis& axis = study_.axes[i];
      if (!axis.expression) continue;
      // Axes stand in the order of the file, some of other kinds before them.
      const auto child =
          static_cast<int>(i - (study_.axes.size() - static_cast<size_t>(cursor_.Size("axes"))));
      dependents_.emplace_back(
          i, BoundExpression(study_, *axis.expression, i, cursor_.Child("axes", child),
                             "expression", -1, diagnostics_));
    }
  }

  void BindConditions() {
    conditions_.reserve(static_cast<size_t>(cursor_.Size("conditions")));
    for (int i = 0; i < cursor_.Size("conditions"); ++i) {
      auto parsed = Expression::Parse(message_.conditions(i));
      if (const auto* const error = std::get_if<ExpressionError>(&parsed)) {
        cursor_.Error(diagnostics_, "conditions",
                      fmt::format("at character {}: {}", error->character, error->what), i);
        continue;
      }
      conditions_.push_back(std::move(std::get<Expression>(parsed)));
      bound_conditions_.emplace_back(study_, conditions_.back(), study_.axes.size(), cursor_,
                                     "conditions", i, diagnostics_);
    }
  }

  // An axis that sets no field must be computed, or mean something to an expression.
  void CheckAxesWithoutFields() {
    for (int i = 0; i < cursor_.Size("axes"); ++i) {
      const ProtoCursor axis = cursor_.Child("axes", i);
      if (axis.Size("fields") > 0 || axis.Has("expression")) continue;
      const std::string name = axis.Text("name", "");
      const auto uses = [&](const Expression& expression) {
        return std::ranges::find(expression.names(), name) != expression.names().end();
      };
      const bool is_used = std::ranges::any_of(conditions_, uses) ||
                           std::ranges::any_of(study_.axes, [&](const StudyAxis& other) {
                             return other.expression.has_value() && uses(*other.expression);
                           });
      if (!is_used) {
        axis.Missing(diagnostics_, "fields", "one or more, or an expression that uses the axis");
      }
    }
  }

  bool CheckRunCount(uint64_t points) {
    if (points <= kStudyRunsMax / study_.seeds) return true;
    cursor_.Error(
        diagnostics_, "axes",
        fmt::format("with all seeds these are more than {} runs (expected fewer)", kStudyRunsMax));
    return false;
  }

  // Before anything is enumerated.
  bool CheckCount() {
    uint64_t points = 1;
    for (const Dimension& dimension : dimensions_) {
      points = points > kStudyRunsMax ? points : points * dimension.count;
    }
    if (conditions_.empty()) return CheckRunCount(points);
    if (points <= kStudyRunsMax) return true;
    cursor_.Error(diagnostics_, "axes",
                  fmt::format("before conditions these are more than {} points (expected fewer)",
                              kStudyRunsMax));
    return false;
  }

  bool HasProduct() const {
    return std::ranges::none_of(
        study_.axes, [](const StudyAxis& axis) { return axis.source == AxisSource::kPoints; });
  }

  // Returns false after an error.
  bool MakeProduct() {
    if (!HasProduct()) return true;
    uint64_t count = 1;
    for (const Dimension& dimension : dimensions_) count *= dimension.count;
    for (uint64_t number = 0; number < count; ++number) {
      PointValues point(study_.axes.size());
      uint64_t rest = number;
      for (auto dimension = dimensions_.rbegin(); dimension != dimensions_.rend(); ++dimension) {
        for (const size_t axis : dimension->axes) {
          point[axis] = study_.axes[axis].values[rest % dimension->count];
        }
        rest /= dimension->count;
      }
      if (!AddDependents(point)) return false;
      const auto is_met = MeetsConditions(point);
      if (!is_met) return false;
      if (*is_met) study_.points.push_back(std::move(point));
    }
    return true;
  }

  bool AddDependents(PointValues& point) {
    for (auto& [axis, expression] : dependents_) {
      const auto number = expression.At(point, diagnostics_);
      if (!number) return false;
      point[axis] = NumberText(IsInteger(axis) ? std::round(*number) : *number);
    }
    return true;
  }

  bool IsInteger(size_t axis) const {
    const size_t before = study_.axes.size() - static_cast<size_t>(message_.axes_size());
    return axis >= before && message_.axes(static_cast<int>(axis - before)).integer();
  }

  std::optional<bool> MeetsConditions(const PointValues& point) {
    for (BoundExpression& condition : bound_conditions_) {
      const auto number = condition.At(point, diagnostics_);
      if (!number) return std::nullopt;
      if (*number == 0) return false;
    }
    return true;
  }

  void MakeNamed(const ProtoCursor& named) {
    const auto& message = named.As<protos::StudyPoint>();
    PointValues point(study_.axes.size());
    std::vector<bool> is_given(study_.axes.size());
    if (message.name().empty()) named.Missing(diagnostics_, "name", "a name");
    if (!point_names_.insert(message.name()).second) {
      named.Error(diagnostics_, "name", "another point has it as well (expected another name)");
    }
    point[0] = message.name();
    const int errors_before = diagnostics_.error_count();
    for (int i = 0; i < named.Size("values"); ++i) {
      const std::string& text = message.values(i);
      const size_t equals = text.find('=');
      const auto report = [&](const std::string& what) {
        named.Error(diagnostics_, "values", what, i);
      };
      if (equals == std::string::npos) {
        report(fmt::format("{} has no = (expected AXIS=VALUE)", Quote(text)));
        continue;
      }
      const size_t axis = FindAxis(study_, std::string_view(text).substr(0, equals), report);
      if (axis == study_.axes.size()) continue;
      CheckGiven(axis, text.substr(equals + 1), is_given[axis], report);
      is_given[axis] = true;
      point[axis] = text.substr(equals + 1);
    }
    for (size_t axis = 1; axis < study_.axes.size(); ++axis) {
      if (is_given[axis] || study_.axes[axis].expression) continue;
      if (diagnostics_.error_count() > errors_before) break;
      named.Missing(diagnostics_, "values",
                    fmt::format("\"{}=VALUE\", too", study_.axes[axis].name));
    }
    if (diagnostics_.error_count() > errors_before || !AddDependents(point)) return;
    study_.points.push_back(std::move(point));
  }

  template <typename Report>
  void CheckGiven(size_t index, const std::string& value, bool is_given, const Report& report) {
    const StudyAxis& axis = study_.axes[index];
    if (is_given) report(fmt::format("{} has a value already", Quote(axis.name)));
    if (axis.expression || axis.source == AxisSource::kPointName) {
      report(fmt::format("{} follows from others (expected none)", Quote(axis.name)));
    }
    if (axis.source == AxisSource::kScenario &&
        std::ranges::find(axis.values, value) == axis.values.end()) {
      report(fmt::format("{} is none of the scenarios' names (expected one, e.g. {})", Quote(value),
                         Quote(axis.values.front())));
    }
  }

  const ProtoCursor& cursor_;
  const protos::Study& message_;
  Study& study_;
  Diagnostics& diagnostics_;
  std::vector<Dimension> dimensions_;
  std::vector<std::pair<size_t, BoundExpression>> dependents_;  // by axis, in order
  std::vector<Expression> conditions_;
  std::vector<BoundExpression> bound_conditions_;
  std::set<std::string> point_names_;
};

}  // namespace

void MakePoints(const ProtoCursor& cursor, Study& study, Diagnostics& diagnostics) {
  PointMaker(cursor, study, diagnostics).Make();
}

}  // namespace railyard
