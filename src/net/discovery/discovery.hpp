// How a process finds the others of its network from the addresses of a few: it exchanges address
// books with one process after another, with the seeds while it misses any, and at a slower pace
// for as long as the network runs, so that a process which is restarted elsewhere is found again,
// whichever processes have ended meanwhile.
#pragma once

#include <deque>
#include <functional>
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
  Result<std::vector<AddressRecord>> answer(const std::vector<AddressRecord>& records,
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
  std::optional<Target> next_target();
  std::optional<Target> draw(bool lost);
  Seed* next_seed();
  void on_done(const Target& target, Result<std::vector<AddressRecord>> result);
  void merge_answer(const Target& target, const std::vector<AddressRecord>& records);
  void find_own_address(const std::string& local_host);
  void probe_suspects(const std::vector<AddressRecord>& records);
  void report_rivals();
  gossip::Time pause();

  RealScheduler& scheduler_;
  AddressBook& book_;
  DiscoveryOptions options_;
  std::vector<Seed> seeds_;
  std::deque<Target> probes_;  ///< suspected processes that this one will try itself
  std::unique_ptr<BookExchange> exchange_;
  gossip::Scheduler::TimerId timer_;
  gossip::Time last_change_{0};
  std::uint64_t exchanges_ = 0, next_seed_ = 0;
  bool slow_ = false, has_contact_ = false;
  std::size_t reported_rivals_ = 0;
  std::optional<Address> own_address_;  ///< of a process that listens on every interface
  std::mt19937_64 random_;
};

}  // namespace gossamer::net
