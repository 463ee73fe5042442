#include "train/gzip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "base/check.hpp"

namespace gossamer::train {
namespace {

constexpr int kGzipOnly =
    16 + MAX_WBITS;  // zlib: the largest window, and a gzip header is required

/// Owns zlib's stream.
struct Stream {
  z_stream z{};
  Stream() {
    GOSSAMER_CHECK(inflateInit2(&z, kGzipOnly) == Z_OK, "zlib has no memory for its window");
  }
  ~Stream() { inflateEnd(&z); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

/// Passes input to zlib in pieces that fit its 32-bit counters.
void refill(z_stream& z, std::span<const unsigned char>& rest) {
  if (z.avail_in > 0 || rest.empty()) return;
  const std::size_t piece = std::min<std::size_t>(rest.size(), 1 << 20);
  z.next_in =
      const_cast<unsigned char*>(rest.data());  // zlib's interface predates const; it only reads
  z.avail_in = static_cast<uInt>(piece);
  rest = rest.subspan(piece);
}

/// Passes over zero bytes behind a member, which tapes and block devices append, and which gzip(1)
/// ignores.
void skip_padding(z_stream& z, std::span<const unsigned char>& rest) {
  for (refill(z, rest); z.avail_in > 0 && *z.next_in == 0; refill(z, rest))
    ++z.next_in, --z.avail_in;
}

}  // namespace

bool is_gzip(std::span<const unsigned char> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

Result<std::vector<unsigned char>> gunzip(const std::string& name,
                                          std::span<const unsigned char> bytes, std::size_t limit) {
  Stream stream;
  z_stream& z = stream.z;
  std::vector<unsigned char> content;
  std::array<unsigned char, 1 << 16> piece;
  std::span<const unsigned char> rest = bytes;
  bool member_begun = false;
  while (content.size() < limit) {
    refill(z, rest);
    if (z.avail_in == 0 && !member_begun && !bytes.empty())
      return content;  // the last member ended with the input
    z.next_out = piece.data();
    z.avail_out = static_cast<uInt>(std::min(piece.size(), limit - content.size()));
    const int outcome = inflate(&z, Z_NO_FLUSH);
    if (content.size() + piece.size() > content.capacity())  // doubling never exceeds the limit
      content.reserve(std::min(limit, 2 * (content.size() + piece.size())));
    content.insert(content.end(), piece.data(), z.next_out);
    if (outcome == Z_STREAM_END) {
      inflateReset(&z);
      member_begun = false;
      skip_padding(z, rest);
    } else if (outcome == Z_OK) {
      member_begun = true;
    } else if (outcome == Z_BUF_ERROR) {  // no input left
      return data_error(
          fmt::format("{}: the gzip data are cut short: {} bytes unpack to {} and then end before "
                      "their end mark",
                      name, bytes.size(), content.size()));
    } else {
      return data_error(fmt::format("{}: the gzip data are damaged after {} unpacked bytes: {}",
                                    name, content.size(),
                                    z.msg ? z.msg : "no reason given by zlib"));
    }
  }
  return content;
}

}  // namespace gossamer::train
