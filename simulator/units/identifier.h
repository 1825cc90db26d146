// SPDX-License-Identifier: GPL-2.0-only
// Defines typed identifiers, so that a link cannot be passed as a device. An identifier is an index
// at run time and converts to one; the conversion from an index is explicit.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

namespace railyard {

template <typename Tag>
class Identifier {
 public:
  // Identifies no object.
  static const Identifier kNone;

  constexpr Identifier() = default;
  // Converts a number. Precondition: it fits 32 bits. Identifiers of other kinds are not integers.
  template <std::integral Integer>
  explicit constexpr Identifier(Integer number) : number_(static_cast<uint32_t>(number)) {}

  // Implicit, so that indexing needs no cast.
  constexpr operator uint32_t() const { return number_; }

  // Lets fmt print it as its number; versions before 10 use the conversion.
  friend constexpr uint32_t format_as(Identifier identifier) { return identifier.number_; }

  constexpr Identifier& operator++() {
    ++number_;
    return *this;
  }
  constexpr Identifier operator++(int) {
    const Identifier before = *this;
    ++number_;
    return before;
  }

  constexpr bool operator==(const Identifier&) const = default;
  constexpr std::strong_ordering operator<=>(const Identifier&) const = default;
  template <typename Other>
  requires(!std::same_as<Other, Tag>) bool operator==(const Identifier<Other>&) const = delete;
  template <typename Other>
  requires(!std::same_as<Other, Tag>) std::strong_ordering operator<=>(
      const Identifier<Other>&) const = delete;

 private:
  uint32_t number_ = 0;
};

template <typename Tag>
inline constexpr Identifier<Tag> Identifier<Tag>::kNone{std::numeric_limits<uint32_t>::max()};

}  // namespace railyard

template <typename Tag>
struct std::hash<railyard::Identifier<Tag>> {
  size_t operator()(railyard::Identifier<Tag> identifier) const noexcept {
    return std::hash<uint32_t>()(identifier);
  }
};
