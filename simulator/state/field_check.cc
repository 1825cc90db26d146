// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/state/field_check.h"

#include <iterator>
#include <string_view>
#include <utility>

namespace railyard {
namespace {

constexpr size_t kNamedMax = 4;

std::string ListOf(const std::vector<std::string>& names, std::string_view verb) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kNamedMax; ++i) {
    if (i > 0) text += "; ";
    text += names[i];
    text += verb;
  }
  if (names.size() > kNamedMax) {
    text += "; and " + std::to_string(names.size() - kNamedMax) + " more";
  }
  return text;
}

}  // namespace

void FieldCheck::BeginOwner() {
  EndOwner();
  fixed_.emplace_back();
}

// Differences mean nothing if records were opened or closed meanwhile.
void FieldCheck::EndOwner() {
  const std::vector<uint64_t>* const before = OwnerBefore();
  if (before != nullptr && before->size() == fixed_.back().size()) {
    changed_.insert(changed_.end(), std::make_move_iterator(changed_of_owner_.begin()),
                    std::make_move_iterator(changed_of_owner_.end()));
  }
  changed_of_owner_.clear();
}

const std::vector<uint64_t>* FieldCheck::OwnerBefore() const {
  if (before_ == nullptr || before_->size() < fixed_.size()) return nullptr;
  return &(*before_)[fixed_.size() - 1];
}

bool FieldCheck::IsAsBefore(uint64_t hash) {
  std::vector<uint64_t>& own = fixed_.back();
  own.push_back(hash);
  const std::vector<uint64_t>* const before = OwnerBefore();
  return before == nullptr || before->size() < own.size() || (*before)[own.size() - 1] == hash;
}

std::string FieldCheck::DescribeChanged() {
  EndOwner();
  return ListOf(changed_, " has changed");
}

std::string FieldCheck::DescribeBusy() const { return ListOf(busy_, " is not as at rest"); }

}  // namespace railyard
