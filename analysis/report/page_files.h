// SPDX-License-Identifier: GPL-2.0-only
// Holds the files of page/ and ECharts, as they were when the program was built
// (cmake/RailyardEmbed.cmake).
#pragma once

#include <string_view>

namespace railyard {

extern const std::string_view kPageHtml;
extern const std::string_view kPageStyle;
extern const std::string_view kPageFormats;
extern const std::string_view kPageDrawings;
extern const std::string_view kPageNetworkDrawings;
extern const std::string_view kPageComparisonDrawings;
extern const std::string_view kPageStudyDrawings;
extern const std::string_view kPageFidelityDrawings;
extern const std::string_view kPageScript;
extern const std::string_view kEcharts;  // empty if the program was built without it
}  // namespace railyard
