// SPDX-License-Identifier: GPL-2.0-only
// Represents a page as data: verdict, key figures and charts, which the page's scripts draw. All
// pages that this library writes have the same frame.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/report/chart.h"
#include "analysis/report/verdict.h"
#include "analysis/store/result_store.h"

namespace railyard {

struct PageContents {
  std::string title;                                       // of the window
  std::string subject;                                     // beside the program's name
  std::string provenance;                                  // at the bottom
  std::vector<std::pair<std::string, StoredValue>> run{};  // figures that the scripts read, by key
  std::vector<Phrase> verdict{};                           // the first sentence is the heading
  std::vector<KeyFigure> figures{};
  ChartTable faults{};  // the spans of time that charts shade
  std::vector<Chart> charts{};
  std::vector<std::string> notes{};
};

// Returns the contents as JSON.
std::string PageJson(const PageContents& contents);

// Returns the whole page. Throws EnvironmentError if !CanWriteReports().
std::string PageOf(const PageContents& contents);

}  // namespace railyard
