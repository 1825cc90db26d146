// SPDX-License-Identifier: GPL-2.0-only
// It compiles; with GROWN it does not: the record has a member that its table does not name. See
// field_table_test.cc, which compiles it both ways; it is part of no program.
#include <cstdint>

#include "simulator/state/field_table.h"

namespace railyard {

struct Record {
  uint8_t value = 0;
#ifdef GROWN
  uint8_t forgotten = 0;  // in what would be padding
#endif
  uint64_t count = 0;

  static constexpr auto Fields() {
    return FieldTable("record", field::Value("value", &Record::value),
                      field::Count("count", &Record::count));
  }
};

void Visit(Record& record, StateArchive& archive);
void Visit(Record& record, StateArchive& archive) { VisitFields(record, archive); }

}  // namespace railyard
