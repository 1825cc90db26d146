// SPDX-License-Identifier: GPL-2.0-only
// The points that a study's axes make, and the places of what is wrong with them.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/processes/temporary_directory.h"
#include "simulator/study/study.h"
#include "simulator/study/study_check.h"
#include "simulator/study/study_loading.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Points = std::vector<std::vector<std::string>>;

class StudyPointsTest : public ::testing::Test {
 protected:
  std::optional<Study> Load(const std::string& lines) {
    for (const char* const name : {"base.textproto", "other.textproto"}) {
      std::ofstream(directory_.File(name)) << "\n";
    }
    const bool has_scenario = lines.find("scenarios") != std::string::npos;
    std::ofstream(directory_.File("s.textproto"))
        << (has_scenario ? "" : "scenario: \"base.textproto\" ")
        << "figures: \"simulated_time_ps\"\n" + lines;
    Diagnostics diagnostics;
    auto study = LoadStudy(directory_.File("s.textproto"), diagnostics);
    errors_ = diagnostics.ToString();
    return study;
  }
  Points PointsOf(const std::string& lines) {
    const auto study = Load(lines);
    EXPECT_TRUE(study.has_value()) << errors_;
    return study ? study->points : Points();
  }
  // The values of the study's only axis.
  std::vector<std::string> ValuesOf(const std::string& axis, const std::string& lines = "") {
    std::vector<std::string> values;
    for (const auto& point : PointsOf("axes { fields: \"x\" " + axis + " }\n" + lines)) {
      values.push_back(point.at(0));
    }
    return values;
  }
  void ExpectError(const std::string& lines, const std::string& error) {
    EXPECT_FALSE(Load(lines).has_value()) << lines;
    EXPECT_THAT(errors_, HasSubstr(error)) << lines;
  }

  TemporaryDirectory directory_;
  std::string errors_;
};

TEST_F(StudyPointsTest, RangesHaveBothEnds) {
  EXPECT_THAT(ValuesOf("range { first: 1 last: 2 count: 5 }"),
              ElementsAre("1", "1.25", "1.5", "1.75", "2"));
  EXPECT_THAT(ValuesOf("range { first: -0.1 last: 0.2 step: 0.1 }"),
              ElementsAre("-0.1", "0", "0.1", "0.2"));
  EXPECT_THAT(ValuesOf("range { first: 0 last: 10 step: 4 }"), ElementsAre("0", "4", "8"));
  EXPECT_THAT(ValuesOf("log_range { first: 1 last: 1024 count: 6 }"),
              ElementsAre("1", "4", "16", "64", "256", "1024"));
  EXPECT_THAT(ValuesOf("log_range { first: 1e-6 last: 0.01 count: 5 }"),
              ElementsAre("0.000001", "0.00001", "0.0001", "0.001", "0.01"));
  // 1, 1.59, 2.52, 4.
  EXPECT_THAT(ValuesOf("log_range { first: 1 last: 4 count: 4 } integer: true"),
              ElementsAre("1", "2", "3", "4"));
  EXPECT_THAT(ValuesOf("range { first: 1 last: 2 count: 5 } integer: true"), ElementsAre("1", "2"));
}

TEST_F(StudyPointsTest, AnAxisIsCombinedWithEveryOtherButWithThoseOfItsZip) {
  const Points points = PointsOf(
      "axes { name: \"a\" fields: \"x\" values: [\"1\", \"2\"] }\n"
      "axes { name: \"b\" fields: \"y\" values: [\"p\", \"q\"] }\n"
      "axes { name: \"c\" fields: \"z\" range { first: 7 last: 8 count: 2 } }\n"
      "zips { axes: [\"a\", \"c\"] }\n");
  EXPECT_EQ(points, (Points{{"1", "p", "7"}, {"1", "q", "7"}, {"2", "p", "8"}, {"2", "q", "8"}}));
}

