#include "net/discovery/address_book.hpp"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace gossamer::net {

namespace {

constexpr int kConflictsOfARestart = 1;  // with the record that the process left before
constexpr std::size_t kMostConflicts = 64;
constexpr std::uint64_t kLongestJump = std::uint64_t{1} << 32;

/// Whether a record replaces another one of the same peer. A claim that is not settled replaces
/// none of a process that is not lost, so that what a process has stated of them stays
/// true: two processes that claim one id find out themselves which of them yields.
bool replaces(const AddressRecord& record, const AddressRecord& known) {
  if (record.process == known.process)
    return std::tuple(record.version, record.standing) > std::tuple(known.version, known.standing);
  const bool newer =
      std::tuple(record.version, ~record.process) > std::tuple(known.version, ~known.process);
  const bool lost = record.standing == Standing::lost,
             known_lost = known.standing == Standing::lost;
  if (lost != known_lost) return known_lost;
  return newer && (lost || record.settled || record.address == known.address);
}

bool is_first(const AddressBookOptions& options, int id) {
  return options.first.empty() || std::ranges::binary_search(options.first, id);
}

/// Whether the ids that a network needs to begin have a living process.
bool can_begin(const AddressBook& book) {
  return std::ranges::none_of(book.missing(),
                              [&book](int id) { return is_first(book.options(), id); });
}

bool is_valid(const AddressBookOptions& options, const AddressRecord& record) {
  return !options.is_signed ||
         (record.signature &&
          options.is_signed(record.peer, signed_text(options.network, record), *record.signature));
}

/// Whether a newer record can be that of its process. A version so far beyond the known one was
/// made up, and would leave the process none to refute it.
bool is_credible(const AddressBookOptions& options, const AddressRecord& record,
                 const AddressRecord* known) {
  const std::uint64_t before = known == nullptr ? 0 : known->version;
  return record.version - std::min(before, record.version) <= kLongestJump &&
         is_valid(options, record);
}

}  // namespace

AddressBook::AddressBook(AddressBookOptions options)
    : options_(std::move(options)), random_(options_.process) {
  GOSSAMER_CHECK(options_.process != 0, "a process has a number");
}

void AddressBook::host(const std::vector<int>& peers) {
  own_.insert(peers.begin(), peers.end());
  settled_ = true;
}

void AddressBook::claim() {
  claims_ = true;
  draw_id();
  state_view();
}

void AddressBook::settle() {
  GOSSAMER_CHECK(!own_.empty(), "a process settles on an id");
  settled_ = true;
  write_own(*own_.begin(), entries_.at(*own_.begin()).record.version + 1);
}

void AddressBook::listen_at(const Address& address) {
  if (address_ == address) return;
  address_ = address;
  for (const int peer : own_) {
    const auto found = entries_.find(peer);
    write_own(peer, found == entries_.end() ? 1 : found->second.record.version + 1);
  }
}

/// Without a version to spare, after a forged record in a network without keys, nothing is written.
void AddressBook::write_own(int peer, std::uint64_t version) {
  if (version > AddressRecord::kMaxVersion) return;
  AddressRecord record;
  record.peer = peer;
  record.process = options_.process;
  record.version = version;
  record.address = *address_;
  record.settled = settled_;
  record.claimed = claims_;
  last_version_ = std::max(last_version_, version);
  record.view = view_;
  if (options_.sign) record.signature = options_.sign(signed_text(options_.network, record));
  entries_[peer] = {std::move(record), {}};
}

