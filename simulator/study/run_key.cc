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
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <xxhash.h>

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/files/input_file.h"

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
  std::ifstream file = OpenInputFile(path);
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

// Larger files that a scenario names are data: their strings are no names of files.
constexpr uint64_t kTextBytesMax = 4 << 20;

// Ignores errors: a file may be no protobuf text.
class NoErrors final : public google::protobuf::io::ErrorCollector {
  void AddError(int /*line*/, int /*column*/, const std::string& /*message*/) override {}
};

// Returns the strings in protobuf text. Neighbours are one string, as for protobuf.
std::vector<std::string> StringsIn(google::protobuf::io::ZeroCopyInputStream& text) {
  using google::protobuf::io::Tokenizer;
  NoErrors errors;
  Tokenizer tokens(&text, &errors);
  tokens.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
  tokens.set_allow_multiline_strings(false);
  std::vector<std::string> strings;
  bool follows_string = false;
  while (tokens.Next()) {
    const Tokenizer::Token& token = tokens.current();
    const bool is_string = token.type == Tokenizer::TYPE_STRING;
    if (is_string && !follows_string) strings.emplace_back();
    if (is_string) Tokenizer::ParseStringAppend(token.text, &strings.back());
    follows_string = is_string;
  }
  return strings;
}

std::vector<std::string> StringsIn(const std::string& text) {
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  return StringsIn(stream);
}

std::vector<std::string> StringsOfFile(const std::string& path) {
  std::ifstream file = OpenInputFile(path);
  google::protobuf::io::IstreamInputStream stream(&file);
  return StringsIn(stream);
}

// Returns the regular file that `text`, relative to `directory`, names.
std::optional<std::string> FileNamed(const std::string& text, const fs::path& directory) {
  if (text.empty() || text.size() >= 4096 || text.find('\0') != std::string::npos) return {};
  const fs::path file = directory / text;
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return {};
  return file.string();
}

// The contents of files, each read once.
class Contents {
 public:
  // The digests of all files that these texts name, and of all that those files name.
  void AddNamedBy(const std::vector<std::string>& texts, const fs::path& directory,
                  std::map<std::string, std::string>& digests) {
    for (const std::string& text : texts) {
      const auto file = FileNamed(text, directory);
      if (!file || digests.contains(*file)) continue;
      std::error_code error;
      if (fs::file_size(*file, error) <= kTextBytesMax) {
        AddText(*file, digests);
      } else {
        digests[*file] = DigestOf(*file);
      }
    }
  }
  // Adds the file, which is protobuf text of any size, and all that it names.
  void AddText(const std::string& file, std::map<std::string, std::string>& digests) {
    digests[file] = DigestOf(file);
    AddNamedBy(StringsOfFile(file), fs::path(file).parent_path(), digests);
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
    if (common.empty()) contents_.AddText(scenario, common);
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
      std::vector<std::string> names = StringsIn(value);
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
