// How a process finds the others of its network from the addresses of a few: it exchanges address
// books with one process after another, with the seeds while it misses any, and at a slower pace
// for as long as the network runs, so that a process which is restarted elsewhere is found again,
// whichever processes have ended meanwhile.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "net/discovery/address_book.hpp"
#include "net/discovery/book_exchange.hpp"

namespace gossamer::net {

struct DiscoveryOptions {
  std::vector<Address> seeds;
  Identity identity;  ///< of this process: run id, number of peers and settings
  /// Where this process listens. A host 0.0.0.0 or :: is replaced by the address of this machine in
  /// its first connection.
  Address listening;
  Authenticator* authenticator = nullptr;  ///< null: connections are not encrypted
  gossip::Time deadline{0};                ///< of one exchange
  std::function<void(const std::string&)> message = [](const std::string&) {};
  /// How long a process may listen and not answer before it is suspected.
  gossip::Time patience{0};
  /// Whether a process may be called at the address that a record gives.
  std::function<bool(const Address&)> may_call = [](const Address&) { return true; };
  /// Another process has settled on an id of this one, and has the lower number.
  std::function<void(const std::string& address)> on_prior_rival = [](const std::string&) {};
  /// A seed refuses this process, and no other process has answered it yet; a whole sentence.
  std::function<void(Error)> on_rejected = [](const Error&) {};
};

/// Thread: the scheduler's. Its destruction ends the exchanges.
class Discovery {
 public:
  /// The book outlives the discovery.
  Discovery(RealScheduler& scheduler, AddressBook& book, DiscoveryOptions options);
  ~Discovery();
  Discovery(const Discovery&) = delete;
  Discovery& operator=(const Discovery&) = delete;

  /// Begins the first exchange at once.
  void start();
  /// The network has begun: exchanges become rare while nothing changes.
  void slow_down() { slow_ = true; }
  /// AcceptorOptions::exchange_books.
  std::vector<AddressRecord> answer(const std::vector<AddressRecord>& records,
                                    const std::string& local_host);
  /// The address of a peer. Error (network): it is not known; says what was tried.
  Result<Address> find(int peer) const;
  /// Another process has answered, or sent its book.
  bool has_contact() const { return has_contact_; }
  /// What became of the seeds: "10.0.0.5:7000: connection refused, 3 tries; …".
  std::string describe_seeds() const;

 private:
  struct Seed {
    Address address;
    int tries = 0;
    std::string outcome = "not tried yet";
  };
  struct Target {
    Address address;
    Seed* seed = nullptr;       ///< null: a process of the book
    std::uint64_t process = 0;  ///< of the book
  };

  void exchange();
  std::optional<Target> next_target(std::uint64_t count);
  std::optional<Target> draw(bool lost);
  Seed* next_seed();
  std::unique_ptr<BookExchange> end(std::uint64_t number);
  void on_records(const Target& target, const std::vector<AddressRecord>& records);
  void on_failure(const Target& target, ExchangeFailure failure, const std::string& why);
  bool take(const std::vector<AddressRecord>& records);
  void find_own_address(const std::string& local_host);
  void probe(const std::vector<AddressRecord>& records);
  void report_rival();
  gossip::Time pause();

  RealScheduler& scheduler_;
  AddressBook& book_;
  DiscoveryOptions options_;
  std::vector<Seed> seeds_;
  std::deque<Target> probes_;  ///< that this process will call itself
  std::map<std::uint64_t, std::unique_ptr<BookExchange>> exchanges_;  ///< by their number
  std::map<std::uint64_t, gossip::Time> silent_since_;  ///< by process: it listens, and is silent
  gossip::Scheduler::TimerId timer_;
  gossip::Time last_change_{0};
  std::uint64_t count_ = 0, next_seed_ = 0;
  bool slow_ = false, has_contact_ = false;
  std::optional<gossip::Time> reported_;  ///< when a rival was
  std::optional<Address> own_address_;    ///< of a process that listens on every interface
  std::mt19937_64 random_;
};

}  // namespace gossamer::net
