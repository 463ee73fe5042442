// The claiming of ids by processes that have none, as a state machine.
#include "tests/net/address_book_test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

TEST_CASE("every process gets an id of its own, in whatever order books are exchanged") {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const int n = 2 + static_cast<int>(random() % 9);
    std::vector<AddressBook> books;
    for (int i = 0; i < n; ++i) books.push_back(claimer(1 + random(), n));
    for (auto& book : books)
      if (random() % 2 == 0) book.claim();  // before it has heard of anybody: conflicts
    std::vector<bool> claimed(books.size(), false);
    for (auto& book : books)
      claimed[static_cast<std::size_t>(&book - books.data())] = !book.own().empty();
    int steps = 0;
    std::map<std::size_t, int> ids;  // of those that have settled: they stay
    while (ids.size() < books.size()) {
      REQUIRE_MESSAGE(++steps < 20000, "seed " << seed);
      const std::size_t a = random() % books.size(), b = random() % books.size();
      if (a == b) continue;
      exchange(books[a], books[b]);
      for (const std::size_t i : {a, b}) {
        if (!claimed[i]) books[i].claim();
        claimed[i] = true;
        if (!ids.contains(i) && agrees(books[i])) {
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

namespace {

/// Books of processes that claim ids and exchange books with each other, with the first process as
/// their seed, as Discovery has them do.
class Claims {
 public:
  Claims(int nodes, unsigned seed) : random_(seed), probes_(static_cast<std::size_t>(nodes)) {
    for (int k = 0; k < nodes; ++k) {
      books.push_back(claimer(1 + random_(), nodes));
      by_address_[to_string(address_of(books.back().options().process))] = books.size() - 1;
    }
    books[0].claim();
  }

  /// Every process begins one exchange. Returns how many have settled.
  std::size_t round() {
    for (std::size_t k = 0; k < books.size(); ++k) {
      const std::size_t i = random_() % books.size(), j = partner(i);
      if (i == j) continue;
      const auto of_i = books[i].records();
      books[j].merge(of_i, 0s);
      const auto of_j = books[j].records();
      books[i].merge(of_j, 0s);
      note_rivals(i, of_j);
      note_rivals(j, of_i);
      for (const std::size_t each : {i, j}) {
        books[each].claim();
        if (agrees(books[each]) && settled_.insert(each).second) books[each].settle();
      }
    }
    return settled_.size();
  }

  std::vector<AddressBook> books;

 private:
  std::size_t partner(std::size_t i) {
    if (!probes_[i].empty()) {
      const std::size_t rival = probes_[i].back();
      probes_[i].pop_back();
      return rival;
    }
    const auto records = books[i].records();
    const bool seed = random_() % (books[i].missing().empty() ? 8 : 2) == 0 || records.size() < 2;
    return seed ? 0 : by_address_.at(to_string(records[random_() % records.size()].address));
  }
  void note_rivals(std::size_t i, const std::vector<AddressRecord>& records) {
    for (const AddressRecord& record : records)
      if (record.process != books[i].options().process && record.standing != Standing::lost &&
          books[i].own().contains(record.peer) && probes_[i].size() < 16)
        probes_[i].push_back(by_address_.at(to_string(record.address)));
  }

  std::mt19937_64 random_;
  std::map<std::string, std::size_t> by_address_;
  std::vector<std::vector<std::size_t>> probes_;
  std::set<std::size_t> settled_;
};

}  // namespace

TEST_CASE("128 processes agree on their ids in tens of rounds, though many claim the same") {
  Claims claims(128, 1);
  int rounds = 1;
  while (claims.round() < claims.books.size() && rounds < 100) ++rounds;
  CHECK(rounds <= 50);
  std::set<int> distinct;
  for (const auto& book : claims.books) distinct.insert(*book.own().begin());
  CHECK(distinct.size() == 128);
}

TEST_CASE(
    "a process that claims another id has released the one before, also by the word of others") {
  AddressBook book = claimer(10, 4);
  AddressRecord before = record_of(1, 11, 3), after = record_of(2, 11, 4);
  before.claimed = after.claimed = true;
  for (const bool in_order : {true, false}) {
    CAPTURE(in_order);
    AddressBook each = book;
    each.merge({in_order ? before : after}, 0s);
    each.merge({in_order ? after : before}, 0s);
    CHECK(each.find(2)->process == 11);
    CHECK((each.find(1) == nullptr || each.find(1)->standing == Standing::lost));
  }
  // A process that was given its ids may have several.
  before.claimed = after.claimed = false;
  book.merge({before, after}, 0s);
  CHECK(book.missing() == std::vector<int>{0, 3});
}

TEST_CASE("a claim that was made up for a process does not cost the process its id") {
  AddressBook victim = claimer(10, 4), other = claimer(11, 4);
  victim.claim();
  exchange(victim, other);
  const int id = *victim.own().begin();
  AddressRecord made_up = record_of((id + 1) % 4, 10, 1000);
  made_up.claimed = true;
  other.merge({made_up}, 0s);
  CHECK(other.find(id)->standing == Standing::lost);
  for (int k = 0; k < 2; ++k) exchange(victim, other);
  CHECK(*victim.own().begin() == id);
  CHECK(other.find(id)->process == 10);
  CHECK(other.find(id)->standing == Standing::alive);
}

TEST_CASE("a suspected process to which an id is left keeps the time to refute") {
  AddressBook first = claimer(5, 2), second = claimer(9, 2);
  first.claim();
  second.claim();
  std::vector<AddressRecord> suspected = first.records();
  REQUIRE(suspected.size() == 1);
  suspected[0].peer = *second.own().begin();
  suspected[0].version = 7;
  suspected[0].standing = Standing::suspected;
  const int id = suspected[0].peer;
  second.merge(suspected, 100s);
  CHECK_FALSE(second.own().contains(id));
  second.tick(104s);
  CHECK(second.find(id)->standing == Standing::suspected);
  second.tick(105s);
  CHECK(second.find(id)->standing == Standing::lost);
}

TEST_CASE("processes that end while ids are claimed leave no two processes with one id") {
  // A process may end at any time, and another one takes its place, of which nobody knows at first
  // that it does: books that look complete hold records of processes that have ended.
  for (unsigned seed = 0; seed < 2000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const int n = 3 + static_cast<int>(random() % 6);
    std::vector<AddressBook> books;
    const auto start = [&] { return claimer(1 + random(), n); };
    for (int i = 0; i < n; ++i) books.push_back(start());
    std::map<std::uint64_t, int> ids;  // of living processes that have settled
    int ends = 1 + static_cast<int>(random() % 3);
    gossip::Time now = 0s;
    for (int step = 0; ids.size() < books.size(); ++step) {
      REQUIRE(step < 20000);
      now += 100ms;
      const std::size_t a = random() % books.size(), b = random() % books.size();
      if (ends > 0 && random() % 20 == 0) {
        --ends;
        ids.erase(books[a].options().process);
        books[a] = start();
        continue;
      }
      if (a == b) continue;
      exchange(books[a], books[b], now);
      for (const std::size_t i : {a, b}) {
        AddressBook& book = books[i];
        book.claim();
        for (const AddressRecord& record : book.records()) {  // it tries to reach each
          const auto lives = [&](const AddressBook& other) {
            return other.options().process == record.process;
          };
          if (std::ranges::none_of(books, lives)) book.suspect(record.process, now);
        }
        book.tick(now);
        if (ids.contains(book.options().process) || !agrees(book)) continue;
        book.settle();
        const int id = *book.own().begin();
        for (const auto& [process, other] : ids) REQUIRE(other != id);
        ids[book.options().process] = id;
      }
    }
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
    again.merge(a.records(), 0s);
    again.claim();
    CHECK_FALSE(!again.own().empty());
    a.suspect(11, 0s);
    a.tick(5s);
    again.merge(a.records(), 5s);
    CHECK(again.own() == std::set{1});
    CHECK(again.missing().empty());
    CHECK_FALSE(agrees(again));
    for (int i = 0; i < 3; ++i) {
      exchange(again, a, 6s);
      exchange(again, c, 6s);
    }
    CHECK(agrees(again));
  }
}

TEST_CASE("made-up claims fill no memory") {
  NewestClaims claims;
  struct Entry {
    AddressRecord record;
  };
  std::map<int, Entry> entries;
  for (std::uint64_t process = 100; process < 5000; ++process) {
    AddressRecord record = record_of(static_cast<int>(process % 4), process, process);
    record.claimed = true;
    entries[record.peer] = {record};
    claims.note(record, entries, 4);
    REQUIRE(claims.size() < 100);
  }
}

TEST_CASE("newcomers of an open run that start at once claim ids of their own") {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    constexpr int n = 8, first = 4;
    const auto options = [](std::uint64_t process) {
      AddressBookOptions options = options_of(process, n);
      options.first = {0, 1, 2, 3};
      return options;
    };
    std::vector<AddressBook> books;
    for (int peer = 0; peer < first; ++peer) {
      books.emplace_back(options(1 + random()));
      books.back().host({peer});
      books.back().listen_at(address_of(books.back().options().process));
    }
    for (int i = 0; i < 4 * first; ++i)
      if (const std::size_t a = random() % first, b = random() % first; a != b)
        exchange(books[a], books[b]);
    for (int k = first; k < n; ++k) {
      books.emplace_back(options(1 + random()));
      books.back().listen_at(address_of(books.back().options().process));
    }
    std::vector<bool> informed(n, false);
    std::set<int> ids;
    std::vector<bool> settled(n, false);
    for (int step = 0; ids.size() < n - first; ++step) {
      REQUIRE(step < 20000);
      const std::size_t a = random() % n;
      std::size_t b = random() % n;
      if (a == b) continue;
      if (!informed[a]) b = 0;
      if (!informed[b] && b >= first) continue;
      exchange(books[a], books[b]);
      for (const std::size_t i : {a, b}) {
        if (i < first) continue;
        informed[i] = true;
        books[i].claim();
        if (settled[i] || !agrees(books[i])) continue;
        books[i].settle();
        settled[i] = true;
        REQUIRE(ids.insert(*books[i].own().begin()).second);
      }
    }
  }
}
