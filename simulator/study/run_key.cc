// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/run_key.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <glob.h>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <xxhash.h>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {
namespace {

namespace fs = std::filesystem;

class Digest {
 public:
  Digest() : state_(XXH3_createState()) { XXH3_128bits_reset(state_.get()); }

  void Add(std::string_view bytes) {
    XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  }
  // With its length, so that neighbours cannot run into each other.
  void AddText(std::string_view text) {
    Add(fmt::format("{}:", text.size()));
    Add(text);
  }
  std::string Hex() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

std::string DigestOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Digest digest;
  std::array<char, 1 << 16> buffer;
  while (file) {
    file.read(buffer.data(), buffer.size());
    digest.Add({buffer.data(), static_cast<size_t>(file.gcount())});
  }
  if (!file.eof()) {
    throw EnvironmentError(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
  return digest.Hex();
}

// Larger files are data: what they quote are no names of files.
constexpr uint64_t kTextBytesMax = 4 << 20;

// The texts in quotes of a file of protobuf text, without their escapes, which no name of a file
// needs.
std::vector<std::string> QuotedTexts(const std::string& path) {
  std::vector<std::string> texts;
  std::error_code error;
  if (fs::file_size(path, error) > kTextBytesMax || error) return texts;
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  for (size_t at = content.find_first_of("\"'"); at != std::string::npos;) {
    const size_t end = content.find_first_of(std::string("\n") + content[at], at + 1);
    if (end == std::string::npos) break;
    if (content[end] != '\n') texts.push_back(content.substr(at + 1, end - at - 1));
    at = content.find_first_of("\"'", end + 1);
  }
  return texts;
}

// Regular files that `text`, relative to `directory`, names: a path or a pattern.
std::vector<std::string> FilesNamed(const std::string& text, const fs::path& directory) {
  std::vector<std::string> files;
  if (text.empty() || text.size() >= 4096 || text.find('\0') != std::string::npos) return files;
  glob_t found;
  if (glob((directory / text).c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      std::error_code error;
      if (fs::is_regular_file(found.gl_pathv[i], error)) files.emplace_back(found.gl_pathv[i]);
    }
  }
  globfree(&found);
  return files;
}

// The contents of files, each read once.
class Contents {
 public:
  // The digests of all files that these texts name, and of all that those files name.
  void AddNamedBy(const std::vector<std::string>& texts, const fs::path& directory,
                  std::map<std::string, std::string>& digests) {
    for (const std::string& text : texts) {
      for (const std::string& file : FilesNamed(text, directory)) Add(file, digests);
    }
  }
  void Add(const std::string& file, std::map<std::string, std::string>& digests) {
    if (digests.contains(file)) return;
    digests[file] = DigestOf(file);
    AddNamedBy(QuotedTexts(file), fs::path(file).parent_path(), digests);
  }

 private:
  const std::string& DigestOf(const std::string& file) {
    const auto [entry, is_new] = known_.try_emplace(file);
    if (is_new) entry->second = DigestOfFile(file);
    return entry->second;
  }

  std::map<std::string, std::string> known_;
};

}  // namespace

std::vector<std::string> RunKeys(const Study& study, const std::vector<StudyRun>& runs) {
  const std::string program = DigestOfFile("/proc/self/exe");
  Contents contents;
  // By scenario: the files of all its runs.
  std::map<std::string, std::map<std::string, std::string>> files_of_scenario;
  for (const StudyScenario& scenario : study.scenarios) {
    auto& files = files_of_scenario[scenario.path];
    contents.Add(scenario.path, files);
    for (const std::string& set : study.sets) {
      contents.AddNamedBy({set.substr(set.find('=') + 1)}, fs::path(scenario.path).parent_path(),
                          files);
    }
  }
  std::vector<std::string> keys;
  keys.reserve(runs.size());
  for (const StudyRun& run : runs) {
    const std::string& scenario = ScenarioOf(study, run).path;
    Digest digest;
    digest.AddText(program);
    digest.AddText(study.no_baseline ? "no baseline" : "baseline");
    for (const std::string& set : SetsOf(study, run)) digest.AddText(set);
    // Files of the scenario whose values name no further ones need no copy.
    const auto& common = files_of_scenario.at(scenario);
    std::map<std::string, std::string> files;
    contents.AddNamedBy({run.values.begin(), run.values.end()}, fs::path(scenario).parent_path(),
                        files);
    if (!files.empty()) files.insert(common.begin(), common.end());
    // Paths do not decide: a study and its files may be moved as a whole.
    for (const auto& [path, content] : files.empty() ? common : files) digest.AddText(content);
    keys.push_back(digest.Hex());
  }
  return keys;
}

}  // namespace railyard
