// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/xml_stream.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {
namespace {

void IgnoreXmlMessage(void* /*self*/, const char* /*format*/, ...) {}

const xmlChar* XmlText(const char* text) { return reinterpret_cast<const xmlChar*>(text); }

}  // namespace

XmlStream::XmlStream(const std::string& path) : reader_(nullptr, xmlFreeTextReader) {
  XmlError::TakeOthers();
  reader_.reset(xmlReaderForFile(path.c_str(), nullptr, XML_PARSE_NONET | XML_PARSE_BIG_LINES));
  if (reader_ == nullptr) throw EnvironmentError(fmt::format("cannot read {}", path));
  xmlTextReaderSetStructuredErrorHandler(reader_.get(), &XmlError::Keep, &error_);
}

void XmlError::TakeOthers() {
  xmlSetStructuredErrorFunc(nullptr, [](void* /*self*/, XmlErrorPointer /*error*/) {});
  // A few are not structured.
  xmlSetGenericErrorFunc(nullptr, &IgnoreXmlMessage);
}

void XmlError::Keep(void* self, XmlErrorPointer error) {
  auto& first = *static_cast<XmlError*>(self);
  if (!first.what.empty() || error->level < XML_ERR_ERROR) return;
  // libxml2 says "extra content" of a document that is cut short as well.
  first.what = error->code == XML_ERR_DOCUMENT_END || error->message == nullptr
                   ? "the document ends too early or goes on after its end"
                   : error->message;
  // A second line would show bytes that are no text.
  first.what.resize(std::min(first.what.find('\n'), first.what.size()));
  first.line = error->line;
  first.column = error->int2;
}

XmlStream::Kind XmlStream::Next() {
  if (is_end_due_) {
    is_end_due_ = false;
    return Kind::kEnd;
  }
  int status = xmlTextReaderRead(reader_.get());
  for (; status == 1; status = xmlTextReaderRead(reader_.get())) {
    const xmlChar* const raw = xmlTextReaderConstLocalName(reader_.get());
    name_ = raw == nullptr ? "" : reinterpret_cast<const char*>(raw);
    switch (xmlTextReaderNodeType(reader_.get())) {
      case XML_READER_TYPE_ELEMENT:
        is_end_due_ = xmlTextReaderIsEmptyElement(reader_.get()) == 1;
        return Kind::kStart;
      case XML_READER_TYPE_END_ELEMENT:
        return Kind::kEnd;
      case XML_READER_TYPE_TEXT:
      case XML_READER_TYPE_CDATA:
        return Kind::kText;
      case XML_READER_TYPE_ENTITY_REFERENCE:
        return Kind::kEntity;
      case XML_READER_TYPE_DOCUMENT_TYPE:
        return Kind::kDocumentType;
      default:
        break;
    }
  }
  if (status < 0 && error_.what.empty()) error_.what = "not readable as XML";
  return Kind::kOver;
}

int XmlStream::line() const {
  return static_cast<int>(xmlGetLineNo(xmlTextReaderCurrentNode(reader_.get())));
}

std::string_view XmlStream::text() const {
  const xmlChar* const value = xmlTextReaderConstValue(reader_.get());
  return value == nullptr ? "" : reinterpret_cast<const char*>(value);
}

std::string XmlStream::Attribute(const char* name) const {
  const std::unique_ptr<xmlChar, decltype(xmlFree)> value(
      xmlTextReaderGetAttribute(reader_.get(), XmlText(name)), xmlFree);
  return value == nullptr ? std::string() : reinterpret_cast<const char*>(value.get());
}

bool XmlStream::HasAttribute(const char* name) const {
  const std::unique_ptr<xmlChar, decltype(xmlFree)> value(
      xmlTextReaderGetAttribute(reader_.get(), XmlText(name)), xmlFree);
  return value != nullptr;
}

}  // namespace railyard
