// SPDX-License-Identifier: GPL-2.0-only
// Visits the state of a quiescent simulation. One function per stateful part names, in a fixed
// order, every value that affects the future, every instant that still lies ahead and every
// counter. The same function takes the state, restores it and adds to the counters. An archive has
// sections, within which places are numbered from 0, so that a new place at the end of one section
// does not move those of the next.
//
// Members that are in no snapshot are visited only while the replay cache is verified, by an
// archive with a FieldCheck.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/state/field_check.h"

namespace railyard {

// Holds the values of a quiescent simulation, relative to the instant at which they were taken.
// Only values other than 0 are kept, with their places.
struct StateSnapshot {
  std::vector<std::pair<uint32_t, uint64_t>> values;
  int64_t instants_ahead_ps =
      0;  // time until the last instant, during which the state changes with time
  uint64_t hash = 0;
  bool operator==(const StateSnapshot& other) const {
    return hash == other.hash && values == other.values;
  }
};

// Holds counters by section and place.
using CountSnapshot = std::vector<std::vector<uint64_t>>;
// Holds the differences of two CountSnapshot, by place, without zeros.
using CountChanges = std::vector<std::pair<uint32_t, uint64_t>>;

// A place has the number of its section from this bit on, and its number within the section in the
// bits below.
constexpr uint32_t kSectionShift = 28;

// Returns true if `after` has every counter of `before`, and possibly more.
inline bool HasPlacesOf(const CountSnapshot& before, const CountSnapshot& after) {
  return std::ranges::equal(before, after, [](const auto& section, const auto& later) {
    return section.size() <= later.size();
  });
}
// Returns the changes; new counters began at 0. Precondition: HasPlacesOf(before, after).
inline CountChanges ChangesBetween(const CountSnapshot& before, const CountSnapshot& after) {
  CountChanges changes;
  for (uint32_t section = 0; section < after.size(); ++section) {
    for (uint32_t number = 0; number < after[section].size(); ++number) {
      const bool is_new = number >= before[section].size();
      const uint64_t change = after[section][number] - (is_new ? 0 : before[section][number]);
      if (change != 0) changes.emplace_back(section << kSectionShift | number, change);
    }
  }
  return changes;
}

// Holds names of places: "queue pairs.sending end[3].retries". A visit fills in the names of the
// requested places.
struct PlaceNames {
  struct Counted {
    std::string name;
    int unused_bits = 0;  // below the bits in which changes of the count are kept
  };
  std::map<uint32_t, std::string> values;  // by place among the values that states have
  std::map<uint32_t, Counted> counts;      // by place among the counts
};

class StateArchive {
 public:
  // Takes state and counts.
  explicit StateArchive(int64_t now_ps) : mode_(Mode::kTake), now_ps_(now_ps) {}
  // Restores `state` at `now_ps`. It must outlive this.
  StateArchive(const StateSnapshot& state, int64_t now_ps)
      : mode_(Mode::kPut), now_ps_(now_ps), put_(&state) {}
  // Adds to the counters. `changes` must outlive this.
  explicit StateArchive(const CountChanges& changes) : mode_(Mode::kAdd), changes_(&changes) {}
  // Does both in one visit.
  StateArchive(const StateSnapshot& state, const CountChanges& changes, int64_t now_ps)
      : mode_(Mode::kPut), now_ps_(now_ps), put_(&state), changes_(&changes) {}
  // Takes state alone.
  static StateArchive OfState(int64_t now_ps) {
    StateArchive archive(now_ps);
    archive.takes_counts_ = false;
    return archive;
  }
  // Names the places that are keys of `names`, which must outlive this, and changes nothing.
  explicit StateArchive(PlaceNames& names) : mode_(Mode::kName), names_(&names) {}
  // Checks the fields that have a value to be checked, and changes nothing. `check` must outlive
  // this.
  explicit StateArchive(FieldCheck& check) : mode_(Mode::kCheck), check_(&check) {}

  // Begins a new section.
  void Section() {
    Require(HasRoom());
    ++section_;
    place_ = count_place_ = section_ << kSectionShift;
    if (mode_ == Mode::kTake) counts_.emplace_back();
  }

  // --- Names, which have an effect only in a visit that names places or checks fields ------------
  bool is_naming() const { return mode_ >= Mode::kName; }
  // Assigns the following places to this owner directly, not to one of its records.
  void BeginOwner(std::string_view owner);
  // Assigns the following places to the record of that kind and number. `kind` must outlive this.
  void BeginRecord(std::string_view kind, size_t index) {
    record_ = kind;
    record_index_ = index;
  }
  // Assigns the following places, until LeaveField(), to a field of the record, or of the entered
  // field. Precondition: is_naming().
  void EnterField(std::string_view name);
  void LeaveField();
  // Names the next place: `archive.Named("path").Constant(hash)`.
  StateArchive& Named(std::string_view name) {
    if (mode_ == Mode::kName) [[unlikely]]
      next_name_ = name;
    return *this;
  }

  // --- Members that are in no snapshot -----------------------------------------------------------
  // Returns true if fields are checked.
  bool is_checking() const { return mode_ == Mode::kCheck; }
  // Visits the hash of a member that no episode changes. Precondition: is_checking().
  void Fixed(uint64_t hash);

