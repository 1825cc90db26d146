// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/run_key.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <glob.h>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
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

// The texts in quotes of protobuf text, without their escapes, which no name of a file needs.
std::vector<std::string> QuotedTexts(const std::string& content) {
  std::vector<std::string> texts;
  for (size_t at = content.find_first_of("\"'"); at != std::string::npos;) {
    const size_t end = content.find_first_of(std::string("\n") + content[at], at + 1);
    if (end == std::string::npos) break;
    if (content[end] != '\n') texts.push_back(content.substr(at + 1, end - at - 1));
    at = content.find_first_of("\"'", end + 1);
  }
  return texts;
}

std::vector<std::string> QuotedTextsOfFile(const std::string& path) {
  std::error_code error;
  if (fs::file_size(path, error) > kTextBytesMax || error) return {};
  std::ifstream file(path, std::ios::binary);
  return QuotedTexts({std::istreambuf_iterator<char>(file), {}});
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
    AddNamedBy(QuotedTextsOfFile(file), fs::path(file).parent_path(), digests);
  }

 private:
  const std::string& DigestOf(const std::string& file) {
    const auto [entry, is_new] = known_.try_emplace(file);
    if (is_new) entry->second = DigestOfFile(file);
    return entry->second;
  }

  std::map<std::string, std::string> known_;
};

// "faults[0].until=5ms": nothing of it reaches a fault-free run.
bool IsOfFaults(std::string_view set) {
  constexpr std::string_view kFaults = "faults";
  return set.starts_with(kFaults) && set.size() > kFaults.size() &&
         std::string_view("[.=").find(set[kFaults.size()]) != std::string_view::npos;
}

// Computes digests of runs, reading each file once.
class KeyMaker {
 public:
  // The digest of what a run depends on: this program, `kind`, the settings, and the content of the
  // scenario and of all files that it or a setting names.
  std::string KeyOf(std::string_view kind, const std::string& scenario,
                    const std::vector<std::string>& sets) {
    Digest digest;
    digest.AddText(program_);
    digest.AddText(kind);
    // The files of the scenario need no copy where settings name no further ones.
    auto& common = files_of_scenario_[scenario];
    if (common.empty()) contents_.Add(scenario, common);
    std::map<std::string, std::string> files;
    for (const std::string& set : sets) {
      digest.AddText(set);
      const auto& named = FilesOfSetting(set, scenario);
      files.insert(named.begin(), named.end());
    }
    if (!files.empty()) files.insert(common.begin(), common.end());
    // Paths do not decide: a study and its files may be moved as a whole.
    for (const auto& [path, content] : files.empty() ? common : files) digest.AddText(content);
    return digest.Hex();
  }

  std::string FaultFreeKeyOf(const std::string& scenario, const std::vector<std::string>& sets) {
    std::vector<std::string> others;
    std::ranges::remove_copy_if(sets, std::back_inserter(others), IsOfFaults);
    return KeyOf("fault-free", scenario, others);
  }

 private:
  // The value is a name, or a message or list with names in quotes. A name is relative to the
  // current directory; in a message it may be relative to the scenario.
  const std::map<std::string, std::string>& FilesOfSetting(const std::string& set,
                                                           const std::string& scenario) {
    const fs::path directory = fs::path(scenario).parent_path();
    const std::string value = set.substr(set.find('=') + 1);
    const auto [entry, is_new] = files_of_value_.try_emplace({directory.string(), value});
    if (is_new) {
      std::vector<std::string> names = QuotedTexts(value);
      names.push_back(value);
      contents_.AddNamedBy(names, fs::path(), entry->second);
      contents_.AddNamedBy(names, directory, entry->second);
    }
    return entry->second;
  }

  const std::string program_ = DigestOfFile("/proc/self/exe");
  Contents contents_;
  // By scenario: digests by path.
  std::map<std::string, std::map<std::string, std::string>> files_of_scenario_;
  // By directory and value.
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::string>> files_of_value_;
};

}  // namespace

std::vector<std::string> RunKeys(const Study& study, const std::vector<StudyRun>& runs) {
  KeyMaker maker;
  std::vector<std::string> keys;
  keys.reserve(runs.size());
  for (const StudyRun& run : runs) {
    keys.push_back(maker.KeyOf(study.no_baseline ? "no baseline" : "baseline",
                               ScenarioOf(study, run).path, SetsOf(study, run)));
  }
  return keys;
}

std::string FaultFreeKey(const std::string& scenario, const std::vector<std::string>& sets) {
  return KeyMaker().FaultFreeKeyOf(scenario, sets);
}

std::vector<std::string> SharedFaultFreeKeys(const Study& study,
                                             const std::vector<StudyRun>& runs) {
  std::vector<std::string> keys(runs.size());
  // Only settings of faults make runs with the same seed share theirs.
  const bool may_share = std::ranges::any_of(study.axes, [](const StudyAxis& axis) {
    return std::ranges::any_of(axis.fields, IsOfFaults);
  });
  if (study.no_baseline || !may_share) return keys;
  KeyMaker maker;
  std::unordered_map<std::string, size_t> uses;
  for (size_t i = 0; i < runs.size(); ++i) {
    keys[i] = maker.FaultFreeKeyOf(ScenarioOf(study, runs[i]).path, SetsOf(study, runs[i]));
    ++uses[keys[i]];
  }
  for (std::string& key : keys) {
    if (uses.at(key) == 1) key.clear();
  }
  return keys;
}

}  // namespace railyard
