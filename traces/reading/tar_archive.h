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
// that returns false. Returns false if the archive has no end mark, so that files may be missing.
// Throws DamagedInput if the archive is invalid, ends within a file, or has a file whose contents
// cannot be read from it (a sparse one, or a part of one). Hidden files (".name") are skipped,
// because macOS adds one beside each file; links, devices and entries of unknown types are passed
// to `pass_over` with the reason ("is a symbolic link to rank0.json").
bool ForEachTarEntry(
    InputStream& archive,
    const std::function<bool(const std::string& name, std::unique_ptr<ByteSource>)>& visit,
    const std::function<void(const std::string& name, const std::string& reason)>& pass_over);

}  // namespace railyard
