// The address book as a state machine: records, suspicion and refutation, the claiming of ids, and
// its message.
#include "net/discovery/address_book.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "net/tls/keys.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace std::chrono_literals;

namespace {

const std::string kNetwork = book_network("run-1", 4);

AddressBookOptions options_of(std::uint64_t process, int nodes = 4) {
  AddressBookOptions options;
  options.nodes = nodes;
  options.network = book_network("run-1", nodes);
  options.process = process;
  options.suspicion_time = 5s;
  return options;
}

Address address_of(std::uint64_t process) {
  return {"10.0.0.1", static_cast<std::uint16_t>(7000 + process % 50000)};
}

AddressBook host(std::uint64_t process, std::vector<int> peers, int nodes = 4) {
  AddressBook book(options_of(process, nodes));
  book.host(peers);
  book.listen_at(address_of(process));
  return book;
}

AddressBook claimer(std::uint64_t process, int nodes) {
  AddressBook book(options_of(process, nodes));
  book.listen_at(address_of(process));
  return book;
}

/// Both ends send what they knew before.
void exchange(AddressBook& a, AddressBook& b, gossip::Time now = 0s) {
  const auto of_a = a.records();
  REQUIRE(b.merge(of_a, now).ok());
  REQUIRE(a.merge(b.records(), now).ok());
}

AddressRecord record_of(int peer, std::uint64_t process, std::uint64_t version) {
  AddressRecord record;
  record.peer = peer;
  record.process = process;
  record.version = version;
  record.address = address_of(process);
  return record;
}

/// The bytes of a message after its header.
std::vector<std::byte> payload(const std::vector<AddressRecord>& records) {
  const auto message = encode_book(kNetwork, records);
  return {message.begin() + kBookHeaderBytes, message.end()};
}

}  // namespace

TEST_CASE("books that are merged along a chain become alike") {
  std::vector<AddressBook> books;
  for (int peer = 0; peer < 4; ++peer)
    books.push_back(host(10 + static_cast<std::uint64_t>(peer), {peer}));
  for (int pass = 0; pass < 3; ++pass)
    for (std::size_t i = 0; i + 1 < books.size(); ++i) exchange(books[i], books[i + 1]);
  for (const auto& book : books) {
    CHECK(book.settled());
    CHECK(book.records() == books[0].records());
    CHECK(book.find(2)->address == address_of(12));
  }
  CHECK_FALSE(books[0].merge(books[1].records(), 0s).value());
}

TEST_CASE(
    "a process that is restarted elsewhere replaces its record, though its versions begin anew") {
  AddressBook old = host(50, {1}), other = host(20, {0});
  for (int i = 0; i < 6; ++i) {  // refuted suspicions raise the version
    exchange(old, other);
    other.suspect(50, 0s);
  }
  AddressBook again = host(9, {1});
  exchange(again, other);
  exchange(again, other);
  CHECK(other.find(1)->address == address_of(9));
  CHECK(again.rivals().empty());
}

TEST_CASE("two processes of one id see each other, and one that was restarted is no rival") {
  AddressBook a = host(30, {1}), b = host(31, {1});
  exchange(a, b);
  CHECK(a.rivals().empty());
  for (int i = 0; i < 3; ++i) exchange(a, b);
  CHECK((a.rivals().size() + b.rivals().size()) > 0);
}

TEST_CASE("a suspected process refutes, and one that does not is lost after the suspicion time") {
  AddressBook a = host(10, {0}), b = host(11, {1}), c = host(12, {2});
  exchange(a, b);
  exchange(b, c);
  exchange(a, b);
  a.suspect(11, 1s);
  CHECK(a.find(1)->standing == Standing::suspected);
  exchange(a, c, 2s);
  CHECK(c.find(1)->standing == Standing::suspected);
  SUBCASE("it refutes the suspicion wherever it hears of it") {
    exchange(c, b, 3s);
    CHECK(b.find(1)->standing == Standing::alive);
    exchange(c, a, 3s);
    CHECK(a.find(1)->standing == Standing::alive);
    a.tick(100s);
    CHECK(a.find(1)->standing == Standing::alive);
  }
  SUBCASE("it is lost, and found again when it comes back") {
    a.tick(5900ms);
    CHECK(a.find(1)->standing == Standing::suspected);
    a.tick(6s);
    CHECK(a.find(1)->standing == Standing::lost);
    CHECK(a.missing() == std::vector{1, 3});
    exchange(a, c, 6s);
    CHECK(c.find(1)->standing == Standing::lost);
    exchange(c, b, 7s);
    exchange(c, a, 7s);
    CHECK(a.find(1)->standing == Standing::alive);
  }
}

