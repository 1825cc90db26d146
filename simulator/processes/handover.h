// SPDX-License-Identifier: GPL-2.0-only
// Passes values from a forked copy of this process to this process, in the order in which the copy
// puts them. They are stored in shared memory that grows, so neither process waits for the other.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

namespace railyard {

class Handover {
 public:
  // Maps the shared memory; it must be constructed before the fork. Throws EnvironmentError if
  // there is no memory to share.
  Handover();
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;
  ~Handover();

  // The copy calls these. They throw EnvironmentError if memory runs out.
  template <typename Value>
  requires std::is_trivially_copyable_v<Value>
  void Put(const Value& value) { Write(&value, sizeof(value)); }
  void Put(const std::string& text);

  // This process calls these when the copy has ended. They return false if the copy was killed
  // before it put that value.
  template <typename Value>
  requires std::is_trivially_copyable_v<Value>
  [[nodiscard]] bool Take(Value& value) { return Read(&value, sizeof(value)); }
  [[nodiscard]] bool Take(std::string& text);

 private:
  void Write(const void* data, size_t bytes);
  bool Read(void* data, size_t bytes);

  int file_ = -1;        // unnamed; each process uses its own offset
  size_t position_ = 0;  // of the next value
};

}  // namespace railyard
