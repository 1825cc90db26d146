// SPDX-License-Identifier: GPL-2.0-only
// Checks the members that are in no snapshot, while the replay cache is verified: those that no
// episode changes, and those that have a known value when nothing is under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace railyard {

// Holds the hashes of fixed members, by owner, in the order of the visit.
using FixedMembers = std::vector<std::vector<uint64_t>>;

// Holds what one visit of a StateArchive finds.
class FieldCheck {
 public:
  FieldCheck() = default;
  // Compares the fixed members with those of an earlier visit, which must outlive this. The members
  // of an owner are compared only if it has as many as then: it has opened no record since.
  explicit FieldCheck(const FixedMembers& before) : before_(&before) {}

  // --- For StateArchive --------------------------------------------------------------------------
  // Assigns the following members to the next owner.
  void BeginOwner();
  // Takes the hash of a fixed member. Returns false if it was another in the earlier visit.
  bool IsAsBefore(uint64_t hash);
  // Notes the name of a member that changed, or of one that does not have its value at rest.
  void NoteChanged(std::string name) { changed_of_owner_.push_back(std::move(name)); }
  void NoteBusy(std::string name) { busy_.push_back(std::move(name)); }

  // --- After the visit ---------------------------------------------------------------------------
  // Returns "flows.flow[2].port has changed; ..." for the first few; empty if none has.
  std::string DescribeChanged();
  // Returns "flows.flow[2].unsent_bytes is not as at rest; ..." for the first few; empty if there
  // is none.
  std::string DescribeBusy() const;
  FixedMembers TakeFixed() { return std::move(fixed_); }

 private:
  void EndOwner();
  // Returns null if the earlier visit had no such owner, or if there was none.
  const std::vector<uint64_t>* OwnerBefore() const;

  const FixedMembers* before_ = nullptr;
  FixedMembers fixed_{1};
  std::vector<std::string> changed_of_owner_;
  std::vector<std::string> changed_;
  std::vector<std::string> busy_;
};

}  // namespace railyard
