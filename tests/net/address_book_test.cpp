// The address book as a state machine: records, suspicion and refutation, and its message.
#include "net/discovery/address_book.hpp"

#include "net/tls/keys.hpp"
#include "tests/net/address_book_test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

TEST_CASE("books that are merged along a chain become alike") {
  std::vector<AddressBook> books;
  for (int peer = 0; peer < 4; ++peer)
    books.push_back(host(10 + static_cast<std::uint64_t>(peer), {peer}));
  for (int pass = 0; pass < 6; ++pass)
    for (std::size_t i = 0; i + 1 < books.size(); ++i) exchange(books[i], books[i + 1]);
  for (const auto& book : books) {
    CHECK(settled(book));
    CHECK(agrees(book));
    CHECK(book.records() == books[0].records());
    CHECK(book.find(2)->address == address_of(12));
  }
  CHECK_FALSE(books[0].merge(books[1].records(), 0s));
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
  CHECK_FALSE(again.take_rival());
}

TEST_CASE("two processes of one id see each other, and one that was restarted is no rival") {
  AddressBook a = host(30, {1}), b = host(31, {1});
  exchange(a, b);
  CHECK_FALSE(a.take_rival());
  for (int i = 0; i < 6; ++i) exchange(a, b);
  // Both have it from the other one, and know which of them goes first.
  const auto of_a = a.take_rival(), of_b = b.take_rival();
  REQUIRE(of_a);
  REQUIRE(of_b);
  CHECK(of_a->address == to_string(address_of(31)));
  CHECK_FALSE(of_a->has_priority);
  CHECK(of_b->has_priority);
  // Each is told once: the other one may have ended since.
  CHECK_FALSE(a.take_rival());
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
    AddressRecord old = record_of(1, 11, b.find(1)->version - 1);
    old.standing = Standing::suspected;
    CHECK_FALSE(b.merge({old}, 3s));  // its version never falls
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

TEST_CASE("a process whose address another one has is lost") {
  AddressBook ended = host(10, {0}, 3), other = host(11, {1}, 3), waits = claimer(12, 3);
  exchange(ended, other);
  // It listens where the ended process did, under another id, and answers in its place.
  AddressBook follower(options_of(13, 3));
  follower.host({2});
  follower.listen_at(address_of(10));
  exchange(follower, other);
  CHECK(follower.find(0)->standing == Standing::lost);
  exchange(follower, other);
  CHECK(other.find(0)->standing == Standing::lost);
  exchange(waits, other);
  waits.claim();
  CHECK(waits.own() == std::set{0});
}

TEST_CASE("a process claims the id that it had before, unless a living process has it") {
  const auto claimer_of = [](std::uint64_t process, std::vector<int> former) {
    AddressBookOptions options = options_of(process);
    options.former = std::move(former);
    AddressBook book(options);
    book.listen_at(address_of(process));
    return book;
  };
  // Nothing is left of the books of before, and the processes come in another order.
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<int> order{2, 0, 3, 1};
    for (const bool shared : {false, true}) {  // two processes have a folder
      std::vector<AddressBook> books;
      for (const int former : order)
        books.push_back(claimer_of(
            1 + 10 * seed + static_cast<std::uint64_t>(former),
            shared ? std::vector<int>{former / 2 * 2, former / 2 * 2 + 1} : std::vector{former}));
      for (int pass = 0; pass < 6; ++pass)
        for (std::size_t i = 0; i < books.size(); ++i) {
          if (i > 0) exchange(books[0], books[i]);
          if (books[i].own().empty()) books[i].claim();
        }
      std::set<int> claimed;
      for (std::size_t i = 0; i < books.size(); ++i) {
        REQUIRE(books[i].own().size() == 1);
        const int id = *books[i].own().begin();
        claimed.insert(id);
        CHECK((shared ? id / 2 == order[i] / 2 : id == order[i]));
      }
      CHECK(claimed.size() == 4);
    }
  }
  AddressBook living = host(90, {2}), late = claimer_of(91, {2});
  exchange(living, late);
  late.claim();
  CHECK(late.own().size() == 1);
  CHECK_FALSE(late.own().contains(2));
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
  CHECK_FALSE(!claims.own().empty());  // all ids are taken
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
  CHECK(honest.merge({forged, news}, 0s));  // what the liar says of itself is taken
  CHECK(honest.find(1) != nullptr);
  CHECK(*honest.find(1) == before[1]);
  CHECK(*honest.find(2) == news);
  // Nor can the victim be made to raise its version by a forged one.
  CHECK_FALSE(victim.merge({forged}, 0s));
  CHECK(victim.find(1)->version == before[1].version);
}

TEST_CASE("a record that was signed with a key which its peer no longer has is forgotten") {
  const KeyPair old_key = KeyPair::generate(), new_key = KeyPair::generate();
  KeyPair listed = old_key;
  const auto book_of = [&](std::uint64_t process, int peer, const KeyPair& key) {
    AddressBookOptions options = options_of(process, 2);
    options.sign = [key](const std::string& text) { return key.sign(text); };
    options.is_signed = [&](int signer, const std::string& text, const Signature& signature) {
      return signer == 0 || has_signed(listed.public_key(), text, signature);
    };
    AddressBook book(options);
    book.host({peer});
    book.listen_at(address_of(process));
    return book;
  };
  AddressBook zero = book_of(10, 0, old_key), before = book_of(11, 1, old_key);
  for (int i = 0; i < 5; ++i) {
    exchange(zero, before);
    zero.suspect(11, 0s);  // which the process refutes with newer versions
  }
  CHECK(zero.find(1)->version > 1);
  listed = new_key;
  AddressBook after = book_of(12, 1, new_key);
  SUBCASE("by a process that has read the new list") {
    zero.tick(1h);
    zero.drop_invalid();
    CHECK(zero.find(1) == nullptr);
    CHECK(zero.records().size() == 1);
    CHECK(zero.own() == std::set{0});
    exchange(after, zero);
    CHECK(zero.find(1)->process == 12);
  }
  SUBCASE("which is not told by others that have not") {
    after.merge(before.records(), 0s);
    CHECK(after.find(1)->process == 12);
  }
}

TEST_CASE("made-up processes neither fill memory nor use up the versions of an id") {
  AddressBook book = host(10, {0});
  for (std::uint64_t process = 100; process < 5000; ++process)
    book.merge({record_of(0, process, book.find(0)->version + 1)}, 0s);
  CHECK(book.find(0)->process == 10);
  const std::uint64_t version = book.find(0)->version;
  CHECK_FALSE(book.merge({record_of(0, 3, AddressRecord::kMaxVersion)}, 0s));
  CHECK(book.find(0)->version == version);
  CHECK_FALSE(book.merge({record_of(2, 3, AddressRecord::kMaxVersion)}, 0s));
  CHECK(book.find(2) == nullptr);
}
