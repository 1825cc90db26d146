// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/study/sample.h"
#include "simulator/study/study.pb.h"
#include "simulator/study/study_loading.h"

namespace railyard {
namespace {

// Larger numbers have no 12 exact digits and a fraction; smaller ones are none that a field takes.
constexpr double kNumberMax = 1e15;
constexpr double kPositiveMin = 1e-18;
// Limit on the values of all axes, for memory.
constexpr size_t kValuesMax = 10 * kStudyRunsMax;

constexpr std::array<std::pair<const char*, AxisSource>, 7> kSources = {{
    {"values", AxisSource::kValues},
    {"range", AxisSource::kRange},
    {"log_range", AxisSource::kLogRange},
    {"uniform", AxisSource::kUniform},
    {"log_uniform", AxisSource::kLogUniform},
    {"choice", AxisSource::kChoice},
    {"expression", AxisSource::kExpression},
}};
constexpr const char* kExpectedSource =
    "values, range, log_range, uniform, log_uniform, choice or expression";

// Columns of the tables that have axes, too, beside kStatisticColumns. SQLite's names do not differ
// by case.
constexpr std::array<const char*, 10> kColumns = {
    "run",     "point",  "seed", "exit",    "status",
    "seconds", "figure", "runs", "missing", "peak_memory_bytes"};

// Finds fields that several sets and axes set, of which only the last would have an effect, and the
// seed, which the study sets.
class FieldSetters {
 public:
  explicit FieldSetters(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  // Notes that `setter`, element `index` of a list of `cursor`, sets the field.
  void Add(const std::string& field, const std::string& setter, const ProtoCursor& cursor,
           const char* list, int index) {
    const auto [entry, is_new] = setters_.try_emplace(field, setter);
    if (is_new) return;
    cursor.Error(
        diagnostics_, list,
        fmt::format("sets {}, as {} does (expected one of them)", Quote(field), entry->second),
        index);
  }

 private:
  std::map<std::string, std::string> setters_ = {{"seed", "the list of seeds"}};
  Diagnostics& diagnostics_;
};

struct CaseInsensitive {
  bool operator()(const std::string& a, const std::string& b) const {
    return std::ranges::lexicographical_compare(
        a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) < std::tolower(y); });
  }
};

bool IsRepeated(AxisSource source) {
  return source == AxisSource::kValues || source == AxisSource::kChoice;
}

bool HasSource(const ProtoCursor& axis, const char* field, AxisSource source) {
  return IsRepeated(source) ? axis.Size(field) > 0 : axis.Has(field);
}

// The two numbers of a range or interval, checked; nullopt after an error.
struct Ends {
  double first = 0;
  double last = 0;
};

std::optional<double> CheckedNumber(const ProtoCursor& cursor, const char* field, double value,
                                    double min, Diagnostics& diagnostics) {
  if (!cursor.Has(field)) {
    cursor.Missing(diagnostics, field, "a number");
    return std::nullopt;
  }
  if (value >= min && value <= kNumberMax) return value;
  cursor.Error(diagnostics, field,
               fmt::format("{} is out of range (expected {} to {})", value, min, kNumberMax));
  return std::nullopt;
}

template <typename Message>
std::optional<Ends> EndsOf(const ProtoCursor& cursor, bool is_log, Diagnostics& diagnostics) {
  const auto& message = static_cast<const Message&>(cursor.message());
  const double min = is_log ? kPositiveMin : -kNumberMax;
  std::optional<double> first;
  std::optional<double> last;
  const char* first_name = "first";
  const char* last_name = "last";
  if constexpr (requires { message.low(); }) {
    first_name = "low";
    last_name = "high";
    first = CheckedNumber(cursor, first_name, message.low(), min, diagnostics);
    last = CheckedNumber(cursor, last_name, message.high(), min, diagnostics);
  } else {
    first = CheckedNumber(cursor, first_name, message.first(), min, diagnostics);
    last = CheckedNumber(cursor, last_name, message.last(), min, diagnostics);
  }
  if (!first || !last) return std::nullopt;
  if (*first < *last) return Ends{*first, *last};
  cursor.Error(diagnostics, last_name,
               fmt::format("{} is not above {} (expected a higher number)", *last, first_name));
  return std::nullopt;
}

// Returns how many numbers a range has.
std::optional<size_t> CountOf(const ProtoCursor& cursor, const Ends& ends,
                              Diagnostics& diagnostics) {
  const auto& message = cursor.As<protos::StudyRange>();
  if (cursor.Has("count") == cursor.Has("step")) {
    if (cursor.Has("count")) {
      cursor.Error(diagnostics, "step", "follows from count (expected one of both)");
    } else {
      cursor.Missing(diagnostics, "count", "count or step");
    }
    return std::nullopt;
  }
  if (cursor.Has("count")) return cursor.Number(diagnostics, "count", 2, 2, kStudyRunsMax);
  const double span = ends.last - ends.first;
  if (message.step() > 0 && message.step() <= span && span / message.step() < kStudyRunsMax) {
    // A last number that rounding has put a little beyond the end belongs to the range.
    return static_cast<size_t>(std::floor(span / message.step() + 1e-9)) + 1;
  }
  cursor.Error(diagnostics, "step",
               fmt::format("{} is out of range (expected above {:.6g}, up to {:.6g})",
                           message.step(), span / kStudyRunsMax, span));
  return std::nullopt;
}

std::vector<double> RangeNumbers(const ProtoCursor& cursor, Diagnostics& diagnostics) {
  const auto ends = EndsOf<protos::StudyRange>(cursor, false, diagnostics);
  const auto count = ends ? CountOf(cursor, *ends, diagnostics) : std::nullopt;
  std::vector<double> numbers;
  if (!count) return numbers;
  const double step = cursor.Has("step")
                          ? cursor.As<protos::StudyRange>().step()
                          : (ends->last - ends->first) / static_cast<double>(*count - 1);
  for (size_t i = 0; i < *count; ++i)
    numbers.push_back(ends->first + step * static_cast<double>(i));
  return numbers;
}

std::vector<double> LogRangeNumbers(const ProtoCursor& cursor, Diagnostics& diagnostics) {
  const auto ends = EndsOf<protos::StudyLogRange>(cursor, true, diagnostics);
  std::vector<double> numbers;
  if (!cursor.Has("count")) cursor.Missing(diagnostics, "count", "how many numbers, 2 or more");
  const size_t count = cursor.Number(diagnostics, "count", 2, 2, kStudyRunsMax);
  if (!ends) return numbers;
  for (size_t i = 0; i < count; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(count - 1);
    numbers.push_back(ends->first * std::pow(ends->last / ends->first, share));
  }
  return numbers;
}

// The draws of a study, checked.
struct SampleSpec {
  uint64_t points = 0;  // 0: none, or they are wrong
  uint64_t seed = 1;
  bool is_latin_hypercube = false;
};

SampleSpec LoadSample(const ProtoCursor& cursor, Diagnostics& diagnostics) {
  if (!cursor.Has("sample")) return {};
  const ProtoCursor sample = cursor.Child("sample");
  SampleSpec spec{.seed = sample.Number(diagnostics, "seed", 1, 0, UINT64_MAX),
                  .is_latin_hypercube = sample.Flag("latin_hypercube", false)};
  if (!sample.Has("points")) sample.Missing(diagnostics, "points", "how many, e.g. 100");
  spec.points = sample.Number(diagnostics, "points", 0, 1, kStudyRunsMax);
  if (spec.is_latin_hypercube && (spec.points & (spec.points - 1)) != 0) {
    uint64_t below = 1;
    while (2 * below < spec.points) below *= 2;
    sample.Error(diagnostics, "points",
                 fmt::format("{} is no power of two, as latin_hypercube needs (expected {} or {})",
                             spec.points, below, 2 * below));
    spec.points = 0;
  }
  return spec;
}

// The loader of one axis.
class AxisLoader {
 public:
  AxisLoader(const ProtoCursor& study, const SampleSpec& sample, const ProtoCursor& axis,
             Diagnostics& diagnostics)
      : study_(study),
        sample_(sample),
        axis_(axis),
        message_(axis.As<protos::StudyAxis>()),
        diagnostics_(diagnostics) {}

