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
#include <concepts>
#include <cstddef>
#include <ranges>
#include <string_view>
#include <type_traits>

#include "simulator/state/field_kinds.h"
#include "simulator/state/member_count.h"
#include "simulator/state/state_archive.h"

namespace railyard {

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
