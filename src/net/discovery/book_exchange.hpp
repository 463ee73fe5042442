// One exchange of address books with the process at an address: connects, sends the book of this
// process, and reads the other one's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/startup/handshake_stream.hpp"
#include "net/tls/authenticator.hpp"

namespace gossamer::net {

enum class ExchangeFailure {
  no_process,  ///< the machine answers, and no process listens there
  refused,     ///< the other process refuses this one
  other,       ///< no answer, or one that is no book
};

struct BookExchangeOptions {
  Address address;                         ///< of the other process
  Authenticator* authenticator = nullptr;  ///< null: connections are not encrypted
  gossip::Time deadline{0};                ///< to connect, and again for the exchange
  Identity identity;  ///< of this process; its run id and number of peers are compared
  /// In a network without keys: a process that refuses this one is sent a hello with the settings
  /// of this one, and prints the first that differs. With keys it shows its own in its answer.
  bool shows_settings = false;
  /// The records to send, once connected from the address `local_host` of this machine.
  std::function<std::vector<AddressRecord>(const std::string& local_host)> records;
  /// One of the two is called once, in the end, and may destroy the exchange. `why` is a clause.
  std::function<void(const std::vector<AddressRecord>& records)> on_records;
  std::function<void(ExchangeFailure failure, const std::string& why)> on_failure;
};

/// Thread: the scheduler's. Its destruction ends the exchange, without a call.
class BookExchange {
 public:
  BookExchange(RealScheduler& scheduler, BookExchangeOptions options);
  ~BookExchange();
  BookExchange(const BookExchange&) = delete;
  BookExchange& operator=(const BookExchange&) = delete;

 private:
  void send(std::unique_ptr<Socket> socket);
  std::string network() const;
  bool on_first_words(const HelloPrefix& prefix);
  void on_rejection(const std::optional<Hello>& hello);
  void show_settings(const std::string& refusal);
  void on_end(const std::string& why);
  void finish(const std::vector<AddressRecord>& records);
  void fail(ExchangeFailure failure, const std::string& why);

  RealScheduler& scheduler_;
  BookExchangeOptions options_;
  std::unique_ptr<Attempt> attempt_;
  std::shared_ptr<HandshakeStream> stream_;
  std::shared_ptr<ShownKey> shown_ = std::make_shared<ShownKey>();
  gossip::Scheduler::TimerId timer_;
};

}  // namespace gossamer::net