  // Precondition: the axis has a name or a field.
  StudyAxis Load(AxisSource source, const char* field) {
    StudyAxis loaded;
    loaded.name = axis_.Text("name", message_.fields_size() > 0 ? message_.fields(0) : "");
    loaded.fields.assign(message_.fields().begin(), message_.fields().end());
    loaded.unit = message_.unit();
    loaded.source = source;
    loaded.path = axis_.PathSelf();
    if (IsRepeated(source) && axis_.Has("integer")) {
      axis_.Error(diagnostics_, "integer",
                  fmt::format("rounds numbers (expected none beside {})", field));
    }
    switch (source) {
      case AxisSource::kValues:
        loaded.values.assign(message_.values().begin(), message_.values().end());
        for (int i = 0; i < axis_.Size("values"); ++i) {
          loaded.where.push_back(axis_.Where("values", i));
        }
        return loaded;
      case AxisSource::kRange:
        loaded.values = Spaced(RangeNumbers(axis_.Child("range"), diagnostics_));
        break;
      case AxisSource::kLogRange:
        loaded.values = Spaced(LogRangeNumbers(axis_.Child("log_range"), diagnostics_));
        break;
      case AxisSource::kExpression:
        loaded.expression = ParsedExpression();
        break;
      case AxisSource::kUniform:
      case AxisSource::kLogUniform:
      case AxisSource::kChoice:
        loaded.values = Drawn(loaded.name, source, field);
        break;
      default:
        break;
    }
    loaded.where = {axis_.Where(field, source == AxisSource::kChoice ? 0 : -1)};
    return loaded;
  }