TEST_CASE("every process gets an id of its own, in whatever order books are exchanged") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const int n = 2 + static_cast<int>(random() % 9);
    std::vector<AddressBook> books;
    for (int i = 0; i < n; ++i) books.push_back(claimer(1 + random(), n));
    for (auto& book : books)
      if (random() % 2 == 0) book.claim();  // before it has heard of anybody: conflicts
    std::vector<bool> claimed(books.size(), false);
    for (auto& book : books)
      claimed[static_cast<std::size_t>(&book - books.data())] = book.has_id();
    const auto settled = [&](const AddressBook& book) { return book.settled(); };
    int steps = 0;
    std::map<std::size_t, int> ids;  // of those that have settled: they stay
    while (!std::ranges::all_of(books, settled)) {
      REQUIRE_MESSAGE(++steps < 20000, "seed " << seed);
      const std::size_t a = random() % books.size(), b = random() % books.size();
      if (a == b) continue;
      exchange(books[a], books[b]);
      for (const std::size_t i : {a, b}) {
        if (!claimed[i]) books[i].claim();
        claimed[i] = true;
        if (!ids.contains(i) && books[i].has_id() && books[i].complete()) {
          books[i].settle();
          ids[i] = *books[i].own().begin();
        }
      }
    }
    std::set<int> distinct;
    for (std::size_t i = 0; i < books.size(); ++i) {
      REQUIRE(books[i].own().size() == 1);
      CHECK(*books[i].own().begin() == ids.at(i));
      distinct.insert(ids.at(i));
    }
    CHECK(distinct.size() == books.size());
  }
}

TEST_CASE("a process that is restarted takes the id of its address, else that of a lost process") {
  AddressBook a = host(10, {0}, 3), b = host(11, {1}, 3), c = host(12, {2}, 3);
  exchange(a, b);
  exchange(b, c);
  exchange(a, c);
  SUBCASE("the same address: at once") {
    AddressBook again(options_of(99, 3));
    again.listen_at(address_of(11));
    again.claim();  // it knows nobody yet
    exchange(again, a);
    exchange(again, a);
    // Whatever it had claimed, it ends with an id of nobody else.
    CHECK(again.own() == std::set{1});
    CHECK(a.find(1)->process == 99);
  }
  SUBCASE("another address: when its last process is lost") {
    AddressBook again = claimer(98, 3);
    REQUIRE(again.merge(a.records(), 0s).ok());
    again.claim();
    CHECK_FALSE(again.has_id());
    a.suspect(11, 0s);
    a.tick(5s);
    REQUIRE(again.merge(a.records(), 5s).ok());
    CHECK(again.own() == std::set{1});
    CHECK(again.complete());
  }
}

TEST_CASE("a settled process gives its id to nobody") {
  AddressBook settled = host(900, {0}, 2);
  AddressBook claims = claimer(5, 2);  // a lower number
  AddressBook other = host(7, {1}, 2);
  claims.claim();
  exchange(settled, other);
  for (int i = 0; i < 4; ++i) {
    exchange(claims, settled);
    exchange(claims, other);
  }
  CHECK(settled.own() == std::set{0});
  CHECK(settled.find(0)->process == 900);
  CHECK_FALSE(claims.has_id());  // all ids are taken
}

TEST_CASE("with keys, only the process of a peer can say where the peer is") {
  const std::vector<KeyPair> keys{KeyPair::generate(), KeyPair::generate(), KeyPair::generate()};
  const auto book_of = [&](int peer) {
    AddressBookOptions options = options_of(10 + static_cast<std::uint64_t>(peer), 3);
    options.sign = [&keys, peer](const std::string& text) {
      return keys[static_cast<std::size_t>(peer)].sign(text);
    };
    options.is_signed = [&keys](int signer, const std::string& text, const Signature& signature) {
      return has_signed(keys[static_cast<std::size_t>(signer)].public_key(), text, signature);
    };
    AddressBook book(options);
    book.host({peer});
    book.listen_at(address_of(10 + static_cast<std::uint64_t>(peer)));
    return book;
  };
  AddressBook honest = book_of(0), victim = book_of(1), liar = book_of(2);
  exchange(honest, victim);
  exchange(honest, liar);
  const std::vector<AddressRecord> before = honest.records();
  AddressRecord forged = *liar.find(1);
  SUBCASE("an address of its own") { forged.address = address_of(12), ++forged.version; }
  SUBCASE("a newer version") { ++forged.version; }
  SUBCASE("another number of the process") { forged.process = 1, ++forged.version; }
  SUBCASE("no signature") { forged.signature.reset(), ++forged.version; }
  SUBCASE("a signature with its own key") {
    ++forged.version;
    forged.signature = keys[2].sign(signed_text(book_network("run-1", 3), forged));
  }
  SUBCASE("a signature for another run") {
    ++forged.version;
    forged.signature = keys[1].sign(signed_text(book_network("run-2", 3), forged));
  }
  AddressRecord news = record_of(2, 12, 9);
  news.signature = keys[2].sign(signed_text(book_network("run-1", 3), news));
  const auto merged = honest.merge({forged, news}, 0s);
  CHECK_FALSE(merged.ok());
  CHECK(honest.records() == before);
  // Nor can the victim be made to raise its version by a forged one.
  CHECK_FALSE(victim.merge({forged}, 0s).ok());
  CHECK(victim.find(1)->version == before[1].version);
}

