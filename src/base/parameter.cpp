#include "base/parameter.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/printable.hpp"
#include "base/suggestion.hpp"

namespace gossamer {
namespace {

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

template <class Number>
bool parse_number(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// The items of "[a, b]" or "a, b"; a comma in quotes is part of its item.
std::vector<std::string> split_list(std::string text) {
  if (!text.empty() && text.front() == '[' && text.back() == ']')
    text = text.substr(1, text.size() - 2);
  std::vector<std::string> items;
  std::size_t begin = 0;
  while (begin <= text.size() && !trimmed(text).empty()) {
    std::size_t end = begin;
    for (bool quoted = false; end < text.size() && (quoted || text[end] != ','); ++end)
      quoted = quoted != (text[end] == '"');
    std::string item = trimmed(std::string_view(text).substr(begin, end - begin));
    if (item.size() >= 2 && item.front() == '"' && item.back() == '"')
      item = item.substr(1, item.size() - 2);
    items.push_back(std::move(item));
    begin = end + 1;
  }
  return items;
}

Status check_range(const ParameterSpec& spec, double number) {
  const ParameterNotes& notes = spec.notes;
  const std::string unit = notes.unit.empty() ? "" : " " + notes.unit;
  if (!std::isfinite(number))
    return invalid_error(fmt::format("{} is not a finite number", number));
  if (notes.minimum_excluded ? number <= notes.minimum : number < notes.minimum)
    return invalid_error(fmt::format("{} is too small, give {} {}{}", number,
                                     notes.minimum_excluded ? "more than" : "at least",
                                     notes.minimum, unit));
  if (number > notes.maximum)
    return invalid_error(
        fmt::format("{} is too large, give at most {}{}", number, notes.maximum, unit));
  return {};
}

Status check_text(const std::string& text) {
  if (text.find('\0') != std::string::npos)
    return invalid_error("the text has a null character, at which the system would end it");
  if (!is_utf8(text))
    return invalid_error(fmt::format(
        "'{}' is not UTF-8, as the files of a run are; give another text, or rename the file or "
        "folder that it names, or the folder that it is in",
        text));
  return {};
}

Status check_integer(const ParameterSpec& spec, std::int64_t number) {
  // Compared as integers where the bound is one: a double cannot distinguish 2^53 from 2^53 + 1.
  if (std::abs(static_cast<double>(number)) < 0x1p53)
    return check_range(spec, static_cast<double>(number));
  if (std::isfinite(spec.notes.maximum) || (number < 0 && std::isfinite(spec.notes.minimum)))
    return check_range(spec, static_cast<double>(number));
  return {};
}

}  // namespace

std::string to_string(ParameterType type) {
  switch (type) {
    case ParameterType::boolean: return "true or false";
    case ParameterType::integer: return "an integer";
    case ParameterType::real: return "a number";
    case ParameterType::text: return "a text";
    case ParameterType::integer_list: return "a list of integers";
    case ParameterType::text_list: return "a list of texts";
  }
  return "?";
}

std::string to_string(const ParameterValue& value) {
  struct Print {
    std::string operator()(bool truth) const { return truth ? "true" : "false"; }
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(const std::vector<std::int64_t>& list) const {
      return fmt::format("[{}]", fmt::join(list, ", "));
    }
    std::string operator()(const std::vector<std::string>& list) const {
      return fmt::format("[{}]", fmt::join(list, ", "));
    }
  };
  return std::visit(Print{}, value);
}

Result<ParameterValue> parse_value(const ParameterSpec& spec, const std::string& raw) {
  const std::string text = trimmed(raw);
  const Error mismatch = invalid_error(fmt::format("'{}' is not {}", text, to_string(spec.type)));
  switch (spec.type) {
    case ParameterType::boolean:
      if (text == "true") return ParameterValue(true);
      if (text == "false") return ParameterValue(false);
      return mismatch;
    case ParameterType::integer: {
      std::int64_t number = 0;
      if (!parse_number(text, number)) return mismatch;
      return check_value(spec, number);
    }
    case ParameterType::real: {
      double number = 0;
      if (!parse_number(text, number)) return mismatch;
      return check_value(spec, number);
    }
    case ParameterType::text: return check_value(spec, text);
    case ParameterType::integer_list: {
      std::vector<std::int64_t> list;
      for (const std::string& item : split_list(text)) {
        std::int64_t number = 0;
        if (!parse_number(item, number)) return mismatch;
        list.push_back(number);
      }
      return check_value(spec, list);
    }
    case ParameterType::text_list: return check_value(spec, split_list(text));
  }
  return mismatch;
}

Result<ParameterValue> check_value(const ParameterSpec& spec, const ParameterValue& value) {
  const Error mismatch =
      invalid_error(fmt::format("'{}' is not {}", to_string(value), to_string(spec.type)));
  switch (spec.type) {
    case ParameterType::boolean:
      if (!std::holds_alternative<bool>(value)) return mismatch;
      return value;
    case ParameterType::integer:
      if (const auto* real = std::get_if<double>(&value);
          real && std::trunc(*real) == *real && std::abs(*real) < 1e15)
        return invalid_error(fmt::format("{0:.1f} is not an integer; write {0:.0f}", *real));
      if (!std::holds_alternative<std::int64_t>(value)) return mismatch;
      GOSSAMER_TRY_STATUS(check_integer(spec, std::get<std::int64_t>(value)));
      return value;
    case ParameterType::real: {
      if (const auto* whole = std::get_if<std::int64_t>(&value))
        return check_value(spec, static_cast<double>(*whole));
      if (!std::holds_alternative<double>(value)) return mismatch;
      GOSSAMER_TRY_STATUS(check_range(spec, std::get<double>(value)));
      return value;
    }
    case ParameterType::text: {
      if (!std::holds_alternative<std::string>(value)) return mismatch;
      GOSSAMER_TRY_STATUS(check_text(std::get<std::string>(value)));
      const auto& choices = spec.notes.choices;
      if (!choices.empty() &&
          std::find(choices.begin(), choices.end(), std::get<std::string>(value)) == choices.end())
        return invalid_error(fmt::format("'{}' is not one of {}", std::get<std::string>(value),
                                         fmt::join(choices, ", ")));
      return value;
    }
    case ParameterType::integer_list: {
      // An empty TOML or command-line list carries no element type.
      if (const auto* texts = std::get_if<std::vector<std::string>>(&value);
          texts && texts->empty())
        return ParameterValue(std::vector<std::int64_t>{});
      if (!std::holds_alternative<std::vector<std::int64_t>>(value)) return mismatch;
      for (std::int64_t number : std::get<std::vector<std::int64_t>>(value))
        GOSSAMER_TRY_STATUS(check_integer(spec, number));
      return value;
    }
    case ParameterType::text_list:
      if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value);
          numbers && numbers->empty())
        return ParameterValue(std::vector<std::string>{});
      if (!std::holds_alternative<std::vector<std::string>>(value)) return mismatch;
      for (const std::string& text : std::get<std::vector<std::string>>(value))
        GOSSAMER_TRY_STATUS(check_text(text));
      return value;
  }
  return mismatch;
}

Result<ParameterValues> check_values(const std::string& owner,
                                     const std::vector<ParameterSpec>& specs,
                                     const ParameterValues& values) {
  ParameterValues checked;
  for (const auto& [name, value] : values) {
    const auto spec = std::find_if(specs.begin(), specs.end(),
                                   [&](const ParameterSpec& s) { return s.name == name; });
    if (spec == specs.end()) {
      std::vector<std::string> names;
      for (const ParameterSpec& known : specs) names.push_back(known.name);
      return invalid_error(
          names.empty() ? fmt::format("{}.{}: unknown; it takes no parameters here", owner, name)
                        : fmt::format("{}.{}: unknown{}", owner, name, known_names(name, names)));
    }
    auto result = check_value(*spec, value);
    if (!result.ok())
      return invalid_error(fmt::format("{}.{}: {}", owner, name, result.error().message));
    checked.emplace(name, std::move(result).value());
  }
  return checked;
}

}  // namespace gossamer
