// SPDX-License-Identifier: GPL-2.0-only
// `--set FIELD=VALUE`: one edit of a parsed message.
#pragma once

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/text_proto/text_proto.h"

namespace railyard {

// Applies file.sets[set_index], so that `file.places` says for the fields it gives that they came
// from there, and `file.mistakes` nothing about them. False after an error: nothing is changed then
// but `file.mistakes`.
bool ApplySet(TextProtoFile& file, int set_index, Diagnostics& diagnostics);

}  // namespace railyard