  // --- Members of snapshots ----------------------------------------------------------------------
  // States a condition that holds if the simulation is quiescent; if it does not hold, the state
  // cannot be used for a replay.
  void Require(bool holds) { is_quiescent_ = is_quiescent_ && holds; }

  // Visits a value that affects the future.
  template <std::unsigned_integral T>
  void Value(T& value) {
    if (mode_ == Mode::kTake) {
      Keep(value);
    } else if (mode_ == Mode::kPut) {
      value = static_cast<T>(TakeKept());
    } else if (mode_ == Mode::kName) {
      NameValue();
    }
  }
  // Visits a value that does not change while the simulation is quiescent; it is compared, but not
  // restored.
  void Constant(uint64_t value) {
    if (mode_ == Mode::kTake) {
      Keep(value);
    } else if (mode_ == Mode::kPut) {
      TakeKept();
    } else if (mode_ == Mode::kName) {
      NameValue();
    }
  }
  // Visits an instant from which something is possible; all instants in the past are equivalent.
  void Instant(int64_t& time_ps) {
    if (mode_ == Mode::kTake) {
      const int64_t ahead_ps = std::max<int64_t>(0, time_ps - now_ps_);
      taken_.instants_ahead_ps = std::max(taken_.instants_ahead_ps, ahead_ps);
      Keep(static_cast<uint64_t>(ahead_ps));
    } else if (mode_ == Mode::kPut) {
      const auto ahead_ps = static_cast<int64_t>(TakeKept());
      time_ps = ahead_ps > 0 ? now_ps_ + ahead_ps : (time_ps < now_ps_ ? time_ps : now_ps_);
    } else if (mode_ == Mode::kName) {
      NameValue();
    }
  }
  // Visits a counter that only results read. A counter narrower than a place takes its upper bits,
  // so that differences are modulo its own width.
  template <std::integral T>
  void Count(T& count) {
    constexpr int kUnused = 64 - 8 * static_cast<int>(sizeof(T));
    if (mode_ == Mode::kTake) {
      if (takes_counts_) counts_.back().push_back(static_cast<uint64_t>(count) << kUnused);
    } else if (adds()) {
      const uint32_t place = count_place_++;
      while (next_change_ < changes_->size() && (*changes_)[next_change_].first < place) {
        ++next_change_;
      }
      if (next_change_ < changes_->size() && (*changes_)[next_change_].first == place) {
        const uint64_t change = (*changes_)[next_change_++].second >> kUnused;
        count = static_cast<T>(static_cast<uint64_t>(count) + change);
      }
    } else if (mode_ == Mode::kName) {
      NameCount(kUnused);
    }
  }
  // Visits a counter of events that make the future differ from a repetition: draws, losses.
  void Unrepeatable(uint64_t count) {
    if (mode_ == Mode::kTake) unrepeatable_ += count;
  }

  // Returns true if all required conditions held.
  bool is_quiescent() const { return is_quiescent_ && HasRoom(); }
  // Returns true if the archive takes state, so that what it requires matters.
  bool takes() const { return mode_ == Mode::kTake; }
  // Returns true if the archive adds to the counters.
  bool adds() const { return changes_ != nullptr; }
  // Returns the sum of all Unrepeatable() counters.
  uint64_t unrepeatable() const { return unrepeatable_; }
  StateSnapshot TakeState() {
    taken_.hash = hash_;
    return std::move(taken_);
  }
  CountSnapshot TakeCounts() { return std::move(counts_); }

 private:
  enum class Mode : uint8_t { kTake, kPut, kAdd, kName, kCheck };

  // Returns true if the section's places do not run into those of the next one.
  bool HasRoom() const { return place_ >> kSectionShift == section_; }

  void Keep(uint64_t value) {
    const uint32_t place = place_++;
    if (value == 0) return;
    taken_.values.emplace_back(place, value);
    // The hash only finds candidates: states are compared as a whole.
    constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
    hash_ = (hash_ ^ (value + place * kOdd)) * kOdd;
    hash_ ^= hash_ >> 32;
  }
  // Values of places that no longer exist are skipped.
  uint64_t TakeKept() {
    const uint32_t place = place_++;
    while (next_ < put_->values.size() && put_->values[next_].first < place) ++next_;
    if (next_ == put_->values.size() || put_->values[next_].first != place) return 0;
    return put_->values[next_++].second;
  }

  void NameValue();
  void NameCount(int unused_bits);
  std::string NameNow() const;
  std::string TakeName();

  Mode mode_;
  int64_t now_ps_ = 0;
  const StateSnapshot* put_ = nullptr;
  const CountChanges* changes_ = nullptr;
  PlaceNames* names_ = nullptr;
  FieldCheck* check_ = nullptr;
  uint32_t section_ = 0;
  uint32_t place_ = 0;
  uint32_t count_place_ = 0;  // counts have separate places
  size_t next_ = 0;           // of the values that are put
  size_t next_change_ = 0;    // of the changes of counts
  bool takes_counts_ = true;
  bool is_quiescent_ = true;
  uint64_t unrepeatable_ = 0;
  uint64_t hash_ = 0;
  StateSnapshot taken_;
  CountSnapshot counts_{1};
  // Set in a visit that names places or checks fields.
  std::string owner_;
  std::string_view record_;
  size_t record_index_ = 0;
  std::vector<std::string_view> fields_;
  std::string_view next_name_;
};

}  // namespace railyard
