// SPDX-License-Identifier: GPL-2.0-only
// Defines field tables. A stateful record names its members once; this one table determines how
// they are taken into snapshots, restored and counted, and how differences of snapshots are
// printed. It also determines what is checked of the members that are in no snapshot, while the
// replay cache is verified.
//
//   struct Port {
//     LinkId wire{0};
//     int64_t free_ps = 0;
//     uint64_t sent = 0;
//     std::vector<uint32_t> turns;
//
//     static constexpr auto Fields() {
//       return FieldTable("port", field::Fixed("wire", &Port::wire),
//                         field::Instant("free_ps", &Port::free_ps),
//                         field::Count("sent", &Port::sent), field::Quiescent("turns",
//                         &Port::turns));
//     }
//   };
//
//   VisitFields(port, archive);   // one record
//   VisitFields(ports, archive);  // a list of records
//   CheckFields(ports, archive);  // a list of records of which snapshots need nothing
//
// The table has every member of the record, in the order of their declaration. If a record has more
// members than its table, its visit does not compile. Members that cannot be visited by themselves
// (because they are relative to another record, or need data that the record does not have) are
// NoState, and the reason names the owner that visits them. A member that is in no snapshot is
// Fixed or Idle if it can be, because these are checked; NoState is not. Records are aggregates:
// plain structs without private members.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <ranges>
#include <string_view>
#include <type_traits>
#include <utility>

#include "simulator/state/state_archive.h"

