// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nsys/nsys_export.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sqlite3.h>

#include "simulator/sqlite/sqlite_error.h"

namespace railyard {
namespace {

// Before a payload: domain, flags, schema, flags (32 bits each), its size and the sum (64 bits).
constexpr size_t kPayloadHeaderBytes = 32;
constexpr size_t kSchemaAt = 8;
constexpr uint64_t kThreadBits = 24;  // the lowest of a serialized id

struct Entry {
  std::string name;
  size_t offset = 0;
  size_t bytes = 0;
};

class Statement {
 public:
  Statement(sqlite3* database, const std::string& sql) {
    sqlite3_prepare_v2(database, sql.c_str(), -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  bool is_prepared() const { return statement_ != nullptr; }
  bool Next() { return sqlite3_step(statement_) == SQLITE_ROW; }
  bool IsNull(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  int64_t Integer(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string_view Bytes(int column) const {
    const void* const data = sqlite3_column_blob(statement_, column);
    const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_, column));
    return data == nullptr ? std::string_view()
                           : std::string_view(static_cast<const char*>(data), size);
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
};

class ExportReader {
 public:
  ExportReader(const NsysExport& database, const std::string& name, Diagnostics& diagnostics)
      : name_(name), diagnostics_(diagnostics), database_(database) {}

  bool ReadRanges(const std::function<void(NsysRange&&)>& visit) {
    const std::set<std::string> columns = ColumnsOf("NVTX_EVENTS");
    if (Failed()) return Error();
    for (const char* const needed : {"start", "text", "textId", "globalTid"}) {
      if (columns.contains(needed)) continue;
      return Error(
          "has no table NVTX_EVENTS with its columns (expected what nsys export --type "
          "sqlite writes of a profile with --trace=nvtx)");
    }
    ReadSchemas();
    const auto value_of = [&](const char* column) {
      return columns.contains(column) ? std::string("e.") + column : "NULL";
    };
    Statement ranges(database_.get(),
                     fmt::format("SELECT coalesce(s.value, e.text), e.start, e.globalTid, {}, {}, "
                                 "{} FROM NVTX_EVENTS e LEFT JOIN StringIds s ON s.id = e.textId "
                                 "WHERE coalesce(s.value, e.text) LIKE 'nccl%' "
                                 "ORDER BY e.start, e.rowid",
                                 value_of("binaryData"), value_of("end"), value_of("domainId")));
    if (!ranges.is_prepared()) return Error();
    while (ranges.Next()) visit(RangeOf(ranges));
    return Failed() ? Error() : true;
  }

  // A profile without --trace=cuda has no tables of kernels.
  bool ReadKernels(const std::function<void(const NsysKernel&)>& visit) {
    std::vector<LaunchedKernel> kernels;
    Statement rows(database_.get(),
                   "SELECT k.start, k.end, k.deviceId, k.streamId, k.globalPid, k.correlationId "
                   "FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName "
                   "WHERE s.value LIKE 'nccl%kernel%'");
    if (!rows.is_prepared()) return true;
    while (rows.Next()) {
      const auto device = static_cast<uint64_t>(rows.Integer(2));
      const auto stream = static_cast<uint64_t>(rows.Integer(3)) & UINT32_MAX;
      kernels.push_back({.kernel = {.start_ns = rows.Integer(0),
                                    .end_ns = rows.Integer(1),
                                    .stream = device << 32 | stream,
                                    .process = ProcessOf(rows.Integer(4))},
                         .correlation = rows.Integer(5)});
    }
    if (Failed()) return Error();
    FindLaunches(kernels);
    std::erase_if(kernels, [](const LaunchedKernel& kernel) { return !kernel.is_launched; });
    std::stable_sort(kernels.begin(), kernels.end(),
                     [](const LaunchedKernel& a, const LaunchedKernel& b) {
                       return a.kernel.launch_ns < b.kernel.launch_ns;
                     });
    for (const LaunchedKernel& kernel : kernels) visit(kernel.kernel);
    return Failed() ? Error() : true;
  }

 private:
  struct LaunchedKernel {
    NsysKernel kernel;
    int64_t correlation = 0;  // of the launch, in its process
    bool is_launched = false;
  };

  static uint64_t ProcessOf(int64_t serialized_id) {
    return static_cast<uint64_t>(serialized_id) >> kThreadBits;
  }

  // Finds the launch of each kernel, in one pass over all calls of the CUDA API.
  void FindLaunches(std::vector<LaunchedKernel>& kernels) {
    const auto key_of = [](const LaunchedKernel& kernel) {
      return std::tuple(kernel.kernel.process, kernel.correlation);
    };
    std::sort(
        kernels.begin(), kernels.end(),
        [&](const LaunchedKernel& a, const LaunchedKernel& b) { return key_of(a) < key_of(b); });
    Statement calls(database_.get(),
                    "SELECT correlationId, globalTid, start FROM CUPTI_ACTIVITY_KIND_RUNTIME");
    if (!calls.is_prepared()) return;
    while (calls.Next()) {
      const std::tuple key(ProcessOf(calls.Integer(1)), calls.Integer(0));
      auto kernel = std::lower_bound(
          kernels.begin(), kernels.end(), key,
          [&](const LaunchedKernel& a, const auto& wanted) { return key_of(a) < wanted; });
      for (; kernel != kernels.end() && key_of(*kernel) == key && !kernel->is_launched; ++kernel) {
        kernel->is_launched = true;
        kernel->kernel.launch_thread = static_cast<uint64_t>(calls.Integer(1));
        kernel->kernel.launch_ns = calls.Integer(2);
      }
    }
  }

  bool Failed() const {
    const int code = sqlite3_errcode(database_.get());
    return code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE;
  }
  bool Error() {
    return Error(
        fmt::format("{} (expected a whole SQLite database)", SqliteError(database_.get())));
  }
  bool Error(const std::string& what) {
    diagnostics_.Error({.file = name_}, "", what);
    return false;
  }

  std::set<std::string> ColumnsOf(const std::string& table) {
    std::set<std::string> columns;
    Statement statement(database_.get(),
                        fmt::format("SELECT name FROM pragma_table_info('{}')", table));
    if (!statement.is_prepared()) return columns;
    while (statement.Next()) columns.emplace(statement.Bytes(0));
    return columns;
  }

  // Domains have schemas of their own; entries without an offset begin their payload. Their sizes
  // are those of NVTX's types that NCCL uses (nvToolsExtPayload.h): 64 bits for uint64_t (18) and
  // size_t (22), else 32.
  void ReadSchemas() {
    const bool has_domains = ColumnsOf("NVTX_PAYLOAD_SCHEMA_ENTRIES").contains("domainId");
    Statement entries(database_.get(), fmt::format("SELECT schemaId, name, offset, type, {} FROM "
                                                   "NVTX_PAYLOAD_SCHEMA_ENTRIES",
                                                   has_domains ? "domainId" : "NULL"));
    if (!entries.is_prepared()) return;  // exports of older versions have no payloads
    while (entries.Next()) {
      constexpr int64_t kUint64 = 18;
      constexpr int64_t kSize = 22;
      const int64_t type = entries.Integer(3);
      const int64_t offset = entries.IsNull(2) ? 0 : entries.Integer(2);
      if (offset < 0 || offset > UINT16_MAX) continue;
      schemas_[{entries.Integer(4), static_cast<uint64_t>(entries.Integer(0))}].push_back(
          {.name = std::string(entries.Bytes(1)),
           .offset = static_cast<size_t>(offset),
           .bytes = type == kUint64 || type == kSize ? size_t{8} : size_t{4}});
    }
  }

  static uint64_t LittleEndian(std::string_view bytes) {
    uint64_t value = 0;
    for (size_t i = bytes.size(); i > 0; --i) {
      value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
    }
    return value;
  }

  NsysRange RangeOf(const Statement& row) const {
    NsysRange range;
    range.name = row.Bytes(0);
    range.start_ns = row.Integer(1);
    range.thread = static_cast<uint64_t>(row.Integer(2));
    range.process = range.thread >> kThreadBits;
    range.end_ns = row.IsNull(4) ? range.start_ns : row.Integer(4);
    if (!row.IsNull(3)) ReadPayload(row.Bytes(3), row.Integer(5), range);
    return range;
  }

  void ReadPayload(std::string_view data, int64_t domain, NsysRange& range) const {
    if (data.size() < kPayloadHeaderBytes) return;
    const auto schema = schemas_.find({domain, LittleEndian(data.substr(kSchemaAt, 4))});
    if (schema == schemas_.end()) return;
    const std::string_view payload = data.substr(kPayloadHeaderBytes);
    for (const Entry& entry : schema->second) {
      if (entry.offset + entry.bytes > payload.size()) continue;
      const uint64_t value = LittleEndian(payload.substr(entry.offset, entry.bytes));
      const auto small = static_cast<int64_t>(static_cast<int32_t>(value));
      if (entry.name == "NCCL communicator ID") range.communicator = value;
      if (entry.name == "Message size [bytes]") range.bytes = value;
      if (entry.name == "Root") range.root = small;
      if (entry.name == "Peer rank") range.peer = small;
      if (entry.name == "Rank") range.rank = small;
      if (entry.name == "No. of ranks") range.rank_count = small;
      if (entry.name == "Parent NCCL communicator ID") range.parent = value;
      if (entry.name == "Color") range.color = small;
      if (entry.name == "Key") range.key = small;
    }
  }

  const std::string& name_;
  Diagnostics& diagnostics_;
  const NsysExport& database_;
  std::map<std::pair<int64_t, uint64_t>, std::vector<Entry>> schemas_;  // by domain and number
};

}  // namespace

NsysExport OpenNsysExport(const std::string& path) {
  std::string uri = "file://";
  for (const char c : std::filesystem::absolute(path).string()) {
    if (c == '%' || c == '?' || c == '#') {
      uri += fmt::format("%{:02x}", static_cast<unsigned>(c));
    } else {
      uri += c;
    }
  }
  uri += "?immutable=1";
  sqlite3* opened = nullptr;
  sqlite3_open_v2(uri.c_str(), &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  NsysExport database(opened, sqlite3_close);
  if (opened == nullptr) throw std::bad_alloc();
  sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, kStoredBytesMax);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  return database;
}

bool ReadNsysExport(const NsysExport& database, const std::string& name,
                    const std::function<void(NsysRange&&)>& on_range,
                    const std::function<void(const NsysKernel&)>& on_kernel,
                    Diagnostics& diagnostics) {
  ExportReader reader(database, name, diagnostics);
  return reader.ReadRanges(on_range) && reader.ReadKernels(on_kernel);
}

}  // namespace railyard
