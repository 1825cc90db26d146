// SPDX-License-Identifier: GPL-2.0-only
#include "tests/run/program.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <memory>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

namespace railyard::testing {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> SplitCsvLine(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[i++];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  return fields;
}

void RedirectTo(const std::string& path, int descriptor) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0 || dup2(file, descriptor) < 0) _exit(126);
}

}  // namespace

ScratchDirectory::ScratchDirectory() {
  std::string pattern = (fs::temp_directory_path() / "railyard_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "cannot create " << pattern;
  directory_ = pattern;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

std::string ScratchDirectory::Write(const std::string& name, const std::string& text) const {
  std::ofstream(directory_ / name, std::ios::binary) << text;
  return Path(name);
}

std::vector<std::string> ScratchDirectory::Entries() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string ReadText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

RunningProgram::RunningProgram(const ScratchDirectory& scratch,
                               const std::vector<std::string>& arguments) {
  static int programs = 0;
  const int number = programs++;
  output_ = scratch.Path(fmt::format("stdout.{}", number));
  errors_ = scratch.Path(fmt::format("stderr.{}", number));
  std::vector<std::string> words = {RAILYARD_BINARY_DIR "/bin/railyard"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) {
    command_ += word + ' ';
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  child_ = fork();
  if (child_ != 0) return;
  RedirectTo(output_, STDOUT_FILENO);
  RedirectTo(errors_, STDERR_FILENO);
  execv(argv[0], argv.data());
  _exit(127);
}

RunningProgram::~RunningProgram() {
  if (child_ <= 0) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

void RunningProgram::Kill() const { Send(SIGKILL); }

void RunningProgram::Send(int signal) const { kill(child_, signal); }

ProgramExit RunningProgram::Wait(int seconds_max) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds_max);
  int status = 0;
  while (waitpid(child_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "has not ended in " << seconds_max << " s: " << command_;
      kill(child_, SIGKILL);
      waitpid(child_, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  child_ = 0;
  return {.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .output = ReadText(output_),
          .errors = ReadText(errors_)};
}

const std::string& Table::Text(size_t row, const std::string& column) const {
  static const std::string kNone;
  const auto at = std::find(columns.begin(), columns.end(), column);
  if (at == columns.end() || row >= rows.size()) {
    ADD_FAILURE() << "no row " << row << " with a column " << column;
    return kNone;
  }
  return rows[row][static_cast<size_t>(at - columns.begin())];
}

int64_t Table::Integer(size_t row, const std::string& column) const {
  const std::string& text = Text(row, column);
  if (text.empty()) ADD_FAILURE() << "row " << row << " has no " << column;
  return std::strtoll(text.c_str(), nullptr, 10);
}

double Table::Real(size_t row, const std::string& column) const {
  const std::string& text = Text(row, column);
  if (text.empty()) ADD_FAILURE() << "row " << row << " has no " << column;
  return std::strtod(text.c_str(), nullptr);
}

int64_t Table::Sum(const std::string& column, const std::string& where,
                   const std::string& is) const {
  int64_t sum = 0;
  for (size_t row = 0; row < size(); ++row) {
    if (where.empty() || Text(row, where) == is) sum += Integer(row, column);
  }
  return sum;
}

Table ReadCsv(const std::string& path) {
  Table table;
  std::ifstream file(path);
  std::string line;
  if (std::getline(file, line)) table.columns = SplitCsvLine(line);
  while (std::getline(file, line)) {
    table.rows.push_back(SplitCsvLine(line));
    EXPECT_EQ(table.rows.back().size(), table.columns.size()) << path << ": " << line;
  }
  return table;
}

const rapidjson::Value& EndedRun::At(const std::string& path) const {
  static const rapidjson::Value kNull;
  const rapidjson::Value* value = &summary;
  std::istringstream keys(path);
  for (std::string key; std::getline(keys, key, '.');) {
    if (value->IsArray() && std::strtoul(key.c_str(), nullptr, 10) < value->Size()) {
      value = &(*value)[static_cast<rapidjson::SizeType>(std::strtoul(key.c_str(), nullptr, 10))];
    } else if (value->IsObject() && value->HasMember(key.c_str())) {
      value = &(*value)[key.c_str()];
    } else {
      ADD_FAILURE() << "summary.json has no " << path << "\n" << exit.errors;
      return kNull;
    }
  }
  return *value;
}

std::map<std::string, int64_t> EndedRun::Drops() const {
  std::map<std::string, int64_t> drops;
  for (const auto& drop : At("drops").GetArray()) {
    drops[drop["reason"].GetString()] = drop["count"].GetInt64();
  }
  return drops;
}

int64_t EndedRun::OfTier(const std::string& tier, const char* figure) const {
  for (const auto& entry : At("tiers").GetArray()) {
    if (entry["tier"].GetString() == tier) return entry[figure].GetInt64();
  }
  ADD_FAILURE() << "no tier " << tier;
  return -1;
}

Table EndedRun::Query(const std::string& sql) const {
  return QueryDatabase(directory + "/results.sqlite", sql);
}

Table QueryDatabase(const std::string& path, const std::string& sql) {
  Table table;
  sqlite3* database = nullptr;
  sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY, nullptr);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> closer(database, sqlite3_close);
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    ADD_FAILURE() << sql << ": " << sqlite3_errmsg(database);
    return table;
  }
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> finalizer(statement,
                                                                        sqlite3_finalize);
  const int columns = sqlite3_column_count(statement);
  for (int c = 0; c < columns; ++c) table.columns.push_back(sqlite3_column_name(statement, c));
  while (sqlite3_step(statement) == SQLITE_ROW) {
    std::vector<std::string>& row = table.rows.emplace_back();
    for (int c = 0; c < columns; ++c) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, c));
      row.push_back(text == nullptr ? "" : text);
    }
  }
  return table;
}