namespace railyard {

// --- Number of members of a record ---------------------------------------------------------------

namespace field_table_internal {

// Converts to any member of `Record`.
template <class Record>
struct AnyMember {
  template <class Member>
  requires(!std::same_as<std::remove_cvref_t<Member>, Record>) operator Member() const noexcept {
    std::terminate();  // only unevaluated expressions use it
  }
};

template <class Record, size_t... kIndex>
constexpr bool IsMadeOf(std::index_sequence<kIndex...>) {
  return requires { Record{(static_cast<void>(kIndex), AnyMember<Record>{})...}; };
}

}  // namespace field_table_internal

// Counts the members of an aggregate. An aggregate with a C array or a base seems to have more than
// it has, so it cannot have a table.
template <class Record, size_t kCount = 1>
requires std::is_aggregate_v<Record>
constexpr size_t CountMembers() {
  if constexpr (field_table_internal::IsMadeOf<Record>(std::make_index_sequence<kCount>())) {
    return CountMembers<Record, kCount + 1>();
  } else {
    return kCount - 1;
  }
}

// Returns CountMembers<Record>() == kCount, and takes less time to compile.
template <class Record, size_t kCount>
requires std::is_aggregate_v<Record>
constexpr bool HasMembers() {
  return field_table_internal::IsMadeOf<Record>(std::make_index_sequence<kCount>()) &&
         !field_table_internal::IsMadeOf<Record>(std::make_index_sequence<kCount + 1>());
}

// --- Kinds of members ----------------------------------------------------------------------------

namespace field {

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

}  // namespace field

// --- Tables --------------------------------------------------------------------------------------

namespace field_table_internal {

template <class Fields>
struct Table {
  std::string_view record_name;
  // Calls its argument with all fields. std::tuple would take several times as long to compile.
  Fields fields;
};

template <class Record, class Member>
constexpr bool IsSameMember(Member Record::*a, Member Record::*b) {
  return a == b;
}
// Members of different types are different.
template <class A, class B>
constexpr bool IsSameMember(A /*a*/, B /*b*/) {
  return false;
}

template <class... Member>
constexpr bool AreDistinct(Member... member) {
  const auto count = [&](auto one) { return (0 + ... + (IsSameMember(one, member) ? 1 : 0)); };
  return (true && ... && (count(member) <= 1));
}

// Returns the pointer to the field's member. A bit-field has none.
template <class Field>
constexpr auto MemberOf(const Field& field) {
  if constexpr (requires { field.member; }) {
    return field.member;
  } else {
    return std::false_type();
  }
}

}  // namespace field_table_internal

// Lists the fields of a record, whose name in printed differences is `record`.
template <class... Field>
constexpr auto FieldTable(std::string_view record, Field... field) {
  auto fields = [field...](const auto& take) { return take(field...); };
  return field_table_internal::Table<decltype(fields)>{record, fields};
}

template <class Record>
concept HasFieldTable = requires {
  Record::Fields();
};

// Returns true if the record's table has each of its members, and none twice.
template <HasFieldTable Record>
constexpr bool NamesEveryMember() {
  constexpr auto kTable = Record::Fields();
  return kTable.fields([](const auto&... field) {
    return HasMembers<Record, sizeof...(field)>() &&
           field_table_internal::AreDistinct(field_table_internal::MemberOf(field)...);
  });
}

template <HasFieldTable Record>
void VisitFields(Record& record, StateArchive& archive);

namespace field_table_internal {

template <class Record, class Field>
void VisitField(const Field& field, Record& record, StateArchive& archive) {
  if constexpr (requires { field.Visit(record, archive); }) {
    field.Visit(record, archive);
  } else if constexpr (!requires { field.Check(record, archive); }) {
    VisitFields(record.*field.member, archive);
  }
}

// Does the same in a visit that names places or checks fields.
template <class Record, class Field>
void VisitNamedField(const Field& field, Record& record, StateArchive& archive) {
  archive.EnterField(field.name);
  if constexpr (requires { field.Check(record, archive); }) {
    if (archive.is_checking()) field.Check(record, archive);
  } else {
    VisitField(field, record, archive);
  }
  archive.LeaveField();
}

}  // namespace field_table_internal

// Visits all fields of a record.
template <HasFieldTable Record>
void VisitFields(Record& record, StateArchive& archive) {
  static_assert(NamesEveryMember<std::remove_const_t<Record>>(),
                "the field table of this record does not name every member of it, each once");
  constexpr auto kTable = Record::Fields();
  kTable.fields([&](const auto&... field) {
    if (archive.is_naming()) [[unlikely]] {
      (field_table_internal::VisitNamedField(field, record, archive), ...);
      return;
    }
    (field_table_internal::VisitField(field, record, archive), ...);
    if (!archive.adds()) return;
    const auto follow = [&](const auto& of) {
      if constexpr (requires { of.Follow(record); }) of.Follow(record);
    };
    (follow(field), ...);
  });
}

// Does the same for the record with number `index` of its kind.
template <HasFieldTable Record>
void VisitFields(Record& record, size_t index, StateArchive& archive) {
  if (archive.is_naming()) [[unlikely]]
    archive.BeginRecord(Record::Fields().record_name, index);
  VisitFields(record, archive);
}

// Does the same for a list of records.
template <std::ranges::forward_range Records>
requires HasFieldTable<std::ranges::range_value_t<Records>>
void VisitFields(Records& records, StateArchive& archive) {
  size_t index = 0;
  for (auto& record : records) VisitFields(record, index++, archive);
}

// Checks records of which snapshots need nothing: a record with its number, or a list of records.
// It does nothing unless the replay cache is verified.
template <HasFieldTable Record>
void CheckFields(Record& record, size_t index, StateArchive& archive) {
  static_assert(NamesEveryMember<std::remove_const_t<Record>>(),
                "the field table of this record does not name every member of it, each once");
  if (archive.is_checking()) VisitFields(record, index, archive);
}
template <std::ranges::forward_range Records>
requires HasFieldTable<std::ranges::range_value_t<Records>>
void CheckFields(Records& records, StateArchive& archive) {
  static_assert(NamesEveryMember<std::ranges::range_value_t<Records>>(),
                "the field table of this record does not name every member of it, each once");
  if (archive.is_checking()) VisitFields(records, archive);
}

// Sets every member m of a record of counters to combine(m, the same member of `other`). Members
// are numbers or arrays of numbers.
template <HasFieldTable Record, class Combine>
void CombineFields(Record& record, const Record& other, Combine combine) {
  static_assert(NamesEveryMember<Record>(),
                "the field table of this record does not name every member of it, each once");
  const auto combine_member = [&](auto member) {
    auto& own = record.*member;
    const auto& others = other.*member;
    if constexpr (std::ranges::range<decltype(own)>) {
      std::ranges::transform(own, others, own.begin(), combine);
    } else {
      own = combine(own, others);
    }
  };
  constexpr auto kTable = Record::Fields();
  kTable.fields([&](const auto&... field) { (combine_member(field.member), ...); });
}

}  // namespace railyard
