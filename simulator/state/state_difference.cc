// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/state/state_difference.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace railyard {
namespace {

using Places = std::vector<std::pair<uint32_t, uint64_t>>;

constexpr size_t kPrintedMax = 4;

struct Difference {
  uint32_t place = 0;
  uint64_t found = 0;
  uint64_t expected = 0;
};

// Both are in the order of their places; what is not there is 0.
std::vector<Difference> DifferencesOf(const Places& found, const Places& expected) {
  std::map<uint32_t, Difference> differences;
  for (const auto& [place, value] : found) differences[place] = {place, value, 0};
  for (const auto& [place, value] : expected) {
    Difference& difference = differences[place];
    difference.place = place;
    difference.expected = value;
  }
  std::vector<Difference> list;
  for (const auto& [place, difference] : differences) {
    if (difference.found != difference.expected) list.push_back(difference);
  }
  return list;
}

// `verb` stands before what was found, `preposition` before what was expected.
std::string Print(const std::vector<Difference>& differences,
                  const std::map<uint32_t, std::string>& names, std::string_view verb,
                  std::string_view preposition) {
  std::string text;
  for (size_t i = 0; i < differences.size() && i < kPrintedMax; ++i) {
    const auto& [place, found, expected] = differences[i];
    if (i > 0) text += "; ";
    const std::string& name = names.at(place);
    text += name.empty() ? "number " + std::to_string(place & ((1u << kSectionShift) - 1)) +
                               " of section " + std::to_string(place >> kSectionShift)
                         : name;
    text += ' ';
    text += verb;
    text += std::to_string(found);
    text += ", not ";
    text += preposition;
    text += std::to_string(expected);
  }
  if (differences.size() > kPrintedMax) {
    text += "; and " + std::to_string(differences.size() - kPrintedMax) + " more";
  }
  return text;
}

// Asks for the names of those that are printed.
template <class Name>
void Ask(const std::vector<Difference>& differences, std::map<uint32_t, Name>& names) {
  for (size_t i = 0; i < differences.size() && i < kPrintedMax; ++i) {
    names[differences[i].place];
  }
}

}  // namespace

std::string DescribeDifference(const StateWalk& walk, const StateSnapshot& found,
                               const StateSnapshot& expected) {
  const std::vector<Difference> differences = DifferencesOf(found.values, expected.values);
  if (differences.empty()) return {};
  PlaceNames names;
  Ask(differences, names.values);
  StateArchive archive(names);
  walk(archive);
  return Print(differences, names.values, "is ", "");
}

std::string DescribeDifference(const StateWalk& walk, const CountChanges& found,
                               const CountChanges& expected) {
  std::vector<Difference> differences = DifferencesOf(found, expected);
  if (differences.empty()) return {};
  PlaceNames counts;
  Ask(differences, counts.counts);
  StateArchive archive(counts);
  walk(archive);
  std::map<uint32_t, std::string> names;
  for (Difference& difference : differences) {
    const auto asked = counts.counts.find(difference.place);
    if (asked == counts.counts.end()) break;
    names[difference.place] = asked->second.name;
    difference.found >>= asked->second.unused_bits;
    difference.expected >>= asked->second.unused_bits;
  }
  return Print(differences, names, "grew by ", "by ");
}

}  // namespace railyard