TEST_F(StudyPointsTest, ConditionsLeaveOutPointsAndExpressionsFollow) {
  const Points points = PointsOf(
      "axes { name: \"servers\" fields: \"x\" range { first: 1 last: 6 step: 1 } }\n"
      "axes { name: \"spares\" values: [\"0\", \"1\", \"2\"] }\n"
      "axes { name: \"all\" fields: \"y\" expression: \"servers + spares\" }\n"
      "axes { name: \"half\" fields: \"z\" expression: \"all / 2\" integer: true }\n"
      "conditions: \"all % 2 == 0\"\n"
      "conditions: \"spares < servers\"\n");
  Points expected;
  for (int servers = 1; servers <= 6; ++servers) {
    for (int spares = 0; spares <= 2; ++spares) {
      const int all = servers + spares;
      if (all % 2 != 0 || spares >= servers) continue;
      expected.push_back({std::to_string(servers), std::to_string(spares), std::to_string(all),
                          std::to_string(all / 2)});
    }
  }
  EXPECT_EQ(points, expected);
}

TEST_F(StudyPointsTest, ASampleIsOneDimensionAndKeepsItsPointsAsItGrows) {
  const auto study_of = [](int points) {
    return "axes { name: \"loss\" fields: \"x\" log_uniform { low: 1e-6 high: 1e-2 } }\n"
           "axes { name: \"kind\" fields: \"k\" values: [\"p\", \"q\"] }\n"
           "axes { name: \"size\" fields: \"y\" uniform { low: 1 high: 6 } integer: true }\n"
           "axes { name: \"policy\" fields: \"z\" choice: [\"a\", \"b\", \"c\"] }\n"
           "sample { seed: 9 points: " +
           std::to_string(points) + " }\n";
  };
  const Points points = PointsOf(study_of(3'000));
  ASSERT_EQ(points.size(), 6'000u);
  double logarithms = 0;
  std::vector<int> sizes(7);
  std::vector<int> policies(3);
  for (size_t i = 0; i < points.size(); i += 2) {
    // Both kinds have the same draws.
    ASSERT_EQ(points[i][0], points[i + 1][0]);
    ASSERT_EQ(points[i][1], "p");
    const double loss = std::stod(points[i][0]);
    ASSERT_TRUE(loss >= 1e-6 && loss <= 1e-2);
    logarithms += std::log10(loss);
    ++sizes.at(std::stoul(points[i][2]));
    ++policies.at(static_cast<size_t>(points[i][3][0] - 'a'));
  }
  // Within four standard deviations: 4/sqrt(12) of the logarithms, binomial counts.
  EXPECT_NEAR(logarithms / 3'000, -4, 4 * 4 / std::sqrt(12.0 * 3'000));
  EXPECT_EQ(sizes[0], 0);
  for (size_t size = 1; size <= 6; ++size) EXPECT_NEAR(sizes.at(size), 500, 4 * std::sqrt(500.0));
  for (const int count : policies) EXPECT_NEAR(count, 1'000, 4 * std::sqrt(1'000.0));
  const Points fewer = PointsOf(study_of(100));
  ASSERT_EQ(fewer.size(), 200u);
  EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), points.begin()));
}

TEST_F(StudyPointsTest, AHypercubeFillsEveryPartOfItsAxes) {
  const Points points = PointsOf(
      "axes { name: \"a\" fields: \"x\" uniform { low: 0 high: 64 } }\n"
      "axes { name: \"b\" fields: \"y\" choice: [\"p\", \"q\", \"r\", \"s\"] }\n"
      "sample { points: 64 latin_hypercube: true }\n");
  ASSERT_EQ(points.size(), 64u);
  std::set<int> parts;
  std::multiset<std::string> choices;
  for (const auto& point : points) {
    parts.insert(static_cast<int>(std::stod(point[0])));
    choices.insert(point[1]);
  }
  EXPECT_EQ(parts.size(), 64u);
  for (const char* const choice : {"p", "q", "r", "s"}) EXPECT_EQ(choices.count(choice), 16u);
}

