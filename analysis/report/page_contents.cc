// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/report/page_contents.h"

#include <array>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "analysis/report/page_files.h"
#include "analysis/report/report_page.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/diagnostics/utf8.h"

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

std::string PageJson(const PageContents& contents) {
  rapidjson::StringBuffer buffer;
  Json json(buffer);
  json.StartObject();
  PutText(json, "title", contents.title);
  PutText(json, "subject", contents.subject);
  PutText(json, "provenance", contents.provenance);
  json.Key("run");
  json.StartObject();
  for (const auto& [key, value] : contents.run) {
    json.Key(ToValidUtf8(key).c_str());
    PutValue(json, value);
  }
  json.EndObject();
  json.Key("verdict");
  json.StartArray();
  for (const Phrase& phrase : contents.verdict) PutPhrase(json, phrase);
  json.EndArray();
  json.Key("figures");
  json.StartArray();
  for (const KeyFigure& figure : contents.figures) {
    json.StartObject();
    PutText(json, "label", figure.label);
    json.Key("figure");
    PutPhrase(json, figure.figure);
    json.EndObject();
  }
  json.EndArray();
  PutTable(json, contents.faults);
  json.Key("charts");
  json.StartArray();
  for (const Chart& chart : contents.charts) PutChart(json, chart);
  json.EndArray();
  json.Key("notes");
  json.StartArray();
  for (const std::string& note : contents.notes) PutText(json, note);
  json.EndArray();
  json.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

std::string PageOf(const PageContents& contents) {
  if (!CanWriteReports()) {
    throw EnvironmentError(fmt::format("cannot write a report: {}", kNoEcharts));
  }
  const std::string data = WithoutMarkup(PageJson(contents));
  const std::array<std::pair<std::string_view, std::string_view>, 10> parts = {
      {{"{{STYLE}}", kPageStyle},
       {"{{ECHARTS}}", kEcharts},
       {"{{DATA}}", data},
       {"{{FORMATS}}", kPageFormats},
       {"{{DRAWINGS}}", kPageDrawings},
       {"{{NETWORK}}", kPageNetworkDrawings},
       {"{{COMPARISON}}", kPageComparisonDrawings},
       {"{{STUDY}}", kPageStudyDrawings},
       {"{{FIDELITY}}", kPageFidelityDrawings},
       {"{{SCRIPT}}", kPageScript}}};
  size_t bytes = kPageHtml.size();
  for (const auto& [mark, content] : parts) bytes += content.size();
  std::string page;
  page.reserve(bytes);
  std::string_view rest = kPageHtml;
  for (const auto& [mark, content] : parts) {  // in the order in which they stand in the page
    const size_t at = rest.find(mark);
    page.append(rest.substr(0, at)).append(content);
    rest.remove_prefix(at + mark.size());
  }
  return page.append(rest);
}

}  // namespace railyard
