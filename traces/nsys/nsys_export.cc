// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nsys/nsys_export.h"

#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sqlite3.h>

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

using DatabaseHandle = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;

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
  ExportReader(const std::string& path, const std::string& name, Diagnostics& diagnostics)
      : name_(name), diagnostics_(diagnostics), database_(nullptr, sqlite3_close) {
    sqlite3* opened = nullptr;
    sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
    database_.reset(opened);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  }

  bool Read(const std::function<void(NsysRange&&)>& visit) {
    const std::set<std::string> columns = ColumnsOf("NVTX_EVENTS");
    if (Failed()) return Error();
    for (const char* const needed : {"start", "text", "textId", "globalTid"}) {
      if (columns.contains(needed)) continue;
      return Error(
          "has no table NVTX_EVENTS with its columns (expected what nsys export --type "
          "sqlite writes of a profile with --trace=nvtx)");
    }
    ReadSchemas();
    const bool has_payloads = columns.contains("binaryData");
    Statement ranges(database_.get(),
                     fmt::format("SELECT coalesce(s.value, e.text), e.start, e.globalTid, {} FROM "
                                 "NVTX_EVENTS e LEFT JOIN StringIds s ON s.id = e.textId WHERE "
                                 "coalesce(s.value, e.text) LIKE 'nccl%' ORDER BY e.start, e.rowid",
                                 has_payloads ? "e.binaryData" : "NULL"));
    if (!ranges.is_prepared()) return Error();
    while (ranges.Next()) visit(RangeOf(ranges));
    return Failed() ? Error() : true;
  }

 private:
  bool Failed() const {
    const int code = sqlite3_errcode(database_.get());
    return code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE;
  }
  bool Error() {
    return Error(
        fmt::format("{} (expected a whole SQLite database)", sqlite3_errmsg(database_.get())));
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

  // Entries without an offset begin their payload. Their sizes are those of NVTX's types that NCCL
  // uses (nvToolsExtPayload.h): 64 bits for uint64_t (18) and size_t (22), else 32.
  void ReadSchemas() {
    Statement entries(database_.get(),
                      "SELECT schemaId, name, offset, type FROM NVTX_PAYLOAD_SCHEMA_ENTRIES");
    if (!entries.is_prepared()) return;  // exports of older versions have no payloads
    while (entries.Next()) {
      constexpr int64_t kUint64 = 18;
      constexpr int64_t kSize = 22;
      const int64_t type = entries.Integer(3);
      const int64_t offset = entries.IsNull(2) ? 0 : entries.Integer(2);
      if (offset < 0 || offset > UINT16_MAX) continue;
      schemas_[static_cast<uint64_t>(entries.Integer(0))].push_back(
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
    if (!row.IsNull(3)) ReadPayload(row.Bytes(3), range);
    return range;
  }

  void ReadPayload(std::string_view data, NsysRange& range) const {
    if (data.size() < kPayloadHeaderBytes) return;
    const auto schema = schemas_.find(LittleEndian(data.substr(kSchemaAt, 4)));
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
    }
  }

  const std::string& name_;
  Diagnostics& diagnostics_;
  DatabaseHandle database_;
  std::map<uint64_t, std::vector<Entry>> schemas_;
};

}  // namespace

bool ReadNsysRanges(const std::string& path, const std::string& name,
                    const std::function<void(NsysRange&&)>& visit, Diagnostics& diagnostics) {
  return ExportReader(path, name, diagnostics).Read(visit);
}

}  // namespace railyard
