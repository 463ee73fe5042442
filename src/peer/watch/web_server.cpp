#include "peer/watch/web_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <kj/async-io.h>
#include <kj/compat/http.h>
#include <kj/debug.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include <csignal>
#include <cstddef>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace gossamer::peer {
namespace {

constexpr auto kRetry = 100 * kj::MILLISECONDS;  // after a connection could not be accepted
constexpr auto kLinger = 20 * kj::MILLISECONDS;  // of a connection that was answered

const char* text_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 503: return "Service Unavailable";
    default: return "Internal Server Error";
  }
}

kj::Duration in_kj(std::chrono::milliseconds duration) {
  return duration.count() * kj::MILLISECONDS;
}

/// The system's reason in the description of an exception: "::bind(…): Address in use; …".
std::string reason_in(std::string_view description) {
  if (const auto call = description.find("): "); call != description.npos)
    description.remove_prefix(call + 3);
  return std::string(description.substr(0, description.find(';')));
}

/// The host in the field Host, without its port and brackets.
std::string host_in(std::string_view field) {
  if (!field.starts_with('[')) return std::string(field.substr(0, field.find(':')));
  const std::size_t end = field.find(']');
  if (end == field.npos || (end + 1 < field.size() && field[end + 1] != ':')) return {};
  return std::string(field.substr(1, end - 1));
}

/// Where a socket is bound.
struct Bound {
  bool local = false;  ///< only this machine reaches it
  bool any = false;    ///< every interface of the machine
};

Bound bound_of(kj::ConnectionReceiver& receiver) {
  sockaddr_storage storage{};
  kj::uint length = sizeof storage;
  receiver.getsockname(reinterpret_cast<sockaddr*>(&storage), &length);
  if (storage.ss_family == AF_INET) {
    const auto number = ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr);
    return {number >> 24 == 127, number == INADDR_ANY};
  }
  const in6_addr& number = reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&number)) return {number.s6_addr[12] == 127, number.s6_addr[12] == 0};
  return {IN6_IS_ADDR_LOOPBACK(&number) != 0, IN6_IS_ADDR_UNSPECIFIED(&number) != 0};
}

