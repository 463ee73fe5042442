#include "train/idx_file.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "train/data_file.hpp"
#include "train/gzip.hpp"

namespace gossamer::train {
namespace {

using Bytes = std::span<const unsigned char>;

template <class... Parts>
Error damaged(const std::string& name, fmt::format_string<Parts...> format, Parts&&... parts) {
  return {ErrorKind::data, name + ": " + fmt::format(format, std::forward<Parts>(parts)...)};
}

/// The header's sizes, after its four bytes have been checked. `header` has at least 4 + 4 ·
/// dimensions bytes.
Result<std::vector<std::size_t>> parse_header(const std::string& name, Bytes header,
                                              int dimensions) {
  if (header.size() < 4)
    return damaged(name, "only {} bytes, too short for an IDX header", header.size());
  if (header[0] != 0 || header[1] != 0)
    return damaged(name,
                   "neither IDX nor gzip: it begins with {:02x} {:02x}, and IDX begins with 00 00",
                   header[0], header[1]);
  if (header[2] != 0x08)
    return damaged(name, "IDX type 0x{:02x}, and only unsigned bytes (0x08) are read", header[2]);
  if (header[3] != dimensions)
    return damaged(name, "{} dimensions where {} are wanted", header[3], dimensions);
  if (header.size() < 4 + 4 * static_cast<std::size_t>(dimensions))
    return damaged(name, "cut short within its header: {} of {} bytes", header.size(),
                   4 + 4 * dimensions);
  std::vector<std::size_t> sizes;
  for (int d = 0; d < dimensions; ++d) {
    std::uint32_t size = 0;
    for (int byte = 0; byte < 4; ++byte) size = size << 8 | header[4 + 4 * d + byte];
    if (size == 0) return damaged(name, "dimension {} is 0: there is nothing in it", d);
    sizes.push_back(size);
  }
  return sizes;
}

/// Size of header and values together. Errors (data): more than 48 bits (a quarter of a million
/// gigabytes).
Result<std::size_t> total_bytes(const std::string& name, const std::vector<std::size_t>& sizes) {
  std::size_t values = 1;
  for (std::size_t size : sizes) {
    if (values > (std::size_t{1} << 48) / size)
      return damaged(name, "its header claims more values than any file holds");
    values *= size;
  }
  return 4 + 4 * sizes.size() + values;
}

}  // namespace

Result<IdxArray> parse_idx(const std::string& name, Bytes bytes, int dimensions) {
  const std::size_t header_bytes = 4 + 4 * static_cast<std::size_t>(dimensions);
  std::vector<unsigned char> unpacked;
  Bytes content = bytes;
  if (is_gzip(bytes)) {
    GOSSAMER_TRY(unpacked, gunzip(name, bytes, header_bytes));
    content = unpacked;
  }
  GOSSAMER_TRY(std::vector<std::size_t> sizes, parse_header(name, content, dimensions));
  GOSSAMER_TRY(const std::size_t expected, total_bytes(name, sizes));
  if (is_gzip(bytes)) {
    GOSSAMER_TRY(unpacked, gunzip(name, bytes, expected + 1));
    content = unpacked;
  }
  if (content.size() < expected)
    return damaged(name, "cut short: its header claims {} bytes in all, and there are {}", expected,
                   content.size());
  if (content.size() > expected)
    return damaged(name, "bytes after its end: its header claims {} bytes in all", expected);
  return IdxArray{std::move(sizes),
                  {content.begin() + static_cast<std::ptrdiff_t>(header_bytes), content.end()}};
}

Result<IdxArray> read_idx(const std::filesystem::path& file, int dimensions) {
  GOSSAMER_TRY(const std::vector<unsigned char> bytes, read_bytes(file));
  return parse_idx(file.string(), bytes, dimensions);
}

}  // namespace gossamer::train
