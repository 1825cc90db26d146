// SPDX-License-Identifier: GPL-2.0-only
// Reads the files in tar archives (POSIX ustar and pax, GNU's long names).
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

// Returns true if `head`, the first block of a file, is that of a tar archive, i.e. its checksum is
// right.
bool IsTarArchive(std::string_view head);

// Passes each regular file of the archive to `visit` (name, bytes) in the archive's order, until
// that returns false. Throws DamagedInput if the archive is invalid or ends within a file. Hidden
// files (".name") are skipped, because macOS adds one beside each file; links and devices are
// passed to `pass_over` with the reason ("is a symbolic link to rank0.json").
void ForEachTarEntry(
    InputStream& archive,
    const std::function<bool(const std::string& name, std::unique_ptr<ByteSource>)>& visit,
    const std::function<void(const std::string& name, const std::string& reason)>& pass_over);

}  // namespace railyard
