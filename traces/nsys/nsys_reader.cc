// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nsys/nsys_reader.h"

#include <string>
#include <string_view>
#include <utility>

#include "simulator/files/output_file.h"
#include "simulator/processes/temporary_directory.h"
#include "traces/nsys/nsys_job.h"

namespace railyard {
namespace {

constexpr std::string_view kSqliteMagic("SQLite format 3\0", 16);

bool LooksLikeSqlite(std::string_view head) { return head.starts_with(kSqliteMagic); }

// SQLite reads files, not streams: what is compressed or in an archive is unpacked first.
void Unpack(InputStream& stream, const std::string& path) {
  OutputFile file(path);
  for (std::string_view next = stream.Peek(); !next.empty(); next = stream.Peek()) {
    file.Write(next);
    stream.Skip(next.size());
  }
  file.Close();
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
        const TemporaryDirectory directory;
        const std::string path = directory.File("export.sqlite");
        Unpack(stream, path);
        import.report.files[index].bytes_read = stream.bytes_read();
        return ReadNsysExport(
            path, stream.name(), [&](NsysRange&& range) { job.Add(std::move(range), index); },
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