/// The address of a connection's other end, without its port; none if that end has gone already.
std::optional<std::string> origin_of(kj::AsyncIoStream& stream) {
  sockaddr_storage storage{};
  kj::uint length = sizeof storage;
  try {
    stream.getpeername(reinterpret_cast<sockaddr*>(&storage), &length);
  } catch (const kj::Exception&) {
    return std::nullopt;
  }
  const auto bytes = [](const auto& number) {
    return std::string(reinterpret_cast<const char*>(&number), sizeof number);
  };
  return storage.ss_family == AF_INET
             ? bytes(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr)
             : bytes(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
}

class Service final : public kj::HttpService {
 public:
  /// `own_host`: the name that requests must have, or one of this machine; empty: any.
  Service(WebServer::Answer answer, std::string own_host, kj::Duration time_to_answer,
          kj::Timer& timer, const kj::HttpHeaderTable& table)
      : answer_(std::move(answer)),
        own_host_(std::move(own_host)),
        time_to_answer_(time_to_answer),
        timer_(timer),
        table_(table) {}

  kj::Promise<void> request(kj::HttpMethod method, kj::StringPtr url,
                            const kj::HttpHeaders& headers, kj::AsyncInputStream&,
                            Response& response) override {
    const bool reads = method == kj::HttpMethod::GET || method == kj::HttpMethod::HEAD;
    return send(!reads                ? WebAnswer{405, "text/plain", "only GET is answered\n"}
                : !is_for_us(headers) ? WebAnswer{403, "text/plain", "another host is asked\n"}
                                      : answer_({url.begin(), url.size()}),
                method != kj::HttpMethod::HEAD, response);
  }

 private:
  bool is_for_us(const kj::HttpHeaders& headers) const {
    if (own_host_.empty()) return true;
    KJ_IF_MAYBE (field, headers.get(kj::HttpHeaderId::HOST)) {
      const std::string host = host_in({field->begin(), field->size()});
      return host == own_host_ || net::is_loopback({host, 0});
    }
    return false;
  }

  kj::Promise<void> send(WebAnswer answer, bool with_content, Response& response) {
    kj::HttpHeaders headers(table_);
    headers.set(kj::HttpHeaderId::CONTENT_TYPE, kj::str(answer.type.c_str()));
    if (answer.status == 405) headers.add("Allow", "GET, HEAD");
    headers.add("Cache-Control", "no-store");
    headers.add("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'");
    headers.add("Cross-Origin-Resource-Policy", "same-origin");
    headers.add("X-Content-Type-Options", "nosniff");
    auto stream = response.send(static_cast<kj::uint>(answer.status), text_of(answer.status),
                                headers, answer.content.size());
    if (!with_content) return kj::READY_NOW;
    auto content = kj::heap<std::string>(std::move(answer.content));
    auto written = stream->write(content->data(), content->size());
    return timer_.timeoutAfter(time_to_answer_, kj::mv(written))
        .attach(kj::mv(stream), kj::mv(content));
  }

  WebServer::Answer answer_;
  std::string own_host_;
  kj::Duration time_to_answer_;
  kj::Timer& timer_;
  const kj::HttpHeaderTable& table_;
};

/// Of one connection. KJ says that an answer ends it, and yet would answer the requests that have
/// come behind the first one.
class FirstRequest final : public kj::HttpService {
 public:
  explicit FirstRequest(kj::HttpService& service) : service_(service) {}

  kj::Promise<void> request(kj::HttpMethod method, kj::StringPtr url,
                            const kj::HttpHeaders& headers, kj::AsyncInputStream& body,
                            Response& response) override {
    // Without an answer, KJ closes the connection.
    if (std::exchange(asked_, true)) return KJ_EXCEPTION(DISCONNECTED, "a further request");
    return service_.request(method, url, headers, body, response);
  }

 private:
  kj::HttpService& service_;
  bool asked_ = false;
};

/// A client that breaks the protocol, or goes away, is no news, and an answer ends its connection.
class Manners final : public kj::TaskSet::ErrorHandler,
                      public kj::HttpServerErrorHandler,
                      public kj::HttpServerCallbacks {
 public:
  bool shouldClose() override { return true; }
  void taskFailed(kj::Exception&&) override {}
  kj::Promise<void> handleApplicationError(kj::Exception,
                                           kj::Maybe<kj::HttpService::Response&>) override {
    return kj::READY_NOW;
  }
};

/// Serves the connections that come in, a limited number at a time.
class Reception {
 public:
  Reception(kj::Own<kj::ConnectionReceiver> receiver, const WebLimits& limits, kj::Timer& timer,
            const kj::HttpHeaderTable& table, kj::HttpService& service)
      : most_(limits.connections),
        most_of_one_(limits.of_one_address),
        longest_(in_kj(limits.request + limits.answer)),
        receiver_(kj::mv(receiver)),
        timer_(timer),
        server_(
            timer, table,
            [&service](kj::AsyncIoStream&) -> kj::Own<kj::HttpService> {
              return kj::heap<FirstRequest>(service);
            },
            settings(in_kj(limits.request))),
        connections_(manners_) {}

  /// Never ends: what fails at one connection does not keep the next one from being accepted.
  kj::Promise<void> run() {
    return receiver_->accept()
        .then([this](kj::Own<kj::AsyncIoStream> stream) { serve(kj::mv(stream)); })
        .catch_([this](kj::Exception&&) { return timer_.afterDelay(kRetry); })
        .then([this] { return run(); });
  }

 private:
  kj::HttpServerSettings settings(kj::Duration request) {
    kj::HttpServerSettings settings;
    settings.headerTimeout = request;
    settings.pipelineTimeout = kLinger;  // KJ would wait for another request
    settings.errorHandler = manners_;
    settings.callbacks = manners_;
    return settings;
  }

  /// A connection that is too many is closed.
  void serve(kj::Own<kj::AsyncIoStream> stream) {
    if (open_ == most_) return;
    const auto origin = origin_of(*stream);
    if (!origin || open_of_[*origin] == most_of_one_) return;
    ++open_;
    ++open_of_[*origin];
    auto served = timer_.timeoutAfter(longest_, server_.listenHttp(kj::mv(stream)));
    connections_.add(served.attach(kj::defer([this, origin = *origin] {
      --open_;
      if (--open_of_[origin] == 0) open_of_.erase(origin);
    })));
  }

  int most_, most_of_one_;
  kj::Duration longest_;  ///< a connection lasts
  Manners manners_;
  kj::Own<kj::ConnectionReceiver> receiver_;
  kj::Timer& timer_;
  kj::HttpServer server_;
  int open_ = 0;
  std::map<std::string, int> open_of_;  ///< by origin, which have one at least
  kj::TaskSet connections_;
};

}  // namespace

