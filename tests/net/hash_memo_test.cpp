// A remembered hash is the hash of the leased bytes, whatever was in the same memory before.
#include "net/wire/hash_memo.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "net/session/send_queue.hpp"
#include "tests/net/test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

struct Memo {
  explicit Memo(std::size_t size) : row(size, std::byte{1}) {}
  bool right(HashMemo::Moment lent) { return memo.hash(row, lent) == hash64(row); }
  /// Writes to the row, as its owner may while nothing is leased.
  void change() { row[0] = static_cast<std::byte>(static_cast<int>(row[0]) + 1); }

  HashMemo memo;
  std::vector<std::byte> row;
};

}  // namespace

TEST_CASE("a row that was rewritten between two leases is hashed again") {
  for (std::size_t size : {100, 1 << 20}) {
    Memo m(size);
    const auto first = m.memo.leased();
    CHECK(m.right(first));
    m.memo.release(m.row);
    m.change();
    const auto second = m.memo.leased();
    CHECK(m.right(second));
    m.memo.release(m.row);
    m.change();
    const auto third = m.memo.leased();
    m.memo.release(m.row);  // dropped without having been hashed
    m.change();
    CHECK(m.right(m.memo.leased()));
    CHECK(third > second);
  }
}

TEST_CASE("a row is hashed once for all leases that overlap") {
  Memo m(1 << 20);
  const auto first = m.memo.leased(), second = m.memo.leased();
  CHECK(m.right(first));
  m.memo.release(m.row);
  const std::uint64_t before = hash64(m.row);
  m.change();  // against the rules, to show that the row is not read again
  CHECK(m.memo.hash(m.row, second) == before);
  const auto later = m.memo.leased();
  CHECK(m.right(later));
}

TEST_CASE("rows that share an entry, or begin at the same address, are told apart") {
  std::vector<std::byte> rows(4096 * 1024);
  HashMemo memo;
  for (int pass = 0; pass < 2; ++pass) {
    const auto lent = memo.leased();
    for (std::size_t at = 0; at < rows.size(); at += 4096) {
      rows[at] = static_cast<std::byte>(at / 4096 * 31);
      const auto row = std::span<const std::byte>(rows).subspan(at, 4096);
      CHECK(memo.hash(row, lent) == hash64(row));
    }
    for (std::size_t at = 0; at < rows.size(); at += 4096)
      memo.release(std::span(rows).subspan(at, 4096));
  }
  const auto whole = memo.leased();
  CHECK(memo.hash(std::span(rows).first(8192), whole) == hash64(std::span(rows).first(8192)));
}

TEST_CASE("a text where an earlier payload lay has a checksum of its own") {
  // The allocator gives a text the memory of the one before it.
  HashMemo memo;
  LentChunks lent;
  SendQueue queue(memo, lent);
  std::string text(5000, 'a');
  const auto bytes = std::as_bytes(std::span(text));
  CHECK(memo.hash(bytes, memo.leased()) == hash64(bytes));
  memo.release(bytes);
  text.front() = 'b';
  const std::uint64_t right = hash64(std::as_bytes(std::span(text)));
  FrameHeader header = frame_header(0, 1, FiguresFrame{1, 2});
  header.payload_bytes = static_cast<std::uint32_t>(text.size());
  queue.push(header, {}, std::move(text));
  const auto areas = queue.gather();
  REQUIRE(areas.size() == 2);
  const std::span<const std::byte, kFrameHeaderBytes> first(
      static_cast<const std::byte*>(areas[0].data), kFrameHeaderBytes);
  const auto decoded = decode_header(first, {short_run("run-1"), 0, 1});
  REQUIRE(decoded.ok());
  CHECK(decoded->payload_hash == right);
  queue.written(kFrameHeaderBytes + header.payload_bytes);
}
