// TLS without sockets: records, changes of keys, ends, and bytes that were changed on the way.
#include "net/tls/engine.hpp"
#include "net/tls/error.hpp"
#include "tests/net/test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

std::vector<std::byte> some_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

/// Gives an engine bytes as if they had come over a socket, and what `take` makes of each part.
void feed(TlsEngine& to, std::span<const std::byte> bytes, const std::function<void()>& take) {
  while (!bytes.empty()) {
    const Area room = to.input_room();
    const std::size_t count = std::min(room.size, bytes.size());
    std::memcpy(room.data, bytes.data(), count);
    to.input_filled(count);
    bytes = bytes.subspan(count);
    take();
  }
}

/// Two ends with keys of their own.
struct Ends {
  explicit Ends(std::uint64_t records_per_key = TlsContext::kRecordsPerKey)
      : client_context(client_key, records_per_key), server_context(server_key, records_per_key) {}

  /// The handshake; the first error of either end.
  std::error_code shake_hands() {
    std::error_code failed = client.handshake();
    for (int turn = 0; turn < 4 && !failed; ++turn)
      for (const auto& [from, to] : {std::pair(&client, &server), std::pair(&server, &client)}) {
        feed(*to, from->take_output(), [&, end = to] {
          if (!end->established() && !failed) failed = end->handshake();
        });
      }
    return failed;
  }

  /// Sends bytes from the client; returns what the server decrypts, and how that ended.
  std::vector<std::byte> carry(std::span<const std::byte> bytes, Transfer& last) {
    std::vector<std::byte> arrived;
    std::vector<std::byte> into(100'000);
    while (!bytes.empty()) {
      const Area from{const_cast<std::byte*>(bytes.data()), bytes.size()};
      const Transfer sent = client.encrypt({&from, 1});
      REQUIRE_FALSE(sent.error);
      bytes = bytes.subspan(sent.bytes);
      feed(server, client.take_output(), [&] {
        do {
          const Area area{into.data(), into.size()};
          last = server.decrypt({&area, 1});
          arrived.insert(arrived.end(), into.begin(),
                         into.begin() + static_cast<std::ptrdiff_t>(last.bytes));
        } while (last.bytes > 0);
      });
    }
    return arrived;
  }

  KeyPair client_key = KeyPair::generate(), server_key = KeyPair::generate();
  TlsContext client_context, server_context;
  bool client_allowed = true, server_allowed = true;
  PublicKey seen_by_client, seen_by_server;
  TlsEngine client{client_context, TlsRole::client, [this](const PublicKey& key) {
                     seen_by_client = key;
                     return server_allowed;
                   }};
  TlsEngine server{server_context, TlsRole::server, [this](const PublicKey& key) {
                     seen_by_server = key;
                     return client_allowed;
                   }};
};

}  // namespace

TEST_CASE("tls: both ends learn the other's key before they are established") {
  Ends ends;
  CHECK_FALSE(ends.shake_hands());
  CHECK(ends.client.established());
  CHECK(ends.server.established());
  CHECK(ends.seen_by_client == ends.server_key.public_key());
  CHECK(ends.seen_by_server == ends.client_key.public_key());
}