ProgramExit ProgramTest::Railyard(const std::vector<std::string>& arguments) const {
  return RunningProgram(scratch_, arguments).Wait();
}

EndedRun ProgramTest::RunText(const std::string& scenario,
                              const std::vector<std::string>& arguments) {
  return RunFile(scratch_.Write("scenario.textproto", scenario), arguments);
}

EndedRun ProgramTest::RunFile(const std::string& path, const std::vector<std::string>& arguments) {
  EndedRun run;
  run.directory = scratch_.Path(fmt::format("out{}", runs_++));
  std::vector<std::string> words = {"run", path, "--out", run.directory};
  words.insert(words.end(), arguments.begin(), arguments.end());
  run.exit = Railyard(words);
  if (!fs::exists(run.directory)) return run;
  run.summary.Parse<rapidjson::kParseFullPrecisionFlag>(
      ReadText(run.directory + "/summary.json").c_str());
  EXPECT_FALSE(run.summary.HasParseError()) << run.directory;
  run.collectives = ReadCsv(run.directory + "/collectives.csv");
  run.pairs = ReadCsv(run.directory + "/pairs.csv");
  run.links = ReadCsv(run.directory + "/links.csv");
  return run;
}

std::string ShippedScenario(const std::string& name) {
  return RAILYARD_SOURCE_DIR "/simulator/scenarios/" + name + ".textproto";
}

std::string RailOptimized(uint32_t servers) {
  return fmt::format("fabric {{ rail_optimized {{ servers: {} }} }}\n", servers);
}

std::string Program(const std::string& kind, const std::string& bytes, const std::string& more) {
  return fmt::format(
      "workload {{ program {{ collectives {{ kind: {} bytes: \"{}\" {} }} }} "
      "algorithm: RING protocol: SIMPLE }}\n",
      kind, bytes, more);
}

std::string LinkDown(const std::string& link, const std::string& at, const std::string& until,
                     const std::string& direction) {
  std::string text = fmt::format("faults {{ kind: LINK_DOWN link: \"{}\" at: \"{}\" ", link, at);
  if (!until.empty()) text += fmt::format("until: \"{}\" ", until);
  if (!direction.empty()) text += fmt::format("direction: {} ", direction);
  return text + "}\n";
}

}  // namespace railyard::testing