/// An id that this process may have had before it was restarted, as its folder says. Else one of
/// which it is likely to have been the host: one with the same address, or that of a lost process
/// of this machine. Else one that no process has had, else that of any lost process.
void AddressBook::draw_id() {
  if (!claims_ || !own_.empty() || !address_) return;
  std::vector<int> best;
  int best_rank = 0;
  for (int peer = 0; peer < options_.nodes; ++peer) {
    const AddressRecord* record = find(peer);
    const bool lost = record != nullptr && record->standing == Standing::lost;
    int rank = 0;
    if (record == nullptr) rank = 2;
    else if (record->address == *address_) rank = 4;
    else if (lost) rank = record->address.host == address_->host ? 3 : 1;
    if (rank > 0 && std::ranges::find(options_.former, peer) != options_.former.end()) rank = 5;
    if (rank == 0 || rank < best_rank) continue;
    if (rank > best_rank) best.clear();
    best_rank = rank;
    best.push_back(peer);
  }
  if (best.empty()) return;
  const auto is_later = [this](int id) { return !is_first(options_, id); };
  if (!std::ranges::all_of(best, is_later)) std::erase_if(best, is_later);
  const int peer = best[random_() % best.size()];
  // Of all records of the id, its retraction by this process included, and of all of this process.
  std::uint64_t version = last_version_;
  if (const AddressRecord* before = find(peer)) {
    version = std::max(version, before->version);
    remember(*before);
  }
  if (const auto former = former_.find(peer); former != former_.end()) {
    version = std::max(version, former->second.version);
    if (former->second.process == options_.process) former_.erase(former);
  }
  own_.insert(peer);
  write_own(peer, version + 1);
}

bool AddressBook::merge(const std::vector<AddressRecord>& records, gossip::Time now) {
  bool changed = false;
  for (const AddressRecord& record : records) {
    const AddressRecord* known = find(record.peer);
    if (record.process == options_.process && !own_.contains(record.peer)) {
      changed |= retract(record);
      // Another process has made that up, and a claim that is not the newest one is void.
      if (claims_ && !own_.empty() && record.version > find(*own_.begin())->version &&
          is_credible(options_, record, find(*own_.begin())))
        write_own(*own_.begin(), record.version + 1);
    } else if (own_.contains(record.peer)) {
      changed |= merge_own(record, now);
    } else if ((known == nullptr || replaces(record, *known)) && !newest_claims_.is_void(record) &&
               is_credible(options_, record, known)) {
      const bool is_new = known == nullptr || known->process != record.process;
      if (known != nullptr && is_new) remember(*known);
      AddressRecord& taken = (entries_[record.peer] = {record, now}).record;
      // Of a process that listened where this one does now, and is not suspected by the others:
      // this one answers them. One that refutes that has the same address in another network.
      if (is_new && address_ == record.address && !address_->is_none())
        taken.standing = Standing::lost;
      newest_claims_.note(record, entries_, options_.nodes);
      changed = true;
    }
  }
  draw_id();
  state_view();
  return changed;
}

void AddressBook::drop_invalid() {
  std::erase_if(entries_, [this](const auto& entry) {
    return !own_.contains(entry.first) && !is_valid(options_, entry.second.record);
  });
  std::erase_if(former_, [this](const auto& entry) { return !is_valid(options_, entry.second); });
}

/// A record of an id of this process: refutes it, or gives the id up.
bool AddressBook::merge_own(const AddressRecord& record, gossip::Time now) {
  if (!address_) return false;
  const AddressRecord* own = find(record.peer);
  const bool newer = own == nullptr || record.version > own->version ||
                     (record.version == own->version &&
                      (record.process != options_.process || record.standing > own->standing));
  if (!newer || newest_claims_.is_void(record) || !is_credible(options_, record, own)) return false;
  if (record.process != options_.process && yields_to(record)) {
    own_.erase(record.peer);
    retract(*own);
    entries_[record.peer] = {record, now};
    newest_claims_.note(record, entries_, options_.nodes);
    return true;
  }
  if (record.process != options_.process) count_conflict(record);
  write_own(record.peer, record.version + 1);
  return true;
}

/// The address of this process is its own before a restart. Any number of processes may be made up,
/// in a network without keys.
void AddressBook::count_conflict(const AddressRecord& record) {
  if (record.address == *address_ && !address_->is_none()) return;
  if (conflicts_.size() >= kMostConflicts && !conflicts_.contains(record.process)) return;
  if (++conflicts_[record.process] <= kConflictsOfARestart) return;
  rival_ = {to_string(record.address), record.settled && record.process < options_.process};
}

