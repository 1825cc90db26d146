// SPDX-License-Identifier: GPL-2.0-only
// Reads an XML file as a stream of elements and texts with libxml2, without network or entities and
// within libxml2's limits on depth and size.
#pragma once

#include <libxml/xmlreader.h>
#include <memory>
#include <string>
#include <string_view>

namespace railyard {

// Is the type by which libxml2 hands out errors; from 2.12 on they are constant.
#if LIBXML_VERSION >= 21200
using XmlErrorPointer = const xmlError*;
#else
using XmlErrorPointer = xmlErrorPtr;
#endif

// Keeps the first error that libxml2 reports.
struct XmlError {
  std::string what;  // empty if there was none so far
  int line = 1;
  int column = 0;  // 0 if unknown

  // Is an xmlStructuredErrorFunc whose data is an XmlError.
  static void Keep(void* self, XmlErrorPointer error);
  // Prevents that libxml2 prints errors that it raises for no document, such as those of an
  // encoding. Must be called before a document is read.
  static void TakeOthers();
};

class XmlStream {
 public:
  enum class Kind { kStart, kEnd, kText, kEntity, kDocumentType, kOver };

  // Throws EnvironmentError if the file cannot be read.
  explicit XmlStream(const std::string& path);

  // Advances to the next start or end of an element (an empty element has both), text (CDATA
  // included), reference to an entity, or document type declaration. Returns kOver at the end and
  // where libxml2 cannot go on. libxml2 reads ahead, and goes on after some errors, so error() may
  // be set before this function returns kOver.
  Kind Next();
  const std::string& name() const { return name_; }
  // Returns the line of what was read last; at the end of an element, the line where it began.
  int line() const;
  // Returns the text that was read last. It is valid until Next() is called.
  std::string_view text() const;
  // Returns an attribute of the element whose start was read last; empty if it is absent or has no
  // value.
  std::string Attribute(const char* name) const;
  bool HasAttribute(const char* name) const;

  bool has_error() const { return !error_.what.empty(); }
  const XmlError& error() const { return error_; }

 private:
  std::unique_ptr<xmlTextReader, decltype(&xmlFreeTextReader)> reader_;
  std::string name_;
  bool is_end_due_ = false;  // of an empty element
  XmlError error_;
};

}  // namespace railyard
