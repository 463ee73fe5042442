#include "train/idx_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/input_file.hpp"
#include "train/gzip.hpp"

namespace gossamer::train {
namespace {

using Bytes = std::span<const unsigned char>;

constexpr std::uint64_t kPrefixBytes = 1 << 16;  // more than any header, packed or not

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

/// The most bytes that packed content may unpack to: 32 times its size, above what images reach,
/// so that a small file cannot fill the memory.
std::size_t most_unpacked(std::size_t packed) { return (std::size_t{16} << 20) + 32 * packed; }

/// The content has as many bytes as its header claims.
Status check_size(const std::string& name, std::size_t claimed, std::size_t there) {
  if (there < claimed)
    return damaged(name, "cut short: its header claims {} bytes in all, and there are {}", claimed,
                   there);
  if (there > claimed)
    return damaged(name, "bytes after its end: its header claims {} bytes in all", claimed);
  return {};
}

/// What a file's first bytes claim, checked against the file's size before the rest is read.
struct Claim {
  std::vector<std::size_t> sizes;
  std::size_t total = 0;  ///< bytes of header and values
};
Result<Claim> claim_of(const std::string& name, Bytes prefix, std::size_t file_bytes,
                       int dimensions) {
  const std::size_t header_bytes = 4 + 4 * static_cast<std::size_t>(dimensions);
  std::vector<unsigned char> unpacked;
  Bytes header = prefix;
  if (is_gzip(prefix)) {
    GOSSAMER_TRY(unpacked, gunzip(name, prefix, header_bytes));
    header = unpacked;
  }
  Claim claim;
  GOSSAMER_TRY(claim.sizes, parse_header(name, header, dimensions));
  GOSSAMER_TRY(claim.total, total_bytes(name, claim.sizes));
  if (is_gzip(prefix)) {
    if (claim.total > most_unpacked(file_bytes))
      return damaged(name,
                     "its header claims {} bytes, and {} bytes of gzip may unpack to {}; unpack it "
                     "with gunzip if it is what you expect",
                     claim.total, file_bytes, most_unpacked(file_bytes));
    if (file_bytes > 2 * claim.total + (1 << 16))
      return damaged(name, "{} bytes of gzip, where its header claims {} unpacked bytes",
                     file_bytes, claim.total);
  } else {
    GOSSAMER_TRY_STATUS(check_size(name, claim.total, file_bytes));
  }
  return claim;
}

/// The array whose header has been checked, from its file's bytes.
Result<IdxArray> array_of(const std::string& name, Bytes bytes, Claim claim) {
  std::vector<unsigned char> unpacked;
  if (is_gzip(bytes)) {
    GOSSAMER_TRY(unpacked, gunzip(name, bytes, claim.total + 1));
    GOSSAMER_TRY_STATUS(check_size(name, claim.total, unpacked.size()));
    bytes = unpacked;
  }
  const auto header_bytes = static_cast<std::ptrdiff_t>(4 + 4 * claim.sizes.size());
  return IdxArray{std::move(claim.sizes), {bytes.begin() + header_bytes, bytes.end()}};
}

}  // namespace

Result<IdxArray> parse_idx(const std::string& name, Bytes bytes, int dimensions) {
  GOSSAMER_TRY(Claim claim, claim_of(name, bytes, bytes.size(), dimensions));
  return array_of(name, bytes, std::move(claim));
}

Result<IdxArray> read_idx(const std::filesystem::path& path, int dimensions) {
  GOSSAMER_TRY(const InputFile file, InputFile::open(path));
  const auto read = [&](std::size_t count) -> Result<std::vector<unsigned char>> {
    std::vector<unsigned char> bytes(count);
    GOSSAMER_TRY_STATUS(file.read_exactly(0, {reinterpret_cast<char*>(bytes.data()), count}));
    return bytes;
  };
  GOSSAMER_TRY(const auto prefix, read(std::min<std::uint64_t>(file.bytes(), kPrefixBytes)));
  GOSSAMER_TRY(Claim claim, claim_of(path.string(), prefix, file.bytes(), dimensions));
  GOSSAMER_TRY(const auto bytes, read(file.bytes()));
  return array_of(path.string(), bytes, std::move(claim));
}

}  // namespace gossamer::train