TEST_F(StudyPointsTest, ScenariosAndNamedPointsAreColumns) {
  const auto study = Load(
      "scenarios: [\"base.textproto\", \"other.textproto\"]\n"
      "axes { name: \"a\" fields: \"x\" values: [\"1\", \"2\"] unit: \"MiB\" }\n"
      "axes { name: \"b\" fields: [\"y\", \"z\"] expression: \"2 * a\" unit: \"us\" }\n"
      "points { name: \"nominal\" values: [\"scenario=other\", \"a=7\"] }\n"
      "seeds: 2\n");
  ASSERT_TRUE(study.has_value()) << errors_;
  EXPECT_EQ(study->points, (Points{{"", "base", "1", "2"},
                                   {"", "base", "2", "4"},
                                   {"", "other", "1", "2"},
                                   {"", "other", "2", "4"},
                                   {"nominal", "other", "7", "14"}}));
  const std::vector<StudyRun> runs = RunsOf(*study);
  ASSERT_EQ(runs.size(), 10u);
  EXPECT_EQ(ScenarioOf(*study, runs[0]).path, directory_.File("base.textproto"));
  EXPECT_EQ(ScenarioOf(*study, runs[9]).path, directory_.File("other.textproto"));
  EXPECT_THAT(SetsOf(*study, runs[9]), ElementsAre("seed=2", "x=7MiB", "y=14us", "z=14us"));
}

TEST_F(StudyPointsTest, NamedPointsMayBeTheOnlyOnes) {
  EXPECT_EQ(PointsOf("axes { name: \"a\" fields: \"x\" }\n"
                     "points { name: \"low\" values: \"a=1\" }\n"
                     "points { name: \"high\" values: \"a=100\" }\n"),
            (Points{{"low", "1"}, {"high", "100"}}));
}

TEST_F(StudyPointsTest, MistakesAreLocated) {
  const std::string axis = "axes { fields: \"x\" ";
  ExpectError(axis + "}", "s.textproto:2:1: error: axes[0].values: missing");
  ExpectError(axis + "values: \"1\" range { first: 1 last: 2 count: 2 } }",
              "s.textproto:2:32: error: axes[0].range: the axis has values already");
  ExpectError(axis + "range { first: 2 last: 1 count: 2 } }",
              "s.textproto:2:37: error: axes[0].range.last: 1 is not above first");
  ExpectError(axis + "range { first: 1 last: 2 } }", "axes[0].range.count: missing");
  ExpectError(axis + "range { first: 1 last: 2 count: 2 step: 1 } }",
              "axes[0].range.step: follows from count");
  ExpectError(axis + "range { first: 1 last: 2 step: 1e-300 } }",
              "axes[0].range.step: 1e-300 is out of range");
  ExpectError(axis + "range { first: nan last: inf count: 2 } }",
              "axes[0].range.first: \"nan\" is not a number");
  ExpectError(axis + "log_range { first: 0 last: 2 count: 2 } }",
              "axes[0].log_range.first: 0 is out of range");
  ExpectError(axis + "log_range { first: 1 last: 2 count: 4000000000 } }",
              "axes[0].log_range.count: 4000000000 is out of range");
  ExpectError(axis + "uniform { low: 1 high: 2 } }", "error: sample: missing");
  ExpectError(axis + "uniform { low: 1 high: 2.5 } integer: true }\nsample { points: 1 }",
              "axes[0].integer: the ends of uniform are no whole numbers");
  ExpectError(axis + "choice: \"a\" integer: true }\nsample { points: 1 }",
              "axes[0].integer: rounds numbers");
  ExpectError(axis + "choice: \"a\" }\nsample { points: 100 latin_hypercube: true }",
              "s.textproto:3:10: error: sample.points: 100 is no power of two, as latin_hypercube "
              "needs (expected 64 or 128)");
  ExpectError(axis + "choice: \"a\" }\nsample { points: 4000000000 }",
              "sample.points: 4000000000 is out of range");
  ExpectError(axis + "values: \"1\" }\nsample { points: 1 }", "error: sample: no axis draws");
  ExpectError(axis + "expression: \"1 +\" }", "axes[0].expression: at character 4: ");
  ExpectError(axis + "expression: \"y\" }", "axes[0].expression: \"y\" is no axis");
  ExpectError(axis + "expression: \"x\" }", "\"x\" is no axis before this one");
  ExpectError(axis + "values: \"wide\" }\nconditions: \"x > 1\"",
              "s.textproto:3:1: error: conditions[0]: at character 1 where x=\"wide\": \"wide\" is "
              "no number");
  ExpectError(axis + "values: \"1\" }\nconditions: \"x > 1\"", "conditions[0]: leave no point");
  ExpectError("axes { name: \"a\" values: \"1\" }", "axes[0].fields: missing");
  ExpectError(axis + "values: \"1\" }\nzips { axes: \"x\" }", "zips[0].axes: too few");
  ExpectError(axis +
                  "values: \"1\" }\naxes { fields: \"y\" values: [\"1\", \"2\"] }\n"
                  "zips { axes: [\"x\", \"y\"] }",
              "s.textproto:4:20: error: zips[0].axes[1]: \"y\" has 2 values and \"x\" has 1");
  ExpectError(axis + "values: \"1\" }\nscenarios: [\"base.textproto\", \"base.textproto\"]",
              "scenarios[1]: another scenario is called \"base\"");
}