 private:
  std::vector<std::string> Spaced(const std::vector<double>& numbers) const {
    std::vector<std::string> values;
    for (const double number : numbers) {
      std::string value = NumberText(message_.integer() ? std::round(number) : number);
      if (message_.integer() && !values.empty() && values.back() == value) continue;
      values.push_back(std::move(value));
    }
    return values;
  }

  std::optional<Expression> ParsedExpression() const {
    auto parsed = Expression::Parse(message_.expression());
    if (auto* const expression = std::get_if<Expression>(&parsed)) return std::move(*expression);
    const auto& error = std::get<ExpressionError>(parsed);
    axis_.Error(diagnostics_, "expression",
                fmt::format("at character {}: {}", error.character, error.what));
    return std::nullopt;
  }

  std::vector<std::string> Drawn(const std::string& name, AxisSource source,
                                 const char* field) const {
    std::vector<std::string> values;
    std::optional<Ends> ends;
    if (source != AxisSource::kChoice) {
      const bool is_log = source == AxisSource::kLogUniform;
      ends = EndsOf<protos::StudyInterval>(axis_.Child(field), is_log, diagnostics_);
      if (!ends) return values;
      if (message_.integer() &&
          (ends->first != std::floor(ends->first) || ends->last != std::floor(ends->last))) {
        axis_.Error(diagnostics_, "integer",
                    fmt::format("the ends of {} are no whole numbers "
                                "(expected whole ones)",
                                field));
        return values;
      }
    }
    if (!study_.Has("sample")) {
      study_.Missing(
          diagnostics_, "sample",
          fmt::format("how many points {} draws, e.g. sample {{ points: 100 }}", axis_.PathSelf()));
      return values;
    }
    const std::vector<double> draws = sample_.is_latin_hypercube
                                          ? LatinHypercubeDraws(sample_.seed, name, sample_.points)
                                          : UniformDraws(sample_.seed, name, sample_.points);
    for (const double draw : draws) {
      if (source == AxisSource::kChoice) {
        const auto count = static_cast<double>(message_.choice_size());
        values.push_back(message_.choice(static_cast<int>(draw * count)));
      } else {
        values.push_back(NumberText(DrawnNumber(draw, source, *ends)));
      }
    }
    return values;
  }

  double DrawnNumber(double draw, AxisSource source, const Ends& ends) const {
    if (source == AxisSource::kLogUniform) {
      const double number = ends.first * std::pow(ends.last / ends.first, draw);
      return message_.integer() ? std::round(number) : number;
    }
    if (!message_.integer()) return ends.first + draw * (ends.last - ends.first);
    return ends.first + std::floor(draw * (ends.last - ends.first + 1));
  }