TEST_CASE("made-up processes neither fill memory nor use up the versions of an id") {
  AddressBook book = host(10, {0});
  for (std::uint64_t process = 100; process < 5000; ++process)
    REQUIRE(book.merge({record_of(0, process, book.find(0)->version + 1)}, 0s).ok());
  CHECK(book.rivals().size() <= 64);
  CHECK(book.find(0)->process == 10);
  REQUIRE(book.merge({record_of(0, 3, AddressRecord::kMaxVersion)}, 0s).ok());
  CHECK(book.find(0)->version <= AddressRecord::kMaxVersion);
}

TEST_CASE("a book travels as it is") {
  AddressRecord one = record_of(1, 77, 3), three = record_of(3, 78, AddressRecord::kMaxVersion);
  one.address = {"node-1.example", 1};
  one.settled = true;
  one.standing = Standing::lost;
  three.address = {"fe80::1", 65535};
  three.signature.emplace().fill(9);
  const std::vector<AddressRecord> records{one, three};
  const auto bytes = encode_book(kNetwork, records);
  const auto header = decode_book_header(std::span(bytes).first<kBookHeaderBytes>());
  REQUIRE(header.has_value());
  CHECK(header->network == kNetwork);
  CHECK(header->bytes == bytes.size() - kBookHeaderBytes);
  CHECK(decode_book(std::span(bytes).subspan(kBookHeaderBytes), 4) == records);
  CHECK(decode_book({}, 4) == std::vector<AddressRecord>{});
}

TEST_CASE("bytes that are no book are refused") {
  const auto good = payload({record_of(1, 77, 3), record_of(2, 78, 4)});
  REQUIRE(decode_book(good, 4).has_value());
  CHECK_FALSE(decode_book(good, 2).has_value());                                   // an id beyond n
  CHECK_FALSE(decode_book(payload({record_of(2, 1, 1), record_of(1, 2, 1)}), 4));  // the order
  CHECK_FALSE(decode_book(payload({record_of(1, 1, 1), record_of(1, 2, 1)}), 4));  // twice
  CHECK_FALSE(decode_book(payload({record_of(1, 0, 1)}), 4));                      // no process
  CHECK_FALSE(decode_book(payload({record_of(1, 1, 0)}), 4));
  CHECK_FALSE(decode_book(payload({record_of(1, 1, AddressRecord::kMaxVersion + 1)}), 4));
  AddressRecord odd = record_of(1, 1, 1);
  odd.address.port = 0;
  CHECK_FALSE(decode_book(payload({odd}), 4));
  odd.address = {"a b", 7};
  CHECK_FALSE(decode_book(payload({odd}), 4));
  odd.address = {"\x1b[2J", 7};
  CHECK_FALSE(decode_book(payload({odd}), 4));
  for (std::size_t size = 0; size < good.size(); ++size)
    if (size != good.size() / 2 && size != 0)
      CHECK_FALSE(decode_book(std::span(good).first(size), 4));
  auto bytes = encode_book(kNetwork, {});
  const auto header = [&] {
    return decode_book_header(std::span(bytes).first<kBookHeaderBytes>());
  };
  REQUIRE(header().has_value());
  for (const std::size_t at : {0, 4, 6, 8, 44}) {
    auto damaged = bytes;
    damaged[at] ^= std::byte{0x80};
    CHECK_FALSE(decode_book_header(std::span(damaged).first<kBookHeaderBytes>()).has_value());
  }
}