class WebServer::Loop {
 public:
  struct Started {
    std::uint16_t port = 0;
    Bound bound = {};
    kj::Own<kj::CrossThreadPromiseFulfiller<void>> stop;
    std::string failure = {};  ///< empty: it listens
  };

  Loop(net::Address address, Answer answer, const WebLimits& limits) {
    // A signal is for the thread that runs the peers.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::promise<Started> started;
    auto result = started.get_future();
    thread_ = std::thread([address = std::move(address), answer = std::move(answer), limits,
                           started = std::move(started)]() mutable {
      run(address, std::move(answer), limits, started);
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    started_ = result.get();
  }

  ~Loop() {
    if (started_.failure.empty()) started_.stop->fulfill();
    thread_.join();
  }

  const Started& started() const { return started_; }

 private:
  static void run(const net::Address& address, Answer answer, const WebLimits& limits,
                  std::promise<Started>& started) {
    bool told = false;
    try {
      auto io = kj::setupAsyncIo();
      auto& timer = io.provider->getTimer();
      auto receiver = io.provider->getNetwork()
                          .parseAddress(net::to_string(address).c_str())
                          .wait(io.waitScope)
                          ->listen();
      auto end = kj::newPromiseAndCrossThreadFulfiller<void>();
      const auto port = static_cast<std::uint16_t>(receiver->getPort());
      const auto table = kj::HttpHeaderTable::Builder().build();
      const Bound bound = bound_of(*receiver);
      Service service(std::move(answer), bound.local ? address.host : "", in_kj(limits.answer),
                      timer, *table);
      Reception reception(kj::mv(receiver), limits, timer, *table, service);
      started.set_value({port, bound, kj::mv(end.fulfiller)});
      told = true;
      reception.run().exclusiveJoin(kj::mv(end.promise)).wait(io.waitScope);
    } catch (const kj::Exception& failure) {
      if (!told) started.set_value({0, {}, {}, reason_in(failure.getDescription().cStr())});
    }
  }

  std::thread thread_;
  Started started_;
};

Result<std::unique_ptr<WebServer>> WebServer::start(const std::string& name,
                                                    const net::Address& address, Answer answer,
                                                    const WebLimits& limits) {
  // KJ takes them for more than names of hosts.
  for (const char* host : {"unix", "unix-abstract", "*"})
    if (address.host == host) return invalid_error(fmt::format("{}: '{}' is no host", name, host));
  std::unique_ptr<WebServer> server(new WebServer(address));
  server->loop_ = std::make_unique<Loop>(address, std::move(answer), limits);
  if (const std::string& failure = server->loop_->started().failure; !failure.empty())
    return Error{ErrorKind::network, fmt::format("{}: cannot listen at {}: {}", name,
                                                 net::to_string(address), failure)};
  server->port_ = server->loop_->started().port;
  server->is_local_ = server->loop_->started().bound.local;
  if (server->loop_->started().bound.any) server->address_.host = "localhost";
  return server;
}

WebServer::WebServer(net::Address address) : address_(std::move(address)) {}

WebServer::~WebServer() = default;

std::string WebServer::url() const {
  return fmt::format("http://{}/", net::to_string({address_.host, port_}));
}

}  // namespace gossamer::peer
