// Text of others that reaches a terminal.
#include "base/printable.hpp"

#include <doctest/doctest.h>

using gossamer::abridged;
using gossamer::excerpt;
using gossamer::printable;

TEST_CASE("text of any language, and line ends, stay as they are") {
  for (const char* text : {"", "peer 3: ε ≤ 2\nsecond line", "日本語", "naïve – “quotes”", "🙂"})
    CHECK(printable(text) == text);
}

TEST_CASE("what a terminal would obey is replaced") {
  CHECK(printable("a\x1b[2Jb\x07") == "a?[2Jb?");
  CHECK(printable("\r\t\x7f") == "???");
  CHECK(printable(std::string_view("\0x", 2)) == "?x");
  CHECK(printable("\xc2\x9b"
                  "31m") == "?31m");                      // CSI as one character
  CHECK(printable("\xe2\x80\xaegpj.exe") == "?gpj.exe");  // right-to-left override
}

TEST_CASE("bytes that are no UTF-8 are replaced one by one") {
  CHECK(printable("\x9b") == "?");
  CHECK(printable("\xc0\xaf") == "??");  // '/' in too many bytes
  CHECK(printable("\xe0\x80\xaf") == "???");
  CHECK(printable("\xed\xa0\x80") == "???");       // half of a surrogate pair
  CHECK(printable("\xf4\x90\x80\x80") == "????");  // above the last character
  CHECK(printable("a\xe2\x82") == "a??");          // cut short
  CHECK(printable("\xff\xfe") == "??");
}

TEST_CASE("a long message keeps its beginning and its end, in whole characters") {
  const std::string most(4096, 'a');
  CHECK(abridged(most) == most);
  CHECK(abridged("b" + most + "c") ==
        "b" + std::string(3071, 'a') + "…" + std::string(499, 'a') + "c");
  std::string wide = "x";
  for (int i = 0; i < 3000; ++i) wide += "é";
  const std::string cut = abridged(wide);
  CHECK(cut.size() < 3600);
  CHECK(printable(cut) == cut);
  CHECK(abridged(std::string(5000, '\x80')) == "…");
}

TEST_CASE("an excerpt ends with a whole character") {
  const std::string text(58, 'a');
  CHECK(excerpt(text + "bc") == text + "bc");
  CHECK(excerpt(text + "bcd") == text + "bc…");
  CHECK(excerpt(text + "béé") == text + "b…");
  CHECK(excerpt(std::string(100, '\x80')) == "…");
}
