// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/in_network/switch_group.h"

namespace railyard {

bool SwitchGroup::CountOperand(uint32_t piece) {
  while (piece - first_piece_ >= come_.size()) Grow();
  const auto slot = [this](uint32_t of) -> uint16_t& { return come_[of & (come_.size() - 1)]; };
  if (++slot(piece) < gpu_count_) return false;
  while (slot(first_piece_) == gpu_count_) slot(first_piece_++) = 0;
  return true;
}

void SwitchGroup::Grow() {
  std::vector<uint16_t> grown(2 * come_.size());
  for (uint32_t i = 0; i < come_.size(); ++i) {
    const uint32_t piece = first_piece_ + i;
    grown[piece & (grown.size() - 1)] = come_[piece & (come_.size() - 1)];
  }
  come_.swap(grown);
}

}  // namespace railyard
