// Text that may come from a file of somebody else, made safe to print on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace gossamer {

/// `text` in UTF-8 without anything that a terminal obeys: control characters other than line ends
/// (ESC among them), and bytes that are no UTF-8, are replaced by '?'.
std::string printable(std::string_view text);

/// Whether all of `text` is UTF-8.
bool is_utf8(std::string_view text);

/// The first 60 bytes of a text, and whole characters of UTF-8, with "…" if there are more.
std::string excerpt(std::string_view text);

/// A message of at most 4 KiB: of a longer one, which quotes a file, the first 3 KiB and the last
/// 500 bytes, with "…" for the rest.
std::string abridged(std::string_view message);

/// `text` as it stands between the tags of XML or SVG: with & and < as entities.
std::string xml_text(std::string_view text);

}  // namespace gossamer
