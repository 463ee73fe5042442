// Fuzz targets: functions that take any bytes. A target fails when the program crashes, when a
// sanitizer objects, when the input takes too long, or when a property does not hold (require).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gossamer::fuzz {

using Bytes = std::vector<std::byte>;

struct Target {
  std::string name;
  void (*run)(std::span<const std::byte> input);
  /// Inputs to begin with: valid ones, which reach further than random bytes.
  std::vector<Bytes> (*seeds)();
};

std::vector<Target> data_targets();      ///< files of data sets
std::vector<Target> file_targets();      ///< other files that a user or another program brings
std::vector<Target> wire_targets();      ///< bytes of a connection
std::vector<Target> exchange_targets();  ///< messages of a peer that holds a key
std::vector<Target> all_targets();

/// Ends the program, with the property in words, unless it holds.
void require(bool holds, const char* property);

Bytes bytes_of(std::string_view text);

/// Takes the input apart: numbers from its beginning, zeros when it is used up.
class Source {
 public:
  explicit Source(std::span<const std::byte> input) : input_(input) {}
  bool empty() const { return input_.empty(); }
  std::uint64_t number(int bytes);
  /// 0 to limit − 1.
  std::uint64_t below(std::uint64_t limit) { return limit == 0 ? 0 : number(8) % limit; }
  std::span<const std::byte> take(std::size_t count);
  std::span<const std::byte> rest() { return take(input_.size()); }

 private:
  std::span<const std::byte> input_;
};

}  // namespace gossamer::fuzz
