// SPDX-License-Identifier: GPL-2.0-only
// Counts the members of a record, while it is compiled.
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>

namespace railyard {

namespace member_count_internal {

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

}  // namespace member_count_internal

// Counts the members of an aggregate. An aggregate with a C array or a base seems to have more than
// it has, so it cannot have a table.
template <class Record, size_t kCount = 1>
requires std::is_aggregate_v<Record>
constexpr size_t CountMembers() {
  if constexpr (member_count_internal::IsMadeOf<Record>(std::make_index_sequence<kCount>())) {
    return CountMembers<Record, kCount + 1>();
  } else {
    return kCount - 1;
  }
}

// Returns CountMembers<Record>() == kCount, and takes less time to compile.
template <class Record, size_t kCount>
requires std::is_aggregate_v<Record>
constexpr bool HasMembers() {
  return member_count_internal::IsMadeOf<Record>(std::make_index_sequence<kCount>()) &&
         !member_count_internal::IsMadeOf<Record>(std::make_index_sequence<kCount + 1>());
}

}  // namespace railyard
