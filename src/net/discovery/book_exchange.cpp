#include "net/discovery/book_exchange.hpp"

#include <fmt/format.h>

#include <utility>

#include "net/tls/error.hpp"

namespace gossamer::net {

BookExchange::BookExchange(RealScheduler& scheduler, BookExchangeOptions options)
    : scheduler_(scheduler), options_(std::move(options)) {
  timer_ =
      scheduler_.after(options_.deadline, [this] { fail(ExchangeFailure::other, "no answer"); });
  attempt_ = connect(scheduler_, options_.address, [this](Result<std::unique_ptr<Socket>> socket) {
    scheduler_.cancel(timer_);
    if (socket.ok()) return send(std::move(socket).value());
    fail(socket.error().kind == ErrorKind::rejected ? ExchangeFailure::no_process
                                                    : ExchangeFailure::other,
         socket.error().message);
  });
}

BookExchange::~BookExchange() {
  scheduler_.cancel(timer_);
  if (stream_) stream_->close();
}

void BookExchange::send(std::unique_ptr<Socket> socket) {
  const auto records = options_.records(socket->local_host());
  if (options_.authenticator != nullptr)
    socket = options_.authenticator->connect_to_any(std::move(socket), shown_);
  stream_ = std::make_shared<HandshakeStream>(scheduler_, std::move(socket), options_.deadline,
                                              [this](const std::string& why) { on_end(why); });
  stream_->write(encode_book(network(), records), [this] {
    stream_->read_hello([this](const HelloPrefix& prefix) { return on_first_words(prefix); },
                        [this](const std::optional<Hello>& hello) { on_rejection(hello); });
  });
}

std::string BookExchange::network() const {
  return book_network(options_.identity.run_id, options_.identity.peers);
}

/// Whether a whole hello follows: a process that knows the key of this one explains its rejection.
bool BookExchange::on_first_words(const HelloPrefix& prefix) {
  if (prefix.version != kProtocolVersion) {
    fail(ExchangeFailure::refused, describe_version(prefix.version));
  } else if (prefix.opening == Opening::hello) {
    if (shown_->key) return true;
    show_settings(fmt::format(
        "its run, or its number of peers, is not ours, {} and {} (every machine needs the same "
        "file{})",
        options_.identity.run_id, options_.identity.peers,
        options_.shows_settings ? "; the other process prints a setting that differs" : ""));
  } else {
    stream_->read_book(
        options_.identity.peers, network(), [this](const std::optional<ReceivedBook>& book) {
          if (book && book->same_network) return finish(book->records);
          fail(ExchangeFailure::other, "its answer is no address book of this network");
        });
  }
  return false;
}

void BookExchange::on_rejection(const std::optional<Hello>& hello) {
  if (!hello)
    return fail(ExchangeFailure::other, "the process that answers there is no gossamer peer");
  const HandshakeResult difference = compare(options_.identity, hello->identity);
  fail(ExchangeFailure::refused, describe(difference, hello->identity, options_.identity, 0));
}

/// The answer says nothing new, and neither does a failure to get one: the exchange has failed.
void BookExchange::show_settings(const std::string& refusal) {
  const auto give_up = [this, refusal] { fail(ExchangeFailure::refused, refusal); };
  if (!options_.shows_settings) return give_up();
  stream_->close();
  timer_ = scheduler_.after(options_.deadline, give_up);
  attempt_ = connect(
      scheduler_, options_.address, [this, give_up](Result<std::unique_ptr<Socket>> socket) {
        if (!socket.ok()) return give_up();
        stream_ = std::make_shared<HandshakeStream>(scheduler_, std::move(socket).value(),
                                                    options_.deadline,
                                                    [give_up](const std::string&) { give_up(); });
        Hello hello;
        hello.from = hello.to = -1;
        hello.identity = options_.identity;
        stream_->write(encode_hello(hello), [this, give_up] {
          stream_->read(kHelloPrefixBytes, [give_up](std::span<const std::byte>) { give_up(); });
        });
      });
}

void BookExchange::on_end(const std::string& why) {
  const std::error_code error = stream_->error();
  if (error == TlsError::key_was_refused)
    return fail(ExchangeFailure::refused, options_.authenticator->describe_refusal());
  if (error == TlsError::refused_key)
    return fail(ExchangeFailure::other,
                fmt::format("the process that answers there has the key {}, which is that of no "
                            "member",
                            shown_->text()));
  fail(ExchangeFailure::other, why);
}

void BookExchange::finish(const std::vector<AddressRecord>& records) {
  const auto on_records = std::move(options_.on_records);  // may destroy this object
  on_records(records);
}

void BookExchange::fail(ExchangeFailure failure, const std::string& why) {
  scheduler_.cancel(timer_);
  const std::string reason = why;                          // may be of the stream
  const auto on_failure = std::move(options_.on_failure);  // may destroy this object
  on_failure(failure, reason);
}

}  // namespace gossamer::net
