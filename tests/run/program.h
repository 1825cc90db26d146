// SPDX-License-Identifier: GPL-2.0-only
// The built program as its users see it: run as a child process, judged by its exit status, what it
// prints and the files it leaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include <gtest/gtest.h>
#include <rapidjson/document.h>

namespace railyard::testing {

// A directory of its own, removed at the end.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory();

  std::string Path(const std::string& name) const { return (directory_ / name).string(); }
  // Returns the path.
  std::string Write(const std::string& name, const std::string& text) const;
  // Names of what is in it, hidden ones too, sorted.
  std::vector<std::string> Entries() const;

 private:
  std::filesystem::path directory_;
};

std::string ReadText(const std::string& path);

// Says how a child process ended.
struct ProgramExit {
  int status = -1;  // 128 + signal if a signal ended it, as a shell says
  std::string output;
  std::string errors;
};

// `railyard ARGUMENTS...`, its standard output and error in files of `scratch`.
class RunningProgram {
 public:
  RunningProgram(const ScratchDirectory& scratch, const std::vector<std::string>& arguments);
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;
  ~RunningProgram();

  void Kill() const;
  void Send(int signal) const;
  pid_t id() const { return child_; }
  // Returns the standard error so far.
  std::string Errors() const { return ReadText(errors_); }
  // Fails the test, and kills the program, if it has not ended by itself in so many seconds.
  ProgramExit Wait(int seconds_max = 240);

 private:
  std::string output_;
  std::string errors_;
  std::string command_;
  pid_t child_ = 0;
};

// Rows of text with named columns: a CSV file, or the answer to a query.
class Table {
 public:
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;

  size_t size() const { return rows.size(); }
  const std::string& Text(size_t row, const std::string& column) const;
  int64_t Integer(size_t row, const std::string& column) const;
  double Real(size_t row, const std::string& column) const;
  // Over the rows in which `where` reads `is`; over all of them without.
  int64_t Sum(const std::string& column, const std::string& where = "",
              const std::string& is = "") const;
};
Table ReadCsv(const std::string& path);  // RFC 4180, without line breaks in fields

Table QueryDatabase(const std::string& path, const std::string& sql);

// A run that has ended, and what it wrote.
struct EndedRun {
  ProgramExit exit;
  std::string directory;
  rapidjson::Document summary;  // null if the run wrote nothing
  Table collectives;
  Table pairs;
  Table links;

  bool has_result() const { return summary.IsObject(); }
  // By path, e.g. "collectives.stretch.max".
  const rapidjson::Value& At(const std::string& path) const;
  std::string Text(const std::string& path) const { return At(path).GetString(); }
  int64_t Integer(const std::string& path) const { return At(path).GetInt64(); }
  double Real(const std::string& path) const { return At(path).GetDouble(); }
  // Packets by reason.
  std::map<std::string, int64_t> Drops() const;
  // The tier's entry of `tiers`.
  int64_t OfTier(const std::string& tier, const char* figure) const;
  // A query to results.sqlite.
  Table Query(const std::string& sql) const;
};

class ProgramTest : public ::testing::Test {
 protected:
  ProgramExit Railyard(const std::vector<std::string>& arguments) const;
  // `railyard run` of a scenario's text, or of a file, into a new directory.
  EndedRun RunText(const std::string& scenario, const std::vector<std::string>& arguments = {});
  EndedRun RunFile(const std::string& path, const std::vector<std::string>& arguments = {});

  ScratchDirectory scratch_;

 private:
  int runs_ = 0;
};

// A scenario file the project ships.
std::string ShippedScenario(const std::string& name);

// Blocks of scenarios.
std::string RailOptimized(uint32_t servers);
std::string Program(const std::string& kind, const std::string& bytes,
                    const std::string& more = "");
std::string LinkDown(const std::string& link, const std::string& at, const std::string& until = "",
                     const std::string& direction = "");
// Costs nothing: what remains is the wires.
inline constexpr const char* kFreeGpu =
    "gpu { launch_latency: \"0s\" nvlink_step_latency: \"0s\" network_step_latency: \"0s\" "
    "channel_rate: \"0Gbps\" proxy_post_latency: \"0s\" }\n";

}  // namespace railyard::testing