TEST_CASE("tls: values of any size arrive, and keys change every few records") {
  for (const std::uint64_t records_per_key : {TlsContext::kRecordsPerKey, std::uint64_t{32}}) {
    Ends ends(records_per_key);
    REQUIRE_FALSE(ends.shake_hands());
    Transfer last;
    for (const std::size_t size : {1, 71, 2048, 16'384, 16'385, 600'000, 3'000'000}) {
      const auto bytes = some_bytes(size);
      CHECK(ends.carry(bytes, last) == bytes);
      CHECK_FALSE(last.error);
    }
  }
}

TEST_CASE("tls: small areas share a record") {
  Ends ends;
  REQUIRE_FALSE(ends.shake_hands());
  auto bytes = some_bytes(3200);
  std::vector<Area> areas;
  for (std::size_t at = 0; at < bytes.size(); at += 100) areas.push_back({bytes.data() + at, 100});
  CHECK(ends.client.encrypt(areas).bytes == bytes.size());
  CHECK(ends.client.take_output().size() == bytes.size() + 22);  // header, type and tag of a record
}

TEST_CASE("tls: the end of the stream is delivered after the values before it") {
  Ends ends;
  REQUIRE_FALSE(ends.shake_hands());
  auto bytes = some_bytes(100);
  const Area from{bytes.data(), bytes.size()};
  CHECK(ends.client.encrypt({&from, 1}).bytes == 100);
  ends.client.finish();
  std::vector<Transfer> transfers;
  std::vector<std::byte> into(1000);
  const Area area{into.data(), into.size()};
  feed(ends.server, ends.client.take_output(), [&] {
    while (ends.server.has_input()) {
      transfers.push_back(ends.server.decrypt({&area, 1}));
      if (transfers.back().end) break;
    }
  });
  REQUIRE(transfers.size() == 2);
  CHECK(transfers[0].bytes == 100);
  CHECK(transfers[1].end);
  // The other direction is still open.
  CHECK(ends.server.encrypt({&from, 1}).bytes == 100);
}

TEST_CASE(
    "tls: no changed byte of a record is delivered, not even with a frame's checksum mended") {
  // A frame's checksum lies within the record: without the keys nobody can write either.
  const auto bytes = some_bytes(120);
  const std::size_t record_bytes = bytes.size() + 22;
  for (std::size_t place = 0; place < record_bytes; ++place) {
    Ends ends;
    REQUIRE_FALSE(ends.shake_hands());
    const Area from{const_cast<std::byte*>(bytes.data()), bytes.size()};
    REQUIRE(ends.client.encrypt({&from, 1}).bytes == bytes.size());
    const auto record = ends.client.take_output();
    REQUIRE(record.size() == record_bytes);
    std::vector<std::byte> changed(record.begin(), record.end());
    changed[place] ^= std::byte{1};
    std::vector<std::byte> into(1000);
    const Area area{into.data(), into.size()};
    Transfer last;
    feed(ends.server, changed, [&] { last = ends.server.decrypt({&area, 1}); });
    CHECK(last.bytes == 0);
    CHECK_FALSE(last.end);
    // A longer length in the header waits for more bytes, which then fail.
    if (place != 3 && place != 4) CHECK(last.error);
  }
}

TEST_CASE("tls: records that are sent twice, left out or exchanged are refused") {
  const auto one = some_bytes(50), two = some_bytes(60);
  const auto record = [](TlsEngine& from, const std::vector<std::byte>& bytes) {
    const Area area{const_cast<std::byte*>(bytes.data()), bytes.size()};
    REQUIRE(from.encrypt({&area, 1}).bytes == bytes.size());
    const auto output = from.take_output();
    return std::vector<std::byte>(output.begin(), output.end());
  };
  for (const auto& order : {std::vector{0, 0}, std::vector{1}, std::vector{1, 0}}) {
    Ends ends;
    REQUIRE_FALSE(ends.shake_hands());
    const std::vector<std::byte> records[] = {record(ends.client, one), record(ends.client, two)};
    std::vector<std::byte> into(1000);
    const Area area{into.data(), into.size()};
    std::error_code error;
    for (const int which : order)
      feed(ends.server, records[which],
           [&] { error = error ? error : ends.server.decrypt({&area, 1}).error; });
    CHECK(error == TlsError::damaged);
  }
}

TEST_CASE("tls: a key that is not allowed ends the handshake at the end that refuses it") {
  SUBCASE("of the server") {
    Ends ends;
    ends.server_allowed = false;
    CHECK(ends.shake_hands() == TlsError::refused_key);
    CHECK_FALSE(ends.client.established());
    CHECK_FALSE(ends.server.established());
  }
  SUBCASE("of the client") {
    Ends ends;
    ends.client_allowed = false;
    CHECK(ends.shake_hands() == TlsError::refused_key);
    CHECK_FALSE(ends.server.established());
    // The client has proved the server's key, so it can trust the reason.
    std::vector<std::byte> into(10);
    const Area area{into.data(), into.size()};
    CHECK(ends.client.decrypt({&area, 1}).error == TlsError::key_was_refused);
  }
}

TEST_CASE("tls: a handshake takes a bounded number of bytes") {
  Ends ends;
  // The longest ClientHello that TLS allows, in records of which each is whole.
  std::vector<std::byte> flood;
  for (int record = 0; record < 8; ++record) {
    for (const int byte : {0x16, 3, 3, 0x40, 0}) flood.push_back(static_cast<std::byte>(byte));
    std::vector<std::byte> body(16384);
    if (record == 0) {
      body[0] = std::byte{1};  // ClientHello of 128,000 bytes
      body[1] = std::byte{1};
      body[2] = std::byte{0xF4};
    }
    flood.insert(flood.end(), body.begin(), body.end());
  }
  std::error_code error;
  std::size_t taken = 0;
  while (!error && taken < flood.size()) {
    const std::size_t count = std::min(TlsEngine::kMaxHandshakeBytes, flood.size() - taken);
    feed(ends.server, std::span(flood).subspan(taken, count),
         [&] { error = ends.server.handshake(); });
    taken += count;
  }
  CHECK(error == TlsError::too_long);
  CHECK(taken <= 2 * TlsEngine::kMaxHandshakeBytes);
}

TEST_CASE("tls: a handshake takes a bounded number of records") {
  // The longest ClientHello that TLS allows, one byte a record.
  std::vector<std::byte> flood;
  for (int record = 0; record < 1000; ++record)
    for (const int byte : {0x16, 3, 1, 0, 1, 1}) flood.push_back(static_cast<std::byte>(byte));
  std::error_code error;
  SUBCASE("of a client") {
    Ends ends;
    feed(ends.server, flood, [&] { error = ends.server.handshake(); });
    CHECK(error == TlsError::too_long);
  }
  SUBCASE("of a server") {
    Ends ends;
    CHECK_FALSE(ends.client.handshake());
    for (std::size_t at = 5; at < flood.size(); at += 6) flood[at] = std::byte{2};  // ServerHello
    feed(ends.client, flood, [&] { error = ends.client.handshake(); });
    CHECK(error);
  }
}

TEST_CASE("keys: a file is written once, and read by its owner alone") {
  const Folder folder;
  const std::string path = folder.path() + "/peer.key";
  const KeyPair pair = KeyPair::generate();
  REQUIRE(pair.save(path).ok());
  CHECK(KeyPair::load(path)->public_key() == pair.public_key());
  const Status again = KeyPair::generate().save(path);
  REQUIRE_FALSE(again.ok());
  CHECK(again.error().message.find("never overwritten") != std::string::npos);
  CHECK(KeyPair::load(path)->public_key() == pair.public_key());

  std::filesystem::permissions(path, std::filesystem::perms(0640));
  const auto open = KeyPair::load(path);
  REQUIRE_FALSE(open.ok());
  CHECK(open.error().kind == ErrorKind::data);
  CHECK(open.error().message.find("(mode 0640): run chmod 600") != std::string::npos);

  std::filesystem::permissions(path, std::filesystem::perms(0600));
  std::filesystem::resize_file(path, 60);
  CHECK(KeyPair::load(path).error().message.find("holds no Ed25519") != std::string::npos);
  CHECK(KeyPair::load(folder.path() + "/none").error().message.find("No such file") !=
        std::string::npos);
}

TEST_CASE("keys: the text of a public key is exact") {
  const PublicKey key = KeyPair::generate().public_key();
  const std::string text = to_string(key);
  CHECK(text.size() == 44);
  CHECK(*parse_public_key(text) == key);
  for (const std::string& bad :
       {std::string(), text.substr(1), text + "=", "!" + text.substr(1),
        text.substr(0, 42) + "==", std::string(44, '='), std::string(43, 'A') + "B"})
    CHECK_FALSE(parse_public_key(bad).ok());
}
