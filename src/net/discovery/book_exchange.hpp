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

struct BookExchangeOptions {
  Address address;                         ///< of the other process
  Authenticator* authenticator = nullptr;  ///< null: connections are not encrypted
  gossip::Time deadline{0};                ///< to connect, and again for the exchange
  Identity identity;  ///< of this process; its run id and number of peers are compared
  /// The records to send, once connected from the address `local_host` of this machine.
  std::function<std::vector<AddressRecord>(const std::string& local_host)> records;
  /// Called once, in the end: with the records of the other process, or the reason why there are
  /// none, as a clause; its kind is `rejected` if the other process refuses this one, else
  /// `network`. May destroy the exchange.
  std::function<void(Result<std::vector<AddressRecord>>)> done;
};

/// Thread: the scheduler's. Its destruction ends the exchange, without a call of `done`.
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
  void on_end(const std::string& why);
  void finish(Result<std::vector<AddressRecord>> result);

  RealScheduler& scheduler_;
  BookExchangeOptions options_;
  std::unique_ptr<Attempt> attempt_;
  std::shared_ptr<HandshakeStream> stream_;
  std::shared_ptr<ShownKey> shown_ = std::make_shared<ShownKey>();
  gossip::Scheduler::TimerId timer_;
};

}  // namespace gossamer::net
