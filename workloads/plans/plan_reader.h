// SPDX-License-Identifier: GPL-2.0-only
// Reads fields of a plan's messages; all loaders of a plan's parts use it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "simulator/text_proto/text_proto.h"
#include "workloads/plans/precision.h"
#include "workloads/plans/workload.pb.h"

namespace railyard {

class PlanReader {
 public:
  // `diagnostics` must outlive this.
  PlanReader(ProtoCursor cursor, Diagnostics& diagnostics)
      : cursor_(std::move(cursor)), diagnostics_(diagnostics) {}

  const ProtoCursor& cursor() const { return cursor_; }
  Diagnostics& diagnostics() const { return diagnostics_; }
  bool Has(const char* field) const { return cursor_.Has(field); }

  // Reads a number; an absent field leaves `value` unchanged.
  void Number(const char* field, uint32_t min, uint32_t max, uint32_t& value) const;
  // Reads a number; an absent field is an error if `value` is 0, i.e. not set already, e.g. by a
  // preset.
  void Required(const char* field, uint32_t min, uint32_t max, const char* expected,
                uint32_t& value) const;
  void Flag(const char* field, bool& value) const { value = cursor_.Flag(field, value); }
  void Duration(const char* field, int64_t max_ps, int64_t& value_ps) const;
  // Reads a number above 0 and at most `max`.
  void Ratio(const char* field, double max, double& value) const;
  void ReadPrecision(const char* field, Precision& value) const;
  void Error(const char* field, std::string what) const {
    cursor_.Error(diagnostics_, field, std::move(what));
  }
  void Missing(const char* field, const char* expected) const {
    cursor_.Missing(diagnostics_, field, expected);
  }

 private:
  const ProtoCursor cursor_;
  Diagnostics& diagnostics_;
};

// Returns the divisors of `number` nearest to `wish`: "8 or 16", "8".
std::string NearestDivisors(uint64_t number, uint64_t wish);

}  // namespace railyard
