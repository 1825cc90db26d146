// SPDX-License-Identifier: GPL-2.0-only
// Tar archives (POSIX ustar and pax, GNU's long names), as far as it takes to read the files in
// one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "traces/reading/byte_source.h"
#include "traces/reading/input_stream.h"

namespace railyard {

inline constexpr size_t kTarBlockBytes = 512;

// Whether `head`, the first block of a file, is that of a tar archive: its checksum is right.
bool IsTarArchive(std::string_view head);

// Shows each regular file of the archive to `visit` (name, bytes) in the archive's order, until it
// returns false. DamagedInput where the archive is not one, or ends within a file. Hidden files
// (".name") are passed over, as macOS puts one beside each file.
void ForEachTarEntry(
    InputStream& archive,
    const std::function<bool(const std::string& name, std::unique_ptr<ByteSource>)>& visit);

}  // namespace railyard
