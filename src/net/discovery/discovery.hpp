// How a process finds the others of its network from the addresses of a few: it exchanges address
// books with seeds and with processes of its book, often with seeds while an id is missing, and now
// and then for as long as the network runs. So a process that is restarted elsewhere is found
// again, whichever processes have ended meanwhile.
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
  /// the first exchange, and once more if only this machine reaches that address.
  Address listening;
  Authenticator* authenticator = nullptr;  ///< null: connections are not encrypted
  gossip::Time deadline{0};                ///< to connect, and again for the exchange
  std::function<void(const std::string&)> message = [](const std::string&) {};
  /// From the first failed exchange with a process, without a success since, to its suspicion.
  gossip::Time patience{0};
  /// Whether a process may be called at the address that a record gives.
  std::function<bool(const Address&)> may_call = [](const Address&) { return true; };
  /// Another process has settled on an id of this one, and has the lower process number. May be
  /// called again.
  std::function<void(const std::string& address)> on_prior_rival = [](const std::string&) {};
  /// A seed refuses this process, which has exchanged no book yet; the message is a whole sentence.
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
  /// The books of another process and this one were exchanged.
  bool has_contact() const { return has_contact_; }
  /// What became of the seeds: "10.0.0.5:7000: connection refused, 3 tries, …".
  std::string describe_seeds() const;

 private:
  struct Seed {
    Address address;
    int tries = 0;
    std::string outcome = "not tried yet";
    bool rejects = false;  ///< this process, at the last try
  };
  struct Target {
    Address address;
    Seed* seed = nullptr;       ///< null: a process of the book
    std::uint64_t process = 0;  ///< of the book
  };

  void exchange();
  void exchange_after(gossip::Time pause);
  void on_news();
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
  std::deque<Target> probes_;                                         ///< next targets
  std::map<std::uint64_t, std::unique_ptr<BookExchange>> exchanges_;  ///< by their number
  std::map<std::uint64_t, gossip::Time> silent_since_;  ///< by process: its first failure
  gossip::Scheduler::TimerId timer_;
  gossip::Time due_{};  ///< when the timer fires
  gossip::Time last_change_{0};
  std::uint64_t count_ = 0, next_seed_ = 0;
  bool slow_ = false, has_contact_ = false;
  std::optional<gossip::Time> reported_;  ///< when a rival was
  std::optional<Address> own_address_;    ///< of a process that listens on every interface
  std::mt19937_64 random_;
};

}  // namespace gossamer::net
