// Parameters as data. Every topology, algorithm, model, data set and configuration section declares
// its parameters once: name, type, default, range, unit, meaning. Configuration files, `--set`,
// `gossamer list` and the unknown-key check read that declaration, and the code receives a typed
// struct: no string keys past parsing.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace gossamer {

enum class ParameterType { boolean, integer, real, text, integer_list, text_list };

using ParameterValue = std::variant<bool, std::int64_t, double, std::string,
                                    std::vector<std::int64_t>, std::vector<std::string>>;

/// Values by name, as a configuration gives them. What is absent takes its default.
using ParameterValues = std::map<std::string, ParameterValue, std::less<>>;

/// What a declaration adds to a name and a field. Range bounds are inclusive unless said otherwise.
struct ParameterNotes {
  std::string help;
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool minimum_excluded = false;
  std::string unit = {};
  std::vector<std::string> choices = {};  ///< of a text; empty: any
  bool path = false;   ///< of a text: a file or folder; a relative one in a configuration file is
                       ///< relative to that file
  bool local = false;  ///< says where one machine finds a thing, not what the run is: peers need
                       ///< not agree on it
};

/// One parameter, whole.
struct ParameterSpec {
  std::string name;
  ParameterType type;
  ParameterValue default_value;
  ParameterNotes notes;
};

std::string to_string(const ParameterValue& value);
std::string to_string(ParameterType type);

/// Reads "0.5", "true", "[3, 4]", … as the type that `spec` wants, for `--set` and the command
/// line. The error says what was expected.
Result<ParameterValue> parse_value(const ParameterSpec& spec, const std::string& text);

/// The value as `spec` wants it (an integer becomes a real where a real is wanted), or why it
/// cannot be: wrong type, out of range, not one of the choices. The message does not repeat the
/// name.
Result<ParameterValue> check_value(const ParameterSpec& spec, const ParameterValue& value);

/// Checks every value against `specs`; an unknown name is an error that lists the names there are.
/// Messages begin with `owner` + "." + the name, as `topology.rows`.
Result<ParameterValues> check_values(const std::string& owner,
                                     const std::vector<ParameterSpec>& specs,
                                     const ParameterValues& values);

/// The parameters of `Options`, a plain struct whose initialisers are the defaults.
///   ParameterSet<TorusOptions>().add("rows", &TorusOptions::rows, {.help = "…", .minimum = 0})
/// Field types: bool, int, std::int64_t, std::uint64_t, float, double, std::string,
/// std::vector<int>, std::vector<std::string>.
template <class Options>
class ParameterSet {
 public:
  template <class Field>
  ParameterSet& add(std::string name, Field Options::* field, ParameterNotes notes) {
    return declare<Field>(
        std::move(name), [field](auto& options) -> auto& { return options.*field; },
        std::move(notes));
  }
  /// A field of a part of the options.
  template <class Part, class Field>
  ParameterSet& add(std::string name, Part Options::* part, Field Part::* field,
                    ParameterNotes notes) {
    return declare<Field>(
        std::move(name), [part, field](auto& options) -> auto& { return options.*part.*field; },
        std::move(notes));
  }

  const std::vector<ParameterSpec>& specs() const { return specs_; }

  /// The typed struct, defaults where `values` is silent; or the first thing wrong, named
  /// `owner.name`.
  Result<Options> read(const std::string& owner, const ParameterValues& values) const {
    GOSSAMER_TRY(const ParameterValues checked, check_values(owner, specs_, values));
    Options options;
    for (std::size_t i = 0; i < specs_.size(); ++i)
      if (auto found = checked.find(specs_[i].name); found != checked.end())
        assign_[i](options, found->second);
    return options;
  }

  /// The values of all parameters: read() gives the same options back.
  ParameterValues values(const Options& options) const {
    ParameterValues values;
    for (std::size_t i = 0; i < specs_.size(); ++i) values[specs_[i].name] = value_[i](options);
    return values;
  }

 private:
  /// `field(options)`: the parameter's field of the options.
  template <class Field, class Access>
  ParameterSet& declare(std::string name, Access field, ParameterNotes notes) {
    const Options defaults{};
    specs_.push_back(
        {std::move(name), type_of<Field>(), to_value(field(defaults)), std::move(notes)});
    assign_.push_back([field](Options& options, const ParameterValue& value) {
      from_value(value, field(options));
    });
    value_.push_back(
        [field](const Options& options) -> ParameterValue { return to_value(field(options)); });
    return *this;
  }

  template <class Field>
  static constexpr ParameterType type_of() {
    if constexpr (std::is_same_v<Field, bool>) return ParameterType::boolean;
    else if constexpr (std::is_integral_v<Field>) return ParameterType::integer;
    else if constexpr (std::is_floating_point_v<Field>) return ParameterType::real;
    else if constexpr (std::is_same_v<Field, std::string>) return ParameterType::text;
    else if constexpr (std::is_same_v<Field, std::vector<int>>) return ParameterType::integer_list;
    else {
      static_assert(std::is_same_v<Field, std::vector<std::string>>,
                    "no parameter type for this field");
      return ParameterType::text_list;
    }
  }

  template <class Field>
  static ParameterValue to_value(const Field& field) {
    if constexpr (std::is_same_v<Field, bool>) return field;
    else if constexpr (std::is_integral_v<Field>) return static_cast<std::int64_t>(field);
    else if constexpr (std::is_floating_point_v<Field>) return static_cast<double>(field);
    else if constexpr (std::is_same_v<Field, std::vector<int>>)
      return std::vector<std::int64_t>(field.begin(), field.end());
    else return field;
  }

  template <class Field>
  static void from_value(const ParameterValue& value, Field& field) {
    if constexpr (std::is_same_v<Field, bool>) field = std::get<bool>(value);
    else if constexpr (std::is_integral_v<Field>)
      field = static_cast<Field>(std::get<std::int64_t>(value));
    else if constexpr (std::is_floating_point_v<Field>)
      field = static_cast<Field>(std::get<double>(value));
    else if constexpr (std::is_same_v<Field, std::vector<int>>) {
      const auto& list = std::get<std::vector<std::int64_t>>(value);
      field.assign(list.begin(), list.end());
    } else field = std::get<Field>(value);
  }

  std::vector<ParameterSpec> specs_;
  std::vector<std::function<void(Options&, const ParameterValue&)>> assign_;
  std::vector<std::function<ParameterValue(const Options&)>> value_;
};

}  // namespace gossamer
