// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/graphviz_loader.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/checked_reading.h"
#include "simulator/diagnostics/names.h"
#include "topologies/formats/topology_file_loader.h"
#include "topologies/formats/topology_message_loader.h"
#include "topologies/graph/spec_check.h"

namespace railyard {
namespace {

using Part = TopologyMessage::Part;

constexpr size_t kGraphvizTextBytesMax = 4'096;  // of one word
constexpr int kGraphvizFindingsMax = 100;

struct Token {
  // A word, quoted or not, or what else there is: one of {}[];,=: or "--"; "" at the end.
  std::string text;
  bool is_word = false;
  bool is_quoted = false;
  int line = 0;
  int column = 0;
  std::string wrong;  // what cannot be read, if anything
};

class Tokens {
 public:
  explicit Tokens(const std::string& path) : path_(path), file_(OpenToRead(path)) {}

  Token Next() {
    Token token;
    if (!SkipSpace(token)) return token;
    token.line = line_;
    token.column = column_ + 1;
    const int first = Take();
    if (first == '"') {
      TakeQuoted(token);
    } else if (IsWordCharacter(first) || (first == '-' && IsNumberNext())) {
      token.is_word = true;
      token.text = static_cast<char>(first);
      while (IsWordCharacter(Peek()) && token.text.size() <= kGraphvizTextBytesMax) {
        token.text += static_cast<char>(Take());
      }
    } else if (first == '-' && (Peek() == '-' || Peek() == '>')) {
      Take();
      token.text = "--";
    } else if (std::string_view("{}[];,=:").find(static_cast<char>(first)) !=
               std::string_view::npos) {
      token.text = static_cast<char>(first);
    } else {
      token.wrong = fmt::format("{} (expected DOT)",
                                first == '<' ? "a text in HTML" : "a character of no meaning");
    }
    if (token.text.size() > kGraphvizTextBytesMax) {
      token.wrong = fmt::format("a text of more than {} bytes", kGraphvizTextBytesMax);
    }
    return token;
  }

 private:
  static constexpr int kEnd = std::char_traits<char>::eof();

  static bool IsWordCharacter(int c) {
    return c != kEnd && (std::isalnum(c) != 0 || c == '_' || c == '.' || c >= 0x80);
  }
  int Peek() {
    const int c = file_.peek();
    if (c == kEnd) CheckReading(file_, path_);
    return c;
  }
  bool IsNumberNext() { return std::isdigit(Peek()) != 0 || Peek() == '.'; }
  int Take() {
    const int c = file_.get();
    if (c == '\n') {
      ++line_;
      column_ = 0;
    } else {
      ++column_;
    }
    return c;
  }

  // False at the end, or at what cannot be skipped.
  bool SkipSpace(Token& token) {
    while (true) {
      const int c = Peek();
      token.line = line_;
      token.column = column_ + 1;
      if (c == kEnd) return false;
      if (std::isspace(c) != 0) {
        Take();
      } else if (c == '#') {
        SkipLine();
      } else if (c == '/') {
        Take();
        if (Peek() == '/') {
          SkipLine();
        } else if (Peek() != '*' || !SkipComment()) {
          token.wrong = "a comment without end, or a single /";
          return false;
        }
      } else {
        return true;
      }
    }
  }
  void SkipLine() {
    while (Peek() != kEnd && Take() != '\n') {
    }
  }
  bool SkipComment() {
    Take();
    for (int before = 0; Peek() != kEnd;) {
      const int c = Take();
      if (before == '*' && c == '/') return true;
      before = c;
    }
    return false;
  }

  void TakeQuoted(Token& token) {
    token.is_word = true;
    token.is_quoted = true;
    while (token.text.size() <= kGraphvizTextBytesMax) {
      if (Peek() == kEnd) {
        token.wrong = "a text without its closing quote";
        return;
      }
      const int c = Take();
      if (c == '"') return;
      if (c == '\\' && Peek() == '"') {
        token.text += static_cast<char>(Take());
      } else {
        token.text += static_cast<char>(c);
      }
    }
  }

  std::string path_;
  std::ifstream file_;
  int line_ = 1;
  int column_ = 0;
};

class GraphvizReader {
 public:
  GraphvizReader(const std::string& path, Diagnostics& diagnostics)
      : path_(path), diagnostics_(diagnostics), tokens_(path), message_(path) {}

  std::optional<FabricGraph> Read() {
    const int errors_before = diagnostics_.error_count();
    Advance();
    if (ReadHead()) {
      while (!is_over_ && token_.text != "}") ReadStatement();
      if (!is_over_) Advance();
      if (!is_over_ && !IsEnd()) Fail("a second graph, or text behind the first");
    }
    if (diagnostics_.error_count() > errors_before) return std::nullopt;
    for (const Edge& edge : edges_) AddEdge(edge);
    if (diagnostics_.error_count() > errors_before) return std::nullopt;
    return message_.Load(diagnostics_);
  }

 private:
  using Attributes = std::vector<std::pair<Token, Token>>;
  struct Edge {
    Token from;
    Token to;
    Attributes attributes;
  };

  void Error(const Token& at, std::string what) {
    diagnostics_.Error({.file = path_, .line = at.line, .column = at.column}, "", std::move(what));
    if (++errors_ >= kGraphvizFindingsMax) is_over_ = true;
  }
  // Ends the reading after this error.
  void Fail(std::string what) {
    if (!is_over_) Error(token_, std::move(what));
    is_over_ = true;
  }
  bool IsEnd() const { return !token_.is_word && token_.text.empty(); }
  bool Is(const char* text) const { return !token_.is_word && token_.text == text; }
  bool IsKeyword(const char* word) const {
    return token_.is_word && !token_.is_quoted && token_.text == word;
  }
  void Advance() {
    token_ = tokens_.Next();
    if (!token_.wrong.empty()) Fail(token_.wrong);
  }
  bool Expect(const char* text) {
    if (is_over_) return false;
    if (!Is(text)) {
      Fail(IsEnd() ? fmt::format("the file ends (expected {})", Quote(text))
                   : fmt::format("{} (expected {})", Quote(token_.text), Quote(text)));
      return false;
    }
    Advance();
    return !is_over_;
  }

