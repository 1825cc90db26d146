// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/run_study.h"

#include <algorithm>
#include <chrono>

#include "analysis/writers/csv_writer.h"
#include "analysis/writers/sqlite_writer.h"
#include "simulator/files/output_file.h"
#include "simulator/processes/alarm.h"
#include "simulator/processes/child_process.h"
#include "simulator/processes/interruption.h"
#include "simulator/processes/temporary_directory.h"
#include "simulator/study/run_key.h"
#include "simulator/study/study_tables.h"

namespace railyard {

std::vector<size_t> StudyResult::Failed() const {
  std::vector<size_t> failed;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].exit >= 0 && !runs[i].has_result) failed.push_back(i);
  }
  return failed;
}

std::optional<double> StudyResult::ValueOf(size_t run, size_t figure) const {
  return runs[run].exit < 0 ? std::nullopt : runs[run].figures[figure];
}

std::vector<double> StudyResult::ValuesAt(const Study& study, size_t point, size_t figure) const {
  std::vector<double> values;
  for (size_t run = point * study.seeds; run < (point + 1) * study.seeds; ++run) {
    if (const auto value = ValueOf(run, figure)) values.push_back(*value);
  }
  return values;
}

std::vector<std::string> StudyResult::Absent(const Study& study) const {
  std::vector<std::string> absent;
  for (size_t i = 0; i < study.figures.size(); ++i) {
    const bool is_somewhere = std::any_of(runs.begin(), runs.end(), [i](const auto& run) {
      return run.has_result && run.figures[i].has_value();
    });
    if (!is_somewhere) absent.push_back(study.figures[i]);
  }
  return absent;
}

std::vector<std::string> CommandOf(const Study& study, const StudyRun& run,
                                   const std::string& out) {
  std::vector<std::string> command = {
      "run", ScenarioOf(study, run).path, "--quiet", "--no-report", "--out", out};
  if (study.no_baseline) command.emplace_back("--no-baseline");
  for (const std::string& set : SetsOf(study, run)) {
    command.insert(command.end(), {"--set", set});
  }
  return command;
}

std::vector<std::string> StudyWork::CommandOf(size_t run, const std::string& out) const {
  std::vector<std::string> command = railyard::CommandOf(study, runs[run], out);
  const std::string& key = fault_free_keys[run];
  if (!key.empty()) {
    command.insert(command.end(), {"--baseline-file", BaselinePath(directory, key)});
  }
  return command;
}

StudyResult RunStudy(const Study& study, const StudyDirectory& directory,
                     const StudyExecutor& executor,
                     const std::function<void(const StudyProgress&)>& on_progress) {
  const std::vector<StudyRun> runs = RunsOf(study);
  StudyResult result;
  result.runs.resize(runs.size());
  StudyProgress progress{.runs = runs.size()};
  StudyWork work{.study = study,
                 .runs = runs,
                 .left = {},
                 .directory = directory.path(),
                 .fault_free_keys = SharedFaultFreeKeys(study, runs),
                 .on_ended = [&](size_t run, const StudyRunResult& ended) {
                   result.runs[run] = ended;
                   ++progress.done;
                   progress.failed += ended.has_result ? 0u : 1u;
                   on_progress(progress);
                 }};
  for (size_t i = 0; i < runs.size(); ++i) {
    if (directory.IsDone(i)) {
      result.runs[i] = ReadRunResult(study, RunPath(directory.path(), i));
      ++progress.kept;
    } else {
      work.left.push_back(i);
    }
  }
  try {
    if (!work.left.empty()) executor(work);
  } catch (const Interrupted& interrupted) {
    result.interruption = interrupted.what();
  }
  return result;
}

std::vector<RunCost> MeasureRuns(const Study& study, const std::vector<size_t>& numbers,
                                 int64_t limit_seconds) {
  const std::vector<StudyRun> runs = RunsOf(study);
  std::vector<RunCost> costs;
  for (const size_t number : numbers) {
    const TemporaryDirectory directory;
    ChildProcess process;
    process.Start(CommandOf(study, runs[number], directory.File("out")), directory.File("log"));
    const auto begin = std::chrono::steady_clock::now();
    const auto seconds = [&begin] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    const Alarm alarm(limit_seconds);
    RunCost cost{.run = number};
    const auto exit = process.Wait([&] {
      if (seconds() < static_cast<double>(limit_seconds) || cost.is_cut_off) return;
      cost.is_cut_off = true;
      process.AskToEnd();
    });
    if (!exit) throw Interrupted(TakeInterruption());
    cost.seconds = seconds();
    costs.push_back(cost);
  }
  return costs;
}

void WriteStudy(const Study& study, const StudyResult& result, const std::string& directory) {
  const StudyTables tables(study, result, directory);
  for (const auto& [name, table] : {std::pair("points.csv", tables.RunRows()),
                                    std::pair("statistics.csv", tables.Statistics())}) {
    OutputFile file(directory + "/" + name);
    WriteCsv(table, file);
    file.Close();
  }
  WriteDatabaseAt(directory + "/study.sqlite",
                  {tables.RunRowsWithCost(), tables.Statistics(), tables.Means(),
                   tables.Differences(), tables.Failed()});
}

}  // namespace railyard
