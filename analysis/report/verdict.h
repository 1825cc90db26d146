// SPDX-License-Identifier: GPL-2.0-only
// Writes the sentences with which a report begins, and its key figures. Each figure is the answer
// to a query.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/store/result_store.h"

namespace railyard {

// Says how a figure is written.
enum class FigureUnit { kTime, kBytes, kCount, kRatio, kShare, kText };

// Holds a part of a sentence: words, or a figure with its query.
struct Phrase {
  std::string text;
  std::string sql{};  // empty if these are words
  StoredValue value{};
};

struct KeyFigure {
  std::string label;
  Phrase figure;
};

// Returns the figure that `sql` selects.
Phrase FigureOf(const ResultStore& store, FigureUnit unit, std::string sql);

// Returns sentences on what happened, what it cost and what limited it.
std::vector<Phrase> VerdictOf(const ResultStore& store);

std::vector<KeyFigure> KeyFiguresOf(const ResultStore& store);

}  // namespace railyard
