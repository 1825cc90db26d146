// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/report/report_page.h"

#include <array>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "analysis/report/chart.h"
#include "analysis/report/page_files.h"
#include "analysis/report/verdict.h"
#include "analysis/tables/utf8.h"
#include "simulator/diagnostics/names.h"

namespace railyard {
namespace {

using Json = rapidjson::Writer<rapidjson::StringBuffer>;

void PutText(Json& json, const std::string& text) {
  const std::string valid = ToValidUtf8(text);
  json.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
}

void PutText(Json& json, const char* key, const std::string& text) {
  json.Key(key);
  PutText(json, text);
}

void PutValue(Json& json, const StoredValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    json.Int64(*integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    json.Double(*real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    PutText(json, *text);
  } else {
    json.Null();
  }
}

// A column as an array; one of texts as {"texts": [each once], "at": [which]}, for they repeat.
void PutColumn(Json& json, const ChartTable& table, size_t column) {
  bool is_text = !table.rows.empty();
  for (const auto& row : table.rows) {
    is_text = is_text && std::holds_alternative<std::string>(row[column]);
  }
  if (!is_text) {
    json.StartArray();
    for (const auto& row : table.rows) PutValue(json, row[column]);
    json.EndArray();
    return;
  }
  std::map<std::string, size_t> places;
  std::vector<const std::string*> texts;
  std::vector<size_t> at;
  for (const auto& row : table.rows) {
    const auto [place, is_new] =
        places.try_emplace(std::get<std::string>(row[column]), places.size());
    if (is_new) texts.push_back(&place->first);
    at.push_back(place->second);
  }
  json.StartObject();
  json.Key("texts");
  json.StartArray();
  for (const std::string* text : texts) PutText(json, *text);
  json.EndArray();
  json.Key("at");
  json.StartArray();
  for (const size_t place : at) json.Uint64(place);
  json.EndArray();
  json.EndObject();
}

// Columns by name.
void PutTable(Json& json, const ChartTable& table) {
  json.Key(table.name.c_str());
  json.StartObject();
  for (size_t column = 0; column < table.columns.size(); ++column) {
    json.Key(table.columns[column].c_str());
    PutColumn(json, table, column);
  }
  json.EndObject();
}

void PutChart(Json& json, const Chart& chart) {
  json.StartObject();
  PutText(json, "id", chart.id);
  PutText(json, "title", chart.title);
  PutText(json, "caption", chart.caption);
  PutText(json, "note", chart.note);
  json.Key("tables");
  json.StartObject();
  for (const ChartTable& table : chart.tables) PutTable(json, table);
  json.EndObject();
  json.EndObject();
}

void PutPhrase(Json& json, const Phrase& phrase) {
  json.StartObject();
  PutText(json, "text", phrase.text);
  if (!phrase.sql.empty()) {
    PutText(json, "sql", phrase.sql);
    json.Key("value");
    PutValue(json, phrase.value);
  }
  json.EndObject();
}

// The values of the table `run`.
void PutRun(Json& json, const ResultStore& store) {
  json.Key("run");
  json.StartObject();
  StoredRows rows = store.Rows("SELECT key, value FROM run");
  while (rows.Next()) {
    json.Key(ToValidUtf8(rows.Text(0)).c_str());
    PutValue(json, rows.Value(1));
  }
  json.EndObject();
}

// JSON within a script element: no "<" may stand in it, for "</script" and "<!--" mean something.
std::string WithoutMarkup(std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

bool CanWriteReports() { return !kEcharts.empty(); }

void AddNoResult(const std::string& directory, const UnreadableResult& unreadable,
                 Diagnostics& diagnostics) {
  diagnostics.Error({directory}, "",
                    fmt::format("is no result of a run: {} (expected a directory that `railyard "
                                "run` wrote)",
                                Quote(unreadable.why)));
}

std::optional<ResultStore> OpenResult(const std::string& directory, Diagnostics& diagnostics) {
  try {
    return ResultStore(directory);
  } catch (const UnreadableResult& unreadable) {
    AddNoResult(directory, unreadable, diagnostics);
    return std::nullopt;
  }
}

std::string ReportJson(const ResultStore& store) {
  rapidjson::StringBuffer buffer;
  Json json(buffer);
  json.StartObject();
  PutRun(json, store);
  json.Key("verdict");
  json.StartArray();
  for (const Phrase& phrase : VerdictOf(store)) PutPhrase(json, phrase);
  json.EndArray();
  json.Key("figures");
  json.StartArray();
  for (const KeyFigure& figure : KeyFiguresOf(store)) {
    json.StartObject();
    PutText(json, "label", figure.label);
    json.Key("figure");
    PutPhrase(json, figure.figure);
    json.EndObject();
  }
  json.EndArray();
  // The spans of time that other charts shade.
  PutTable(json, TableOf(store, "faults",
                         "SELECT name, from_ps, until_ps FROM faults WHERE begins > 0 LIMIT 200"));
  json.Key("charts");
  json.StartArray();
  for (const Chart& chart : ChartsOf(store)) PutChart(json, chart);
  json.EndArray();
  json.Key("notes");
  json.StartArray();
  StoredRows notes = store.Rows("SELECT note FROM notes");
  while (notes.Next()) PutText(json, notes.Text(0));
  json.EndArray();
  json.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

std::string ReportPage(const ResultStore& store) {
  if (!CanWriteReports()) {
    throw EnvironmentError(fmt::format("cannot write a report: {}", kNoEcharts));
  }
  const std::string data = WithoutMarkup(ReportJson(store));
  const std::array<std::pair<std::string_view, std::string_view>, 7> parts = {
      {{"{{STYLE}}", kPageStyle},
       {"{{ECHARTS}}", kEcharts},
       {"{{DATA}}", data},
       {"{{FORMATS}}", kPageFormats},
       {"{{DRAWINGS}}", kPageDrawings},
       {"{{NETWORK}}", kPageNetworkDrawings},
       {"{{SCRIPT}}", kPageScript}}};
  std::string page;
  std::string_view rest = kPageHtml;
  for (const auto& [mark, content] : parts) {  // in the order in which they stand in the page
    const size_t at = rest.find(mark);
    page.append(rest.substr(0, at)).append(content);
    rest.remove_prefix(at + mark.size());
  }
  return page.append(rest);
}

std::string ReportOfOwnResult(const std::string& directory) {
  try {
    return ReportPage(ResultStore(directory));
  } catch (const UnreadableResult& unreadable) {
    throw EnvironmentError(fmt::format("cannot read back the result: {}", unreadable.why));
  }
}

}  // namespace railyard
