// SPDX-License-Identifier: GPL-2.0-only
#include "traces/flight_recorder/unpickler.h"

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace railyard {
namespace {

constexpr size_t kDepthMax = 32;

// An object of the pickle. Several may hold one, even itself.
struct Object {
  Value::Kind kind = Value::Kind::kNone;
  std::string text;
  std::vector<std::shared_ptr<Object>> items;  // of a dictionary, key and value in turn
};
using ObjectPointer = std::shared_ptr<Object>;

struct PickleError {
  std::string what;
};

// The machine of Python's pickletools, without the opcodes that import and call.
class Machine {
 public:
  explicit Machine(InputStream& stream) : stream_(stream) {}
  // Objects may hold each other in circles.
  ~Machine() {
    for (const ObjectPointer& object : made_) object->items.clear();
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  ObjectPointer Run() {
    for (;;) {
      opcode_at_ = stream_.bytes_read();
      const uint8_t opcode = Byte();
      if (opcode == '.') break;
      Step(opcode);
    }
    if (stack_.size() != 1) Fail("ends with other than one object");
    return stack_.back();
  }
  uint64_t opcode_at() const { return opcode_at_; }

 private:
  [[noreturn]] static void Fail(std::string what) { throw PickleError{std::move(what)}; }

  uint8_t Byte() {
    const std::string_view next = stream_.Peek();
    if (next.empty()) Fail("ends early");
    stream_.Skip(1);
    return static_cast<uint8_t>(next.front());
  }
  uint64_t Number(int bytes) {
    uint64_t number = 0;
    for (int i = 0; i < bytes; ++i) number |= uint64_t{Byte()} << (8 * i);
    return number;
  }
  std::string TextOf(uint64_t bytes) {
    text_bytes_ += bytes;
    if (bytes > kPickleTextBytesMax || text_bytes_ > kPickleTextBytesMax) {
      Fail(fmt::format("holds more than {} bytes of text", kPickleTextBytesMax));
    }
    // The stated length is not trusted: memory grows only with the bytes that are there.
    std::string text;
    while (text.size() < bytes) {
      const std::string_view next = stream_.Peek();
      if (next.empty()) Fail("ends early");
      const size_t count = std::min<size_t>(next.size(), bytes - text.size());
      text.append(next.substr(0, count));
      stream_.Skip(count);
    }
    return text;
  }

  ObjectPointer Make(Value::Kind kind, std::string text = {}) {
    if (made_.size() >= kPickleValuesMax) {
      Fail(fmt::format("holds more than {} values", kPickleValuesMax));
    }
    made_.push_back(std::make_shared<Object>());
    made_.back()->kind = kind;
    made_.back()->text = std::move(text);
    return made_.back();
  }
  void Push(Value::Kind kind, std::string text = {}) {
    stack_.push_back(Make(kind, std::move(text)));
  }
  void PushNumber(int64_t number) { Push(Value::Kind::kNumber, fmt::format("{}", number)); }

  ObjectPointer Pop() {
    if (stack_.empty() || (!marks_.empty() && stack_.size() <= marks_.back())) {
      Fail("takes an object from an empty stack");
    }
    ObjectPointer object = std::move(stack_.back());
    stack_.pop_back();
    return object;
  }
  std::vector<ObjectPointer> PopToMark() {
    if (marks_.empty()) Fail("has no mark where one is due");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<ObjectPointer> objects(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return objects;
  }
  Object& Top(Value::Kind kind) {
    if (stack_.empty() || stack_.back()->kind != kind) Fail("adds to what is no such collection");
    return *stack_.back();
  }
  void PushTuple(std::vector<ObjectPointer> items) {
    Push(Value::Kind::kList);
    stack_.back()->items = std::move(items);
  }
  void PushTupleOf(size_t count) {
    std::vector<ObjectPointer> items(count);
    for (size_t i = count; i > 0; --i) items[i - 1] = Pop();
    PushTuple(std::move(items));
  }
  // References cost as well: a few bytes of a pickle could make many.
  void Extend(Object& collection, std::vector<ObjectPointer> items) {
    references_ += items.size();
    if (references_ > 4 * kPickleValuesMax) Fail("holds too many references");
    collection.items.insert(collection.items.end(), items.begin(), items.end());
  }
  void AddPairs(std::vector<ObjectPointer> items) {
    if (items.size() % 2 != 0) Fail("gives a dictionary a key without a value");
    Extend(Top(Value::Kind::kMap), std::move(items));
  }

  void Remember(uint64_t number) {
    if (stack_.empty()) Fail("remembers an object where there is none");
    memo_[number] = stack_.back();
  }
  void Recall(uint64_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end()) Fail(fmt::format("recalls object {}, which is unknown", number));
    if (stack_.size() > 4 * kPickleValuesMax) Fail("holds too many references");
    stack_.push_back(found->second);
  }

  void Step(uint8_t opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        if (const uint8_t version = Byte(); version > 5) {
          Fail(fmt::format("is of protocol {} (expected at most 5)", version));
        }
        return;
      case 0x95:  // FRAME
        Number(8);
        return;
      case '(':  // MARK
        if (marks_.size() > kPickleValuesMax) Fail("is nested too deeply");
        marks_.push_back(stack_.size());
        return;
      case '0':  // POP
        Pop();
        return;
      case '}':
        return Push(Value::Kind::kMap);
      case ']':
      case ')':
        return Push(Value::Kind::kList);
      case 'N':
        return Push(Value::Kind::kNone);
      case 0x88:
        return Push(Value::Kind::kTrue);
      case 0x89:
        return Push(Value::Kind::kFalse);
      default:
        break;
    }
    if (StepNumber(opcode) || StepText(opcode) || StepCollection(opcode) || StepMemo(opcode)) {
      return;
    }
    FailOnCode(opcode);
  }

  bool StepNumber(uint8_t opcode) {
    switch (opcode) {
      case 'J':  // BININT
        PushNumber(static_cast<int32_t>(Number(4)));
        return true;
      case 'K':
        PushNumber(static_cast<int64_t>(Number(1)));
        return true;
      case 'M':
        PushNumber(static_cast<int64_t>(Number(2)));
        return true;
      case 0x8a:  // LONG1
        PushLong(Byte());
        return true;
      case 'G': {  // BINFLOAT, big-endian
        uint64_t bits = 0;
        for (int i = 0; i < 8; ++i) bits = bits << 8 | Byte();
        Push(Value::Kind::kNumber, fmt::format("{}", std::bit_cast<double>(bits)));
        return true;
      }
      default:
        return false;
    }
  }
  // Two's complement of any length, of which up to 8 bytes are a number here.
  void PushLong(uint8_t bytes) {
    if (bytes > 8) Fail(fmt::format("holds a number of {} bytes (expected at most 8)", bytes));
    uint64_t number = Number(bytes);
    const bool is_negative = bytes > 0 && bytes < 8 && (number >> (8 * bytes - 1) & 1) != 0;
    if (is_negative) number |= ~uint64_t{0} << (8 * bytes);
    PushNumber(static_cast<int64_t>(number));
  }

  bool StepText(uint8_t opcode) {
    switch (opcode) {
      case 0x8c:  // SHORT_BINUNICODE
        Push(Value::Kind::kText, TextOf(Number(1)));
        return true;
      case 'X':
        Push(Value::Kind::kText, TextOf(Number(4)));
        return true;
      case 0x8d:
        Push(Value::Kind::kText, TextOf(Number(8)));
        return true;
      default:
        return false;
    }
  }

  bool StepCollection(uint8_t opcode) {
    switch (opcode) {
      case 't':  // TUPLE
        PushTuple(PopToMark());
        return true;
      case 0x85:
      case 0x86:
      case 0x87:  // TUPLE1 to TUPLE3
        PushTupleOf(opcode - 0x84U);
        return true;
      case 'a': {  // APPEND
        std::vector<ObjectPointer> item{Pop()};
        Extend(Top(Value::Kind::kList), std::move(item));
        return true;
      }
      case 'e': {  // APPENDS
        std::vector<ObjectPointer> items = PopToMark();
        Extend(Top(Value::Kind::kList), std::move(items));
        return true;
      }
      case 's': {  // SETITEM
        ObjectPointer value = Pop();
        ObjectPointer key = Pop();
        AddPairs({std::move(key), std::move(value)});
        return true;
      }
      case 'u':  // SETITEMS
        AddPairs(PopToMark());
        return true;
      default:
        return false;
    }
  }

  bool StepMemo(uint8_t opcode) {
    switch (opcode) {
      case 'q':
        Remember(Number(1));
        return true;
      case 'r':
        Remember(Number(4));
        return true;
      case 0x94:  // MEMOIZE
        Remember(memo_.size());
        return true;
      case 'h':
        Recall(Number(1));
        return true;
      case 'j':
        Recall(Number(4));
        return true;
      default:
        return false;
    }
  }

  [[noreturn]] void FailOnCode(uint8_t opcode) {
    switch (opcode) {
      case 'c':
      case 0x93:
      case 'i':
        Fail("imports code, which is never done (expected data alone)");
      case 'R':
      case 'o':
      case 'b':
      case 0x81:
      case 0x92:
        Fail("calls code, which is never done (expected data alone)");
      default:
        Fail(fmt::format("has opcode {:#04x}, which no Flight Recorder dump needs", opcode));
    }
  }

  InputStream& stream_;
  uint64_t opcode_at_ = 0;
  std::vector<ObjectPointer> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, ObjectPointer> memo_;
  std::vector<ObjectPointer> made_;
  size_t text_bytes_ = 0;
  size_t references_ = 0;
};

// Returns a copy of the object with references resolved. Throws if it contains itself or is too
// large.
Value Flatten(const Object& object, size_t depth, size_t& bytes_left) {
  if (depth > kDepthMax) {
    throw PickleError{fmt::format("is nested too deeply (expected at most {} levels)", kDepthMax)};
  }
  const size_t bytes = sizeof(Value) + object.text.size();
  if (bytes > bytes_left) {
    throw PickleError{fmt::format("holds a record of more than {} bytes", kValueBytesMax)};
  }
  bytes_left -= bytes;
  Value value{.kind = object.kind, .text = object.text};
  if (object.kind != Value::Kind::kMap) {
    for (const ObjectPointer& item : object.items) {
      value.items.push_back(Flatten(*item, depth + 1, bytes_left));
    }
    return value;
  }
  for (size_t i = 0; i + 1 < object.items.size(); i += 2) {
    value.keys.push_back(object.items[i]->text);
    value.items.push_back(Flatten(*object.items[i + 1], depth + 1, bytes_left));
  }
  return value;
}

Value Flatten(const Object& object) {
  size_t bytes_left = kValueBytesMax;
  return Flatten(object, 0, bytes_left);
}

}  // namespace

bool ForEachPickledItem(
    InputStream& stream, std::string_view list_key,
    const std::function<void(std::string_view key, Value value, uint64_t number)>& visit,
    Diagnostics& diagnostics) {
  Machine machine(stream);
  try {
    const ObjectPointer root = machine.Run();
    if (root->kind != Value::Kind::kMap) throw PickleError{"holds no dictionary"};
    for (size_t i = 0; i + 1 < root->items.size(); i += 2) {
      const Object& value = *root->items[i + 1];
      const std::string key = root->items[i]->text;
      if (key != list_key || value.kind != Value::Kind::kList) {
        visit(key, Flatten(value), 0);
        continue;
      }
      for (size_t item = 0; item < value.items.size(); ++item) {
        visit(key, Flatten(*value.items[item]), item + 1);
      }
    }
    return true;
  } catch (const PickleError& error) {
    diagnostics.Error({stream.name()}, fmt::format("byte {}", machine.opcode_at()),
                      "the pickle " + error.what);
    return false;
  }
}

}  // namespace railyard
