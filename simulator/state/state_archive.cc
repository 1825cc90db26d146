// SPDX-License-Identifier: GPL-2.0-only
// How places of a walk are called.
#include "simulator/state/state_archive.h"

#include <string>
#include <string_view>
#include <utility>

namespace railyard {

void StateArchive::NameValue() {
  const auto asked = names_->values.find(place_++);
  std::string name = TakeName();
  if (asked != names_->values.end()) asked->second = std::move(name);
}

void StateArchive::NameCount(int unused_bits) {
  const auto asked = names_->counts.find(count_place_++);
  std::string name = TakeName();
  if (asked != names_->counts.end()) asked->second = {std::move(name), unused_bits};
}

std::string StateArchive::TakeName() {
  std::string name = owner_;
  const auto append = [&name](std::string_view part) {
    if (part.empty()) return;
    if (!name.empty()) name += '.';
    name += part;
  };
  append(record_);
  for (const std::string_view field : fields_) append(field);
  append(next_name_);
  next_name_ = {};
  return name;
}

}  // namespace railyard
