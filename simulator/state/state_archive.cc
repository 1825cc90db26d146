// SPDX-License-Identifier: GPL-2.0-only
// Names the places of a walk.
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

// --- Names ---------------------------------------------------------------------------------------

void StateArchive::BeginOwner(std::string_view owner) {
  owner_ = owner;
  record_ = {};
  if (mode_ == Mode::kCheck) check_->BeginOwner();
}

// A condition that a field requires counts for this field alone while fields are checked.
void StateArchive::EnterField(std::string_view name) {
  fields_.push_back(name);
  if (mode_ == Mode::kCheck) is_quiescent_ = true;
}

void StateArchive::LeaveField() {
  if (mode_ == Mode::kCheck && !is_quiescent_) {
    check_->NoteBusy(NameNow());
    is_quiescent_ = true;
  }
  fields_.pop_back();
}

void StateArchive::Fixed(uint64_t hash) {
  if (!check_->IsAsBefore(hash)) check_->NoteChanged(NameNow());
}

std::string StateArchive::NameNow() const {
  std::string name = owner_;
  const auto append = [&name](std::string_view part) {
    if (part.empty()) return;
    if (!name.empty()) name += '.';
    name += part;
  };
  if (!record_.empty()) {
    append(record_);
    name += '[' + std::to_string(record_index_) + ']';
  }
  for (const std::string_view field : fields_) append(field);
  append(next_name_);
  return name;
}

std::string StateArchive::TakeName() {
  std::string name = NameNow();
  next_name_ = {};
  return name;
}

}  // namespace railyard
