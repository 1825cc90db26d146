// SPDX-License-Identifier: GPL-2.0-only
// Defines the kinds of members that a field table (field_table.h) has: what snapshots and checks do
// with a member of each kind.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string_view>
#include <type_traits>

#include "simulator/state/member_count.h"
#include "simulator/state/state_archive.h"

namespace railyard::field {

// Converts numbers, enumerations and flags to the words that snapshots keep.
template <class Member>
constexpr uint64_t AsWord(const Member& member) {
  if constexpr (std::same_as<Member, double>) {
    return std::bit_cast<uint64_t>(member);
  } else {
    return static_cast<uint64_t>(member);
  }
}

// Hashes a member that has such a word, or consists of parts that do.
template <class Member>
uint64_t HashOf(const Member& member);

// Returns true for an empty container, and for the default of anything else.
template <class Member>
constexpr bool IsDefault(const Member& value) {
  if constexpr (requires { value.empty(); }) {
    return value.empty();
  } else {
    return value == Member{};
  }
}

template <class Record, class Member>
struct NamedField {
  std::string_view name;
  Member Record::*member;
};

template <class Record, class Member>
struct ValueField : NamedField<Record, Member> {
  void Visit(Record& record, StateArchive& archive) const { archive.Value(record.*this->member); }
};
// Declares a member that affects the future; a snapshot restores it.
template <class Record, class Member>
constexpr ValueField<Record, Member> Value(std::string_view name, Member Record::*member) {
  return {{name, member}};
}

template <class Record, class Member>
struct ConstantField : NamedField<Record, Member> {
  void Visit(Record& record, StateArchive& archive) const {
    if constexpr (std::ranges::range<Member>) {
      for (const auto& element : record.*this->member) archive.Constant(AsWord(element));
    } else {
      archive.Constant(AsWord(record.*this->member));
    }
  }
};
// Declares a member that affects the future but does not change while the simulation is quiescent:
// snapshots only compare it. It may be a container of such values.
template <class Record, class Member>
constexpr ConstantField<Record, Member> Constant(std::string_view name, Member Record::*member) {
  return {{name, member}};
}

template <class Record>
struct InstantField : NamedField<Record, int64_t> {
  void Visit(Record& record, StateArchive& archive) const { archive.Instant(record.*this->member); }
};
// Declares an instant from which something is possible; all instants in the past are equivalent.
template <class Record>
constexpr InstantField<Record> Instant(std::string_view name, int64_t Record::*member) {
  return {{name, member}};
}

template <class Record, class Member>
struct CountField : NamedField<Record, Member> {
  void Visit(Record& record, StateArchive& archive) const { archive.Count(record.*this->member); }
};
// Declares a counter that only results read; replaying adds to it.
template <class Record, class Member>
constexpr CountField<Record, Member> Count(std::string_view name, Member Record::*member) {
  return {{name, member}};
}

template <class Record, class Member>
struct UnrepeatableField : NamedField<Record, Member> {
  void Visit(Record& record, StateArchive& archive) const {
    if constexpr (std::ranges::range<Member>) {
      for (const uint64_t element : record.*this->member) archive.Unrepeatable(element);
    } else {
      archive.Unrepeatable(record.*this->member);
    }
  }
};
// Declares a counter of events that make the future differ from a repetition (losses, draws), or a
// container of such counters.
template <class Record, class Member>
constexpr UnrepeatableField<Record, Member> Unrepeatable(std::string_view name,
                                                         Member Record::*member) {
  return {{name, member}};
}

template <class Record, class Member, class Holds>
struct QuiescentField : NamedField<Record, Member> {
  Holds holds;
  void Visit(const Record& record, StateArchive& archive) const {
    archive.Require(holds(record.*this->member));
  }
};
// Declares a member that has its default value, or the expected one, when the simulation is
// quiescent; a container is empty then.
template <class Record, class Member>
constexpr auto Quiescent(std::string_view name, Member Record::*member) {
  const auto holds = [](const Member& value) { return IsDefault(value); };
  return QuiescentField<Record, Member, decltype(holds)>{{name, member}, holds};
}
template <class Record, class Member>
constexpr auto Quiescent(std::string_view name, Member Record::*member,
                         std::type_identity_t<Member> expected) {
  const auto holds = [expected](const Member& value) { return value == expected; };
  return QuiescentField<Record, Member, decltype(holds)>{{name, member}, holds};
}
// Does the same with a condition on the member's value.
template <class Record, class Member, std::predicate<const Member&> Holds>
constexpr auto QuiescentIf(std::string_view name, Member Record::*member, Holds holds) {
  return QuiescentField<Record, Member, Holds>{{name, member}, holds};
}

template <class Record, class Member>
struct FollowingField : NamedField<Record, Member> {
  Member Record::*leader;
  void Visit(Record& record, StateArchive& archive) const {
    archive.Require(record.*this->member == record.*leader);
  }
  void Follow(Record& record) const { record.*this->member = record.*leader; }
};
// Declares a member that equals `leader` when the simulation is quiescent and, if that is a
// Count(), advances with it.
template <class Record, class Member>
constexpr FollowingField<Record, Member> Follows(std::string_view name, Member Record::*member,
                                                 Member Record::*leader) {
  return {{name, member}, leader};
}

template <class Record, class Member>
struct NestedField : NamedField<Record, Member> {};
// Declares a member that is a record with a table.
template <class Record, class Member>
constexpr NestedField<Record, Member> Nested(std::string_view name, Member Record::*member) {
  return {{name, member}};
}

template <class Record, class Member>
struct StatelessField : NamedField<Record, Member> {
  std::string_view because;
  void Visit(const Record& /*record*/, StateArchive& /*archive*/) const {}
};
// Declares a member that does not affect the future, or that another owner visits; `because` gives
// the reason, which nothing checks.
template <class Record, class Member>
constexpr StatelessField<Record, Member> NoState(std::string_view name, Member Record::*member,
                                                 std::string_view because) {
  return {{name, member}, because};
}

template <class Record, class Member>
struct FixedField : NamedField<Record, Member> {
  void Check(const Record& record, StateArchive& archive) const {
    archive.Fixed(HashOf(record.*this->member));
  }
};
// Declares a member that no undisturbed episode changes: it is set when the record is opened, or it
// changes with faults and losses alone. It is in no snapshot; it is compared when the replay cache
// is verified.
template <class Record, class Member>
constexpr FixedField<Record, Member> Fixed(std::string_view name, Member Record::*member) {
  return {{name, member}};
}

template <class Record, class Member, class Holds>
struct IdleField : NamedField<Record, Member> {
  Holds holds;
  void Check(const Record& record, StateArchive& archive) const { archive.Require(holds(record)); }
};
// Declares a member that has its default value, or the expected one, when nothing is under way; a
// container is empty then. It is in no snapshot; it is checked when the replay cache is verified.
template <class Record, class Member>
constexpr auto Idle(std::string_view name, Member Record::*member) {
  const auto holds = [member](const Record& record) { return IsDefault(record.*member); };
  return IdleField<Record, Member, decltype(holds)>{{name, member}, holds};
}
template <class Record, class Member>
constexpr auto Idle(std::string_view name, Member Record::*member,
                    std::type_identity_t<Member> expected) {
  const auto holds = [member, expected](const Record& record) {
    return record.*member == expected;
  };
  return IdleField<Record, Member, decltype(holds)>{{name, member}, holds};
}
// Does the same with a condition, which takes the record.
template <class Record, class Member, std::predicate<const Record&> Holds>
constexpr auto IdleIf(std::string_view name, Member Record::*member, Holds holds) {
  return IdleField<Record, Member, Holds>{{name, member}, holds};
}

template <class Record, class Holds>
struct BitField {
  std::string_view name;
  Holds holds;
  void Visit(const Record& record, StateArchive& archive) const { archive.Require(holds(record)); }
};
// Declares a bit-field, to which no member pointer exists (Bits<Record>("name", ...)). `holds`
// takes the record and returns true if the bit-field has its quiescent value.
template <class Record, std::predicate<const Record&> Holds>
constexpr BitField<Record, Holds> Bits(std::string_view name, Holds holds) {
  return {name, holds};
}

template <class Record, class Value>
struct FixedBitField {
  std::string_view name;
  Value value;
  void Check(const Record& record, StateArchive& archive) const {
    archive.Fixed(HashOf(value(record)));
  }
};
// Declares a bit-field that is Fixed() (FixedBits<Record>("name", ...)). `value` takes the record
// and returns the bit-field's value.
template <class Record, std::invocable<const Record&> Value>
constexpr FixedBitField<Record, Value> FixedBits(std::string_view name, Value value) {
  return {name, value};
}

// Calls visit(member) for each member of an aggregate.
template <class Aggregate, class Visit>
void ForEachMember(const Aggregate& aggregate, const Visit& visit) {
  constexpr size_t kCount = CountMembers<Aggregate>();
  static_assert(0 < kCount && kCount <= 6, "a member that has no hash: declare it NoState");
  const auto visit_all = [&visit](const auto&... member) { (visit(member), ...); };
  if constexpr (kCount == 1) {
    const auto& [a] = aggregate;
    visit_all(a);
  } else if constexpr (kCount == 2) {
    const auto& [a, b] = aggregate;
    visit_all(a, b);
  } else if constexpr (kCount == 3) {
    const auto& [a, b, c] = aggregate;
    visit_all(a, b, c);
  } else if constexpr (kCount == 4) {
    const auto& [a, b, c, d] = aggregate;
    visit_all(a, b, c, d);
  } else if constexpr (kCount == 5) {
    const auto& [a, b, c, d, e] = aggregate;
    visit_all(a, b, c, d, e);
  } else {
    const auto& [a, b, c, d, e, f] = aggregate;
    visit_all(a, b, c, d, e, f);
  }
}

template <class Member>
uint64_t HashOf(const Member& member) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  uint64_t hash = 0;
  const auto add = [&hash](uint64_t word) {
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 32;
  };
  if constexpr (std::is_pointer_v<Member>) {
    add(reinterpret_cast<uintptr_t>(member));
  } else if constexpr (std::same_as<Member, double> ||
                       requires { static_cast<uint64_t>(member); }) {
    add(AsWord(member));
  } else if constexpr (std::ranges::range<const Member>) {
    for (const auto& element : member) add(HashOf(element));
    add(static_cast<uint64_t>(std::ranges::distance(member)));
  } else if constexpr (requires { member.has_value(); }) {
    add(member.has_value() ? 1 : 0);
    if (member.has_value()) add(HashOf(*member));
  } else {
    ForEachMember(member, [&add](const auto& part) { add(HashOf(part)); });
  }
  return hash;
}

}  // namespace railyard::field
