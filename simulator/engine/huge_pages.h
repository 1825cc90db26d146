// SPDX-License-Identifier: GPL-2.0-only
#pragma once

namespace railyard {

// Asks the system to back the heap with huge pages, as far as it offers them: a thousand GPUs'
// state is looked at in no order, and with small pages the address translations alone do not fit
// their cache. To be called before the heap is in use; without effect where it cannot be done.
void PreferHugePages();

}  // namespace railyard