  const ProtoCursor& study_;
  const SampleSpec& sample_;
  const ProtoCursor& axis_;
  const protos::StudyAxis& message_;
  Diagnostics& diagnostics_;
};

// The axes that come first: names of points, and scenarios.
void AddLeadingAxes(const ProtoCursor& cursor, Study& study) {
  if (cursor.Size("points") > 0) {
    study.axes.push_back({.name = "name",
                          .source = AxisSource::kPointName,
                          .path = "points",
                          .values = {""},
                          .where = {cursor.Where("points", 0)}});
  }
  if (cursor.Size("scenarios") == 0) return;
  StudyAxis axis{.name = "scenario", .source = AxisSource::kScenario, .path = "scenarios"};
  for (const StudyScenario& scenario : study.scenarios) {
    axis.values.push_back(scenario.name);
    axis.where.push_back(scenario.where);
  }
  study.axes.push_back(std::move(axis));
}

// Returns the source of an axis and the field that has it; nullopt without one, and with more than
// one, which is an error.
std::optional<std::pair<const char*, AxisSource>> SourceOf(const ProtoCursor& axis,
                                                           Diagnostics& diagnostics) {
  std::optional<std::pair<const char*, AxisSource>> found;
  for (const auto& source : kSources) {
    if (!HasSource(axis, source.first, source.second)) continue;
    if (found) {
      axis.Error(diagnostics, source.first,
                 fmt::format("the axis has {} already (expected one of them)", found->first),
                 IsRepeated(source.second) ? 0 : -1);
      return std::nullopt;
    }
    found = source;
  }
  return found;
}

bool HasNoSource(const ProtoCursor& axis) {
  return std::ranges::none_of(
      kSources, [&](const auto& source) { return HasSource(axis, source.first, source.second); });
}

void CheckThatOneDraws(const ProtoCursor& cursor, const Study& study, Diagnostics& diagnostics) {
  if (!cursor.Has("sample") || std::ranges::any_of(study.axes, &StudyAxis::IsDrawn)) return;
  cursor.Error(diagnostics, "sample",
               "no axis draws (expected one with uniform, log_uniform or choice)");
}

}  // namespace

std::string NumberText(double number) {
  if (number == 0) return "0";
  constexpr int kDigits = 12;
  const int decimals =
      std::clamp(kDigits - 1 - static_cast<int>(std::floor(std::log10(std::abs(number)))), 0, 40);
  std::string text = fmt::format("{:.{}f}", number, decimals);
  if (decimals > 0) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

void LoadAxes(const ProtoCursor& cursor, Study& study, Diagnostics& diagnostics) {
  AddLeadingAxes(cursor, study);
  std::set<std::string, CaseInsensitive> names(kColumns.begin(), kColumns.end());
  names.insert(kStatisticColumns.begin(), kStatisticColumns.end());
  for (const StudyAxis& axis : study.axes) names.insert(axis.name);
  names.insert(study.figures.begin(), study.figures.end());
  FieldSetters setters(diagnostics);
  for (size_t i = 0; i < study.sets.size(); ++i) {
    setters.Add(study.sets[i].substr(0, study.sets[i].find('=')), fmt::format("sets[{}]", i),
                cursor, "sets", static_cast<int>(i));
  }
  const SampleSpec sample = LoadSample(cursor, diagnostics);
  size_t values = 0;
  // Named points may be the only ones.
  bool has_no_source = cursor.Size("points") > 0;
  for (int i = 0; i < cursor.Size("axes"); ++i) {
    has_no_source = has_no_source && HasNoSource(cursor.Child("axes", i));
  }
  for (int i = 0; i < cursor.Size("axes"); ++i) {
    const ProtoCursor axis = cursor.Child("axes", i);
    auto source = SourceOf(axis, diagnostics);
    if (HasNoSource(axis)) {
      if (has_no_source) {
        source = {"name", AxisSource::kPoints};
      } else {
        axis.Missing(diagnostics, "values", kExpectedSource);
      }
    }
    if (axis.Size("fields") == 0 && !axis.Has("name")) {
      axis.Missing(diagnostics, "fields", "one or more");
      continue;
    }
    if (!source) continue;
    StudyAxis loaded =
        AxisLoader(cursor, sample, axis, diagnostics).Load(source->second, source->first);
    if (!names.insert(loaded.name).second) {
      axis.Error(diagnostics, "name",
                 fmt::format("another column is called {} as well (expected another name)",
                             Quote(loaded.name)));
    }
    for (size_t field = 0; field < loaded.fields.size(); ++field) {
      setters.Add(loaded.fields[field], loaded.path, axis, "fields", static_cast<int>(field));
    }
    values += loaded.values.size();
    study.axes.push_back(std::move(loaded));
    if (values > kValuesMax) {
      cursor.Error(diagnostics, "axes",
                   fmt::format("the axes have more than {} values (expected fewer)", kValuesMax),
                   i);
      return;
    }
  }
  CheckThatOneDraws(cursor, study, diagnostics);
}

}  // namespace railyard