  bool ReadHead() {
    if (IsKeyword("strict")) Advance();
    if (!IsKeyword("graph") && !IsKeyword("digraph")) {
      Fail("there is no graph (expected \"graph\" or \"digraph\")");
      return false;
    }
    Advance();
    if (token_.is_word) Advance();
    return Expect("{");
  }

  void ReadStatement() {
    if (Is(";")) {
      Advance();
    } else if (IsEnd()) {
      Fail("the file ends (expected \"}\")");
    } else if (IsKeyword("subgraph") || Is("{")) {
      Fail("a subgraph (expected nodes and edges only)");
    } else if (IsKeyword("node") || IsKeyword("edge")) {
      Fail(fmt::format("defaults of {}s (expected every attribute where it belongs)", token_.text));
    } else if (IsKeyword("graph")) {
      Advance();
      SetFabric(ReadAttributes());
    } else if (token_.is_word) {
      ReadNamed();
    } else {
      Fail(fmt::format("{} (expected a node, an edge or an attribute)", Quote(token_.text)));
    }
  }

  // A node, an edge, or an attribute of the graph.
  void ReadNamed() {
    const Token first = token_;
    Advance();
    if (Is("=")) {
      Advance();
      SetFabric({{first, token_}});
      if (!token_.is_word) Fail("an attribute without a value");
      if (!is_over_) Advance();
      return;
    }
    if (Is(":")) Fail("a port (expected nodes and edges only)");
    std::vector<Token> ends = {first};
    while (!is_over_ && Is("--")) {
      Advance();
      if (!token_.is_word) {
        Fail("an edge without its end");
        return;
      }
      ends.push_back(token_);
      Advance();
      if (Is(":")) Fail("a port (expected nodes and edges only)");
    }
    const Attributes attributes = ReadAttributes();
    if (is_over_) return;
    if (ends.size() == 1) {
      AddNode(first, attributes);
      return;
    }
    for (size_t i = 1; i < ends.size(); ++i) {
      if (edges_.size() >= kMaxFabricCables) {
        Fail(fmt::format("more than {} edges", kMaxFabricCables));
        return;
      }
      edges_.push_back({.from = ends[i - 1], .to = ends[i], .attributes = attributes});
    }
  }

  Attributes ReadAttributes() {
    Attributes attributes;
    while (!is_over_ && Is("[")) {
      Advance();
      while (!is_over_ && !Is("]")) {
        if (Is(",") || Is(";")) {
          Advance();
          continue;
        }
        const Token name = token_;
        if (!name.is_word) {
          Fail("a list of attributes without its ]");
          break;
        }
        Advance();
        if (!Expect("=")) break;
        if (!token_.is_word) {
          Fail(fmt::format("{} has no value", name.text));
          break;
        }
        attributes.emplace_back(name, token_);
        Advance();
      }
      if (!is_over_) Advance();
    }
    return attributes;
  }

  void Set(Part part, const Attributes& attributes) {
    for (const auto& [name, value] : attributes) {
      if (!message_.Knows(part, name.text) || value.text.empty()) continue;
      if (message_.Has(part, name.text)) {
        Error(name, fmt::format("{} is given twice", name.text));
      } else if (std::string what = message_.Set(part, name.text, value.text); !what.empty()) {
        Error(value, std::move(what));
      }
    }
  }

  void SetFabric(const Attributes& attributes) { Set(Part::kFabric, attributes); }

  void AddNode(const Token& id, const Attributes& attributes) {
    if (message_.device_count() >= kMaxTopologyDevices) {
      Fail(fmt::format("more than {} nodes", kMaxTopologyDevices));
      return;
    }
    if (const auto [other, is_new] = line_of_node_.emplace(id.text, id.line); !is_new) {
      Error(id,
            fmt::format("there is already a node {}, at line {}", Quote(id.text), other->second));
      return;
    }
    message_.StartDevice(id.line);
    Set(Part::kDevice, attributes);
    if (!message_.Has(Part::kDevice, "name")) message_.Set(Part::kDevice, "name", id.text);
    name_of_id_.emplace(id.text, message_.DeviceName());
  }

  // Nodes may stand behind their edges.
  void AddEdge(const Edge& edge) {
    message_.StartLink(edge.from.line);
    for (const auto& [end, field] : {std::pair(&edge.from, "from"), {&edge.to, "to"}}) {
      const auto name = name_of_id_.find(end->text);
      if (name == name_of_id_.end()) {
        Error(*end, fmt::format("{} is no node of this graph", Quote(end->text)));
      } else {
        message_.Set(Part::kLink, field, name->second);
      }
    }
    Set(Part::kLink, edge.attributes);
  }

  const std::string& path_;
  Diagnostics& diagnostics_;
  Tokens tokens_;
  TopologyMessage message_;
  Token token_;
  int errors_ = 0;
  bool is_over_ = false;
  std::unordered_map<std::string, int> line_of_node_;
  std::unordered_map<std::string, std::string> name_of_id_;
  std::vector<Edge> edges_;
};

}  // namespace

std::optional<FabricGraph> LoadGraphviz(const std::string& path, Diagnostics& diagnostics) {
  return GraphvizReader(path, diagnostics).Read();
}

}  // namespace railyard
