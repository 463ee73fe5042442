// Faults as values. A fault that a user, a file or a peer can cause is an Error whose message names
// the thing and says what to do; bugs of our own are checks (base/check.hpp).
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace gossamer {

/// The kind of a fault, as callers and scripts distinguish it. The program's exit code is the
/// kind's value.
enum class ErrorKind : int {
  internal = 1,       ///< a bug, or an unexpected exception
  invalid = 2,        ///< a flag, a configuration or a combination that cannot run
  data = 3,           ///< a file that is missing, damaged or cannot be written
  join_timeout = 4,   ///< peers were missing when net.join_timeout ended
  lost_peer = 5,      ///< a peer was lost in the middle of a run
  rejected = 6,       ///< another peer refused this one (other run, version, id taken, …)
  network = 7,        ///< this machine's own sockets: port in use, address not available
  diverged = 8,       ///< parameters or losses are no longer finite
  interrupted = 130,  ///< the user asked for the end (SIGINT, SIGTERM)
};

struct Error {
  ErrorKind kind = ErrorKind::internal;
  std::string message;
};

/// Errors of the two kinds that most checks report: what the user asked for is not possible, and
/// what a file or a log holds is not valid.
inline Error invalid_error(std::string message) { return {ErrorKind::invalid, std::move(message)}; }
inline Error data_error(std::string message) { return {ErrorKind::data, std::move(message)}; }

/// Either a value or the reason why there is none. Immutable once made; copies and moves as its
/// content does.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : content_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Error error) : content_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return content_.index() == 0; }
  explicit operator bool() const { return ok(); }

  /// The value. Calling it on a failed result is a bug (std::bad_variant_access).
  T& value() & { return std::get<0>(content_); }
  const T& value() const& { return std::get<0>(content_); }
  T&& value() && { return std::get<0>(std::move(content_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return std::get<1>(content_); }

 private:
  std::variant<T, Error> content_;
};

/// Success, or the reason of a failure.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)), failed_(true) {}  // NOLINT: implicit on purpose

  bool ok() const { return !failed_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return error_; }

 private:
  Error error_;
  bool failed_ = false;
};

}  // namespace gossamer

#define GOSSAMER_CONCAT_INNER(a, b) a##b
#define GOSSAMER_CONCAT(a, b) GOSSAMER_CONCAT_INNER(a, b)

/// GOSSAMER_TRY(auto x, f()): x is f()'s value, or the enclosing function returns f()'s error. Not
/// for use in coroutines.
#define GOSSAMER_TRY(declaration, expression)                                                \
  auto GOSSAMER_CONCAT(try_, __LINE__) = (expression);                                       \
  if (!GOSSAMER_CONCAT(try_, __LINE__).ok()) return GOSSAMER_CONCAT(try_, __LINE__).error(); \
  declaration = std::move(GOSSAMER_CONCAT(try_, __LINE__)).value()

/// GOSSAMER_TRY_STATUS(f()): the enclosing function returns f()'s error if it has one.
#define GOSSAMER_TRY_STATUS(expression) \
  if (auto try_status = (expression); !try_status.ok()) return try_status.error()
