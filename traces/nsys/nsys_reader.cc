// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nsys/nsys_reader.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "simulator/files/output_file.h"
#include "simulator/processes/temporary_directory.h"
#include "traces/nsys/nsys_job.h"

namespace railyard {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSqliteMagic("SQLite format 3\0", 16);

bool LooksLikeSqlite(std::string_view head) { return head.starts_with(kSqliteMagic); }

void Unpack(InputStream& stream, const std::string& path) {
  OutputFile file(path);
  for (std::string_view next = stream.Peek(); !next.empty(); next = stream.Peek()) {
    file.Write(next);
    stream.Skip(next.size());
  }
  file.Close();
}

// SQLite reads files alone: what is compressed, in an archive or a pipe is copied.
NsysExport OpenDatabase(const InputFiles& files, InputStream& stream, ImportedFile& imported) {
  const std::vector<std::string>& paths = files.paths();
  std::error_code error;
  if (!stream.is_compressed() && fs::is_regular_file(stream.name(), error) &&
      std::ranges::find(paths, stream.name()) != paths.end()) {
    imported.bytes_read = fs::file_size(stream.name(), error);
    return OpenNsysExport(stream.name());
  }
  const TemporaryDirectory directory;
  const std::string path = directory.File("export.sqlite");
  Unpack(stream, path);
  imported.bytes_read = stream.bytes_read();
  return OpenNsysExport(path);
}

TraceImport ReadFiles(const InputFiles& files, const ImportOptions& options,
                      Diagnostics& diagnostics) {
  TraceImport import;
  const int errors_before = diagnostics.error_count();
  NsysJob job(options, import.report);
  files.ForEach(
      [&](InputStream& stream) {
        const auto index = static_cast<uint32_t>(import.report.files.size());
        import.report.files.push_back({.path = stream.name()});
        // Before anything is unpacked: what is no database may be long.
        if (!LooksLikeSqlite(stream.Peek(kSqliteMagic.size()))) {
          diagnostics.Error({stream.name()}, "",
                            "is no SQLite database (expected what `nsys export --type sqlite` "
                            "writes)");
          return false;
        }
        const NsysExport database = OpenDatabase(files, stream, import.report.files[index]);
        return ReadNsysExport(
            database, stream.name(), [&](NsysRange&& range) { job.Add(std::move(range), index); },
            [&](const NsysKernel& kernel) { job.AddKernel(kernel, index); }, diagnostics);
      },
      diagnostics);
  if (diagnostics.error_count() == errors_before) {
    import.trace = job.Take(diagnostics);
  } else {
    import.report.DropRemaining();
  }
  return import;
}

}  // namespace

constinit const TraceReader kNsysReader = {
    .format = "nsys",
    .description = "SQLite exports of Nsight Systems with NCCL's NVTX ranges",
    .recognizes = LooksLikeSqlite,
    .read = ReadFiles};

}  // namespace railyard