/// A record of this process for an id that it does not have: processes with that record must learn
/// that it no longer holds.
bool AddressBook::retract(const AddressRecord& record) {
  const bool lost = record.standing == Standing::lost;
  if (!is_credible(options_, record, nullptr) || options_.sign) return false;
  AddressRecord retracted = record;
  retracted.version += lost ? 0 : 1;
  last_version_ = std::max(last_version_, retracted.version);
  retracted.standing = Standing::lost;
  const auto former = former_.find(record.peer);
  if (former != former_.end() && former->second.process == options_.process &&
      former->second.version >= retracted.version)
    return false;
  former_[record.peer] = std::move(retracted);
  return true;
}

/// A record that is replaced because its process is lost: others must learn that it is, or they
/// would not let the record go.
void AddressBook::remember(const AddressRecord& record) {
  const auto former = former_.find(record.peer);
  const bool own = former != former_.end() && former->second.process == options_.process;
  if (record.standing == Standing::lost && !own) former_[record.peer] = record;
}

bool AddressBook::yields_to(const AddressRecord& record) const {
  if (settled_ || record.standing == Standing::lost || record.address == *address_) return false;
  return record.settled || record.process < options_.process;
}

bool AddressBook::suspect(std::uint64_t process, gossip::Time now) {
  bool changed = false;
  for (auto& [peer, entry] : entries_) {
    if (entry.record.process != process || entry.record.standing != Standing::alive) continue;
    entry.record.standing = Standing::suspected;
    entry.suspected_since = now;
    changed = true;
  }
  return changed;
}

void AddressBook::tick(gossip::Time now) {
  for (auto& [peer, entry] : entries_)
    if (entry.record.standing == Standing::suspected &&
        now - entry.suspected_since >= options_.suspicion_time)
      entry.record.standing = Standing::lost;
  draw_id();
  state_view();
}

const AddressRecord* AddressBook::find(int peer) const {
  const auto found = entries_.find(peer);
  return found == entries_.end() ? nullptr : &found->second.record;
}

std::vector<AddressRecord> AddressBook::records() const {
  std::vector<AddressRecord> records;
  for (const auto& [peer, entry] : entries_) records.push_back(entry.record);
  for (const auto& [peer, record] : former_) records.push_back(record);
  std::ranges::sort(records, {}, [](const AddressRecord& record) {
    return std::tuple(record.peer, record.standing != Standing::lost);
  });
  return records;
}

std::vector<int> AddressBook::missing() const {
  std::vector<int> missing;
  for (int peer = 0; peer < options_.nodes; ++peer)
    if (const AddressRecord* record = find(peer);
        record == nullptr || record->standing == Standing::lost)
      missing.push_back(peer);
  return missing;
}

std::uint64_t AddressBook::view() const {
  const auto is_settled = [](const auto& entry) { return entry.second.record.settled; };
  if (options_.sign || (!can_begin(*this) && std::ranges::none_of(entries_, is_settled))) return 0;
  std::vector<std::uint64_t> words;
  for (const auto& [peer, entry] : entries_)
    if (entry.record.standing != Standing::lost)
      words.insert(words.end(), {static_cast<std::uint64_t>(peer), entry.record.process});
  return hash64(std::as_bytes(std::span(words)));
}

void AddressBook::state_view() {
  const std::uint64_t seen = view();
  if (seen == view_ || !address_) return;
  view_ = seen;
  for (const int peer : own_) write_own(peer, entries_.at(peer).record.version + 1);
}

bool agrees(const AddressBook& book) {
  if (book.own().empty()) return false;
  const AddressRecord* own = book.find(*book.own().begin());
  return own != nullptr && own->view != 0 &&
         book.all_living([&](const AddressRecord& record) { return record.view == own->view; });
}

bool settled(const AddressBook& book) {
  return book.all_living([](const AddressRecord& record) { return record.settled; });
}

}  // namespace gossamer::net