TEST_F(StudyPointsTest, MistakesInNamedPointsAreLocated) {
  const std::string axis = "axes { fields: \"x\" values: \"1\" }\n";
  ExpectError(axis + "points { name: \"p\" }", "points[0].values: missing (expected \"x=VALUE\"");
  ExpectError(axis + "points { values: \"x=1\" }", "points[0].name: missing");
  ExpectError(axis + "points { name: \"p\" values: \"x\" }", "points[0].values[0]: \"x\" has no =");
  ExpectError(axis + "points { name: \"p\" values: \"y=1\" }", "\"y\" is no axis");
  ExpectError(axis + "points { name: \"p\" values: [\"x=1\", \"x=2\"] }",
              "points[0].values[1]: \"x\" has a value already");
  ExpectError(
      axis + "points { name: \"p\" values: \"x=1\" }\npoints { name: \"p\" values: \"x=1\" }",
      "points[1].name: another point has it as well");
}

// A million combinations are too many, whatever conditions would leave of them.
TEST_F(StudyPointsTest, TooManyPointsAreRefused) {
  const std::string axes =
      "axes { name: \"a\" fields: \"x\" range { first: 1 last: 2000 step: 1 } }\n"
      "axes { name: \"b\" fields: \"y\" range { first: 1 last: 2000 step: 1 } }\n";
  ExpectError(axes, "with all seeds these are more than 1000000 runs");
  ExpectError(axes + "conditions: \"a == b\"", "more than 1000000 points");
  std::string many;
  for (int i = 0; i < 12; ++i) {
    many += "axes { fields: \"x" + std::to_string(i) +
            "\" range { first: 1 last: 1000000 step: 1 } }\n";
  }
  ExpectError(many, "the axes have more than 10000000 values");
}

TEST_F(StudyPointsTest, NumbersHaveNoExponentAndTwelveDigits) {
  const std::vector<std::pair<double, std::string>> cases = {
      {0, "0"},
      {-0.0, "0"},
      {1e-7, "0.0000001"},
      {1.0 / 3, "0.333333333333"},
      {1e15, "1000000000000000"},
      {-2.5, "-2.5"},
      {123456.789, "123456.789"},
  };
  for (const auto& [number, text] : cases) EXPECT_EQ(NumberText(number), text);
}

