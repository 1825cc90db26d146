// SPDX-License-Identifier: GPL-2.0-only
#pragma once

namespace railyard {

// Asks the system to back the heap with huge pages if it offers them, because the state of a
// thousand GPUs is accessed in random order, and with small pages the address translations alone
// exceed their cache. Must be called before the heap is in use; it has no effect where the system
// does not support it.
void PreferHugePages();

}  // namespace railyard
