// SPDX-License-Identifier: GPL-2.0-only
// Applies one edit to a message: `--set FIELD=VALUE`, or a value that a program states.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/text_proto/text_proto.h"

namespace railyard {

// Applies file.sets[set_index]. `file.places` then names this set as the place of the fields that
// it sets, and `file.mistakes` has no mistake in them. Returns false after an error, which changes
// only `file.mistakes`.
bool ApplySet(TextProtoFile& file, int set_index, Diagnostics& diagnostics);

// Holds a value with its type. monostate is a message without fields; a string may also be the name
// of an enum's value.
using ProtoValue = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string>;

// Sets the field of that path, as ApplySet() does, to a value of its type; an index one past the
// end appends. Returns false after an error, which has file.path as its place.
bool SetValue(TextProtoFile& file, const std::string& path, const ProtoValue& value,
              Diagnostics& diagnostics);

}  // namespace railyard