// Every value that is written down and both ends of others are loaded before a study begins.
TEST_F(StudyPointsTest, TheCheckedPointsOfALargeStudyHaveItsExtremes) {
  const auto study = Load(
      "axes { name: \"n\" fields: \"x\" uniform { low: 0 high: 1 } }\n"
      "axes { name: \"policy\" fields: \"y\" values: [\"a\", \"b\", \"c\"] }\n"
      "sample { points: 20000 }\n");
  ASSERT_TRUE(study.has_value()) << errors_;
  ASSERT_EQ(study->points.size(), 60'000u);
  const std::vector<size_t> checked = PointsToCheck(*study, {777});
  EXPECT_TRUE(std::ranges::count(checked, 777u));
  EXPECT_LE(checked.size(), kPointsCheckedMax);
  EXPECT_GT(checked.size(), kPointsCheckedMax / 2);
  std::set<std::string> policies;
  std::vector<double> all;
  std::vector<double> numbers;
  for (const auto& point : study->points) all.push_back(std::stod(point[0]));
  for (const size_t point : checked) {
    policies.insert(study->points[point][1]);
    numbers.push_back(std::stod(study->points[point][0]));
  }
  EXPECT_EQ(policies.size(), 3u);
  EXPECT_EQ(*std::ranges::min_element(numbers), *std::ranges::min_element(all));
  EXPECT_EQ(*std::ranges::max_element(numbers), *std::ranges::max_element(all));
}

// A mistake that two values make together is found, too: each pair of ends and of written values.
TEST_F(StudyPointsTest, TheCheckedPointsOfALargeStudyHaveItsPairs) {
  const auto study = Load(
      "axes { name: \"n\" fields: \"x\" range { first: 1 last: 30 step: 1 } }\n"
      "axes { name: \"m\" fields: \"z\" range { first: 1 last: 30 step: 1 } }\n"
      "axes { name: \"policy\" fields: \"y\" values: [\"a\", \"b\", \"c\"] }\n");
  ASSERT_TRUE(study.has_value()) << errors_;
  std::set<std::string> pairs;
  for (const size_t point : PointsToCheck(*study, {})) {
    const auto& values = study->points[point];
    for (const std::string& end : {values[0], values[1]}) {
      if (end == "1" || end == "30") pairs.insert(end + values[2]);
    }
    if (values[0] != "1" && values[0] != "30") continue;
    if (values[1] == "1" || values[1] == "30") pairs.insert(values[0] + " " + values[1]);
  }
  EXPECT_EQ(pairs.size(), 2u * 3 + 2 * 2);
}

// A time-out of a NIC is a whole number, and 1.5 is neither the least nor the greatest of its
// values.
TEST_F(StudyPointsTest, ValuesThatAreNoneOfTheirFieldsAreSuspicious) {
  const auto study = Load(
      "axes { name: \"at\" fields: \"watchdog.no_progress\" unit: \"s\" "
      "range { first: 1 last: 400 step: 1 } }\n"
      "axes { name: \"draw\" fields: \"nccl.IB_TIMEOUT\" range { first: 1 last: 2 count: 3 } }\n");
  ASSERT_TRUE(study.has_value()) << errors_;
  ASSERT_EQ(study->points.size(), 1'200u);
  EXPECT_THAT(SuspiciousPoints(*study), ElementsAre(1u));
}

TEST_F(StudyPointsTest, AFieldIsSetByOneSetOrAxis) {
  const std::string axis = "axes { fields: \"x\" values: [\"1\", \"2\"] }\n";
  ExpectError(axis + "axes { name: \"y\" fields: \"x\" values: \"3\" }",
              "sets \"x\", as axes[0] does (expected one of them)");
  ExpectError("sets: \"x=3\"\n" + axis, "sets \"x\", as sets[0] does (expected one of them)");
  ExpectError("sets: [\"a=3\", \"a=4\"]\n" + axis,
              "sets \"a\", as sets[0] does (expected one of them)");
  ExpectError("sets: \"seed=7\"\n" + axis,
              "sets \"seed\", as the list of seeds does (expected one of them)");
}

TEST_F(StudyPointsTest, NoAxisHasTheNameOfAColumn) {
  for (const std::string name : {"mean_low", "P50", "p99_high", "seed", "peak_memory_bytes"}) {
    ExpectError("axes { name: \"" + name + "\" fields: \"x\" values: \"3\" }",
                "another column is called \"" + name + "\" as well (expected another name)");
  }
}

}  // namespace
}  // namespace railyard
