#include "train/csv_file.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/input_file.hpp"
#include "train/gzip.hpp"

namespace gossamer::train {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// The characters that may stand around a field.
const char* blanks(char separator) { return separator == '\t' ? " \r" : " \t\r"; }

/// The field that begins at line[at]; `at` moves to the separator after it or to the line's end.
/// Errors (data): text after a closing quote, or a quote that is not closed.
Result<std::string> read_field(std::string_view line, char separator, std::size_t& at) {
  const std::size_t begin = line.find_first_not_of(blanks(separator), at);
  if (begin == std::string_view::npos || line[begin] != '"') {
    const std::size_t end = std::min(line.find(separator, at), line.size());
    const std::string_view field = trimmed(line.substr(at, end - at));
    at = end;
    return std::string(field);
  }
  std::string field;
  for (at = begin + 1; at < line.size(); ++at) {
    if (line[at] != '"') {
      field += line[at];
    } else if (at + 1 < line.size() && line[at + 1] == '"') {
      field += line[at++];
    } else {
      const std::size_t end = std::min(line.find(separator, at), line.size());
      const bool clean = trimmed(line.substr(at + 1, end - at - 1)).empty();
      at = end;
      if (clean) return field;
      return data_error("text behind a closed quote");
    }
  }
  return data_error("a quote that is not closed on its line");
}

/// Whether a number that no double holds is too small for one, and not too large: std::from_chars
/// gives both the same error.
bool is_too_small(std::string_view number) {
  const std::size_t e = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(0, e);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const auto magnitude = static_cast<std::int64_t>(point) -
                         static_cast<std::int64_t>(digits.find_first_of("123456789"));
  if (e == number.size()) return magnitude < 0;
  std::string_view text = number.substr(e + 1);
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int32_t exponent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  return error == std::errc() ? magnitude + exponent < 0 : text.starts_with('-');
}

/// Files that are taken for text by mistake. Errors (data): they are gzip or UTF-16.
Status check_text(const InputFile& file) {
  std::array<char, 2> begin{};
  GOSSAMER_TRY(const std::size_t count, file.read(0, begin));
  const std::string_view bytes(begin.data(), count);
  const std::string name = file.path().string();
  if (is_gzip({reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()}))
    return data_error(fmt::format("{}: it is gzip, and tables are text: unpack it (gunzip)", name));
  if (bytes == "\xFF\xFE" || bytes == "\xFE\xFF")
    return data_error(fmt::format("{}: it is UTF-16: save it as UTF-8", name));
  return {};
}

}  // namespace

Status read_csv(const std::filesystem::path& path, char separator,
                const std::function<Status(const CsvRow&)>& take) {
  GOSSAMER_TRY(InputFile file, InputFile::open(path));
  GOSSAMER_TRY_STATUS(check_text(file));
  LineReader lines(std::move(file));
  CsvRow row;
  while (true) {
    GOSSAMER_TRY(const std::optional<std::string_view> next, lines.next());
    if (!next) return {};
    std::string_view line = *next;
    if (row.line++ == 0 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    if (line.find('\0') != std::string_view::npos)
      return data_error(
          fmt::format("{}:{}: a byte 0, which no text has; if it is UTF-16, save it as UTF-8",
                      path.string(), row.line));
    if (line.find_first_not_of(blanks(separator)) == std::string_view::npos) continue;
    row.fields.clear();
    for (std::size_t at = 0;; ++at) {
      if (row.fields.size() == kMaxCsvFields)
        return data_error(
            fmt::format("{}:{}: more than {} fields", path.string(), row.line, kMaxCsvFields));
      auto field = read_field(line, separator, at);
      if (!field.ok())
        return data_error(fmt::format("{}:{}: field {}: {}", path.string(), row.line,
                                      row.fields.size() + 1, field.error().message));
      row.fields.push_back(std::move(field).value());
      if (at == line.size()) break;
    }
    GOSSAMER_TRY_STATUS(take(row));
  }
}

std::optional<double> finite_number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-"))
    text.remove_prefix(1);  // from_chars does not accept it
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range && is_too_small(text))
    return text.starts_with('-') ? -0.0 : 0.0;
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  return number;
}

}  // namespace gossamer::train
