// SPDX-License-Identifier: GPL-2.0-only
// Defines accessors of ns-3's enumeration attributes that are stored as `int`. They work with
// ns-3.37 and with newer versions, whose MakeEnumAccessor takes that type as a template argument.
#pragma once

#include <ns3/enum.h>

namespace railyard {

template <typename Setter, typename Getter>
auto MakeIntEnumAccessor(Setter set, Getter get) {
  if constexpr (requires { ns3::MakeEnumAccessor<int>(set, get); }) {
    return ns3::MakeEnumAccessor<int>(set, get);
  } else {
    return ns3::MakeEnumAccessor(set, get);
  }
}

}  // namespace railyard
