#include "net/startup/connector.hpp"

#include <fmt/format.h>

#include "net/tls/error.hpp"

namespace gossamer::net {

Connector::Connector(RealScheduler& scheduler, ConnectorOptions options)
    : scheduler_(scheduler),
      options_(std::move(options)),
      began_(scheduler.now()),
      patience_(options_.deadline / 4) {
  timer_ = scheduler_.after(options_.pause, [this] { attempt(); });
}

Connector::~Connector() {
  scheduler_.cancel(timer_);
  if (stream_) stream_->close();
}

std::string Connector::failure() const {
  if (attempts_ == 0) return failure_.empty() ? "not tried yet" : failure_;
  const double seconds = std::chrono::duration<double>(scheduler_.now() - began_).count();
  return fmt::format("{}, {} {} in {:.0f} s", failure_.empty() ? "connecting" : failure_, attempts_,
                     attempts_ == 1 ? "try" : "tries", seconds);
}

void Connector::attempt() {
  const auto address = options_.find();
  if (!address.ok()) return on_unreachable(address.error().message);
  address_ = to_string(*address);
  ++attempts_;
  timer_ = scheduler_.after(options_.deadline, [this] {
    answered_ = false;
    retry("no answer");
  });
  attempt_ = connect(scheduler_, *address, [this](Result<std::unique_ptr<Socket>> socket) {
    scheduler_.cancel(timer_);
    answered_ = answered_ && socket.ok();
    if (!socket.ok() && socket.error().kind == ErrorKind::rejected)
      return on_unreachable(socket.error().message);
    if (!socket.ok()) return retry(socket.error().message);
    begin_handshake({std::move(socket).value()});
  });
}

bool Connector::is_busy() const {
  return stream_ && !(stream_->silent() && scheduler_.now() - handshake_began_ >= patience_);
}

bool Connector::take(Connection connection) {
  if (is_busy() || scheduler_.now() < began_ + options_.pause) return false;
  attempt_.reset();
  if (stream_) {
    stream_->close();
    stream_.reset();
    patience_ *= 2;  // the way may be a long one
  }
  scheduler_.cancel(timer_);
  ++attempts_;
  begin_handshake(std::move(connection));
  return true;
}

void Connector::retry(std::string why) {
  failure_ = std::move(why);
  attempt_.reset();
  stream_.reset();
  scheduler_.cancel(timer_);
  timer_ = scheduler_.after(back_off_.next(), [this] { attempt(); });
}

void Connector::begin_handshake(Connection connection) {
  handshake_began_ = scheduler_.now();
  shown_ = std::make_shared<ShownKey>(ShownKey{connection.key});
  route_ = connection.route;
  std::unique_ptr<Socket> socket = std::move(connection.socket);
  if (options_.authenticator != nullptr && !connection.key)
    socket = options_.authenticator->connect(std::move(socket), options_.hello.to, shown_);
  stream_ = std::make_shared<HandshakeStream>(scheduler_, std::move(socket), options_.deadline,
                                              [this](const std::string& why) { on_end(why); });
  options_.hello.running = options_.running();
  Hello hello = options_.hello;
  if (hello.resumes) hello.identity.settings.clear();  // they were sent when the session began
  stream_->write(encode_hello(hello), [this] { read_answer(); });
}

/// The connection ended before the answer, or its deadline passed. Only a process that has proved
/// the key of the peer can reject the key of this one.
void Connector::on_end(const std::string& why) {
  answered_ = false;
  const std::error_code error = stream_->error();
  if (error == TlsError::key_was_refused)
    return on_rejection(options_.authenticator->describe_refusal());
  if (error == TlsError::refused_key)
    return retry(
        fmt::format("the process that answers there has the key {}, which is not that of {}",
                    shown_->text(), options_.name));
  retry(error.category() == tls_category() ? why : why + " to the hello");
}

void Connector::read_answer() {
  stream_->read_hello([this](const HelloPrefix& prefix) { return on_first_words(prefix); },
                      [this](const std::optional<Hello>& answer) { on_answer(answer); });
}

/// Whether a whole hello follows.
bool Connector::on_first_words(const HelloPrefix& prefix) {
  if (prefix.version != kProtocolVersion) {
    on_rejection(describe_version(prefix.version));
    return false;
  }
  if (is_accepted(prefix.result) || shown_->key) return true;
  // The other end has sent its reason as a number, and nothing else.
  on_refusal(prefix.result,
             describe_rejection(prefix.result, options_.hello.identity, options_.hello.from));
  return false;
}

void Connector::on_refusal(HandshakeResult result, const std::string& clause) {
  answered_ = route_.is_direct();
  const bool stale = options_.address_may_be_stale && result == HandshakeResult::not_hosted;
  return stale || is_retried(result) ? retry(clause) : on_rejection(clause);
}

void Connector::on_answer(const std::optional<Hello>& answer) {
  if (!answer) return retry("the process that answers there is no gossamer peer");
  const Hello& hello = options_.hello;
  if (!is_accepted(answer->result))
    return on_refusal(answer->result,
                      describe(answer->result, answer->identity, hello.identity, hello.from));
  const HandshakeResult difference = compare(hello.identity, answer->identity);
  if (difference != HandshakeResult::accepted)
    return on_rejection(describe(difference, answer->identity, hello.identity, hello.from));
  if (answer->from != hello.to) return retry(fmt::format("peer {} answers there", answer->from));
  if (shown_->key && !options_.authenticator->members().has(hello.to, *shown_->key))
    return retry(fmt::format("the key {} is no longer that of {}", shown_->text(), options_.name));
  Connection connection{stream_->release(), shown_->key, route_};
  const auto on_connected = options_.on_connected;  // may destroy this object
  on_connected(std::move(connection), *answer);
}

void Connector::on_unreachable(const std::string& why) {
  const auto on_unreachable = options_.on_unreachable;  // may destroy this object
  if (!on_unreachable || on_unreachable()) retry(why);
}

void Connector::on_rejection(const std::string& clause) {
  const auto on_rejected = options_.on_rejected;  // may destroy this object
  if (on_rejected({ErrorKind::rejected, fmt::format("{} at {} rejected this peer: {}",
                                                    options_.name, address_, clause)}))
    retry(clause);
}

}  // namespace gossamer::net
