#include "net/io/socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <asio/connect.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/host_name.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <cctype>
#include <cerrno>
#include <vector>

#include "base/check.hpp"

namespace gossamer::net {

namespace {

using asio::ip::tcp;

std::string words(const std::error_code& error) {
  std::string text = error.message();
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string text(const tcp::endpoint& endpoint) {
  return to_string(Address{endpoint.address().to_string(), endpoint.port()});
}

/// An IPv4 address that an IPv6 socket shows as its own.
asio::ip::address unmapped(const asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
}

Transfer transfer(const std::error_code& error, std::size_t bytes) {
  if (error == asio::error::eof) return {bytes, true, {}};
  return {bytes, false, error};
}

}  // namespace

std::string reason(const Transfer& transfer) {
  return transfer.end ? std::string("the connection was closed") : words(transfer.error);
}

namespace {

class TcpSocket final : public Socket {
 public:
  explicit TcpSocket(tcp::socket socket) : state_(std::make_shared<State>(std::move(socket))) {}
  ~TcpSocket() override { TcpSocket::close(); }

  void set_user(SocketUser* user) override { state_->user = user; }

  void read(std::span<const Area> areas) override {
    GOSSAMER_CHECK(areas.size() <= kMaxAreas, "too many areas");
    for (std::size_t i = 0; i < areas.size(); ++i) state_->into[i] = {areas[i].data, areas[i].size};
    state_->socket.async_read_some(
        std::span(state_->into).first(areas.size()),
        [state = state_](const std::error_code& error, std::size_t bytes) {
          if (state->user != nullptr) state->user->read_done(transfer(error, bytes));
        });
  }

  void write(std::span<const Area> areas) override {
    GOSSAMER_CHECK(areas.size() <= kMaxAreas, "too many areas");
    for (std::size_t i = 0; i < areas.size(); ++i) state_->from[i] = {areas[i].data, areas[i].size};
    state_->socket.async_write_some(
        std::span(state_->from).first(areas.size()),
        [state = state_](const std::error_code& error, std::size_t bytes) {
          if (state->user != nullptr) state->user->write_done(transfer(error, bytes));
        });
  }

  void finish_sending() override {
    std::error_code ignored;
    state_->socket.shutdown(tcp::socket::shutdown_send, ignored);
  }

  void close() override {
    state_->user = nullptr;
    std::error_code ignored;
    state_->socket.close(ignored);
  }

  const std::string& remote() const override { return state_->remote; }
  bool is_local() const override { return state_->is_local; }
  std::string local_host() const override { return state_->local_host; }

 private:
  // Pending operations hold the state, which outlives the socket until the last of them has
  // completed.
  struct State {
    explicit State(tcp::socket socket_in) : socket(std::move(socket_in)) {
      std::error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      socket.non_blocking(true, ignored);
      const tcp::endpoint endpoint = socket.remote_endpoint(ignored);
      if (ignored) return;
      remote = text(endpoint);
      const tcp::endpoint own = socket.local_endpoint(ignored);
      if (!ignored) local_host = unmapped(own.address()).to_string();
      is_local = unmapped(endpoint.address()).is_loopback() || endpoint.address() == own.address();
    }

    tcp::socket socket;
    SocketUser* user = nullptr;
    std::string remote = "an unknown address", local_host;
    bool is_local = false;
    std::array<asio::mutable_buffer, kMaxAreas> into;
    std::array<asio::const_buffer, kMaxAreas> from;
  };

  std::shared_ptr<State> state_;
};

class TcpAttempt final : public Attempt {
 public:
  TcpAttempt(RealScheduler& scheduler, const Address& address, OnConnected done)
      : work_(std::make_shared<Work>(scheduler.context(), std::move(done))) {
    std::error_code error;
    const auto number = asio::ip::make_address(address.host, error);
    if (!error) {
      dial(work_, {tcp::endpoint(number, address.port)});
      return;
    }
    scheduler.names().resolve(
        address.host, [work = work_, address](const Result<NameLookup::Addresses>& found) {
          if (!work->done) return;
          if (!found.ok())
            return work->finish(Error{
                ErrorKind::network,
                fmt::format("cannot resolve the name {}: {} (net.listen of that process can be an "
                            "address, or 127.0.0.1:0 on one machine)",
                            address.host, found.error().message)});
          std::vector<tcp::endpoint> endpoints;
          for (const std::string& number : *found)
            if (std::error_code failed; asio::ip::make_address(number, failed), !failed)
              endpoints.emplace_back(asio::ip::make_address(number), address.port);
          dial(work, std::move(endpoints));
        });
  }
  ~TcpAttempt() override {
    work_->done = nullptr;
    std::error_code ignored;
    work_->socket.close(ignored);
  }

 private:
  struct Work {
    Work(asio::io_context& context, OnConnected done_in)
        : socket(context), done(std::move(done_in)) {}
    void finish(Result<std::unique_ptr<Socket>> result) {
      std::exchange(done, nullptr)(std::move(result));
    }

    tcp::socket socket;
    std::vector<tcp::endpoint> endpoints;
    OnConnected done;
  };

  static void dial(const std::shared_ptr<Work>& work, std::vector<tcp::endpoint> endpoints) {
    work->endpoints = std::move(endpoints);
    asio::async_connect(work->socket, work->endpoints,
                        [work](const std::error_code& failed, const tcp::endpoint& remote) {
                          if (!work->done) return;
                          if (failed)
                            return work->finish(Error{failed == asio::error::connection_refused
                                                          ? ErrorKind::rejected
                                                          : ErrorKind::network,
                                                      words(failed)});
                          // The system may have chosen the remote port as this socket's own: the
                          // socket is then connected to itself.
                          std::error_code error;
                          if (work->socket.local_endpoint(error) == remote || error)
                            return work->finish(Error{ErrorKind::rejected, "connection refused"});
                          work->finish(std::unique_ptr<Socket>(
                              std::make_unique<TcpSocket>(std::move(work->socket))));
                        });
  }

  std::shared_ptr<Work> work_;
};

class TcpListener final : public Listener {
 public:
  TcpListener(asio::io_context& context, Address address,
              std::function<void(std::unique_ptr<Socket>)> accepted)
      : work_(std::make_shared<Work>(context, std::move(accepted))), address_(std::move(address)) {}
  ~TcpListener() override {
    work_->accepted = nullptr;
    work_->pause.cancel();
    std::error_code ignored;
    work_->acceptor.close(ignored);
  }

  /// Accepts the connections to the port of this descriptor, which stays open.
  std::error_code accept_from(int descriptor) {
    Descriptor own(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (!own.is_open() ||
        ::getsockname(own.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
      return {errno, std::system_category()};
    std::error_code error;
    work_->acceptor.assign(address.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), own.get(), error);
    if (error) return error;
    own.release();
    accept(work_);
    return {};
  }

  Address address() const override { return address_; }
  void pause(gossip::Time time) override {
    work_->until = asio::steady_timer::clock_type::now() + time;
  }

 private:
  struct Work {
    Work(asio::io_context& context, std::function<void(std::unique_ptr<Socket>)> accepted_in)
        : acceptor(context), pause(context), accepted(std::move(accepted_in)) {}
    tcp::acceptor acceptor;
    asio::steady_timer pause;
    asio::steady_timer::time_point until;  ///< of the pause
    std::function<void(std::unique_ptr<Socket>)> accepted;
  };

  static void accept(const std::shared_ptr<Work>& work) {
    work->acceptor.async_accept([work](const std::error_code& failed, tcp::socket socket) {
      if (!work->accepted) return;
      if (!failed) {
        work->accepted(std::make_unique<TcpSocket>(std::move(socket)));
        if (!work->accepted) return;
        if (work->until <= asio::steady_timer::clock_type::now()) return accept(work);
      } else {
        // For example no file descriptor is left: the connection waits in the queue.
        work->until = asio::steady_timer::clock_type::now() + std::chrono::milliseconds(100);
      }
      work->pause.expires_at(work->until);
      work->pause.async_wait([work](const std::error_code& cancelled) {
        if (!cancelled && work->accepted) accept(work);
      });
    });
  }

  std::shared_ptr<Work> work_;
  Address address_;
};

std::error_code open_port(tcp::acceptor& acceptor, const Address& address) {
  std::error_code error;
  tcp::endpoint endpoint(asio::ip::make_address(address.host, error), address.port);
  if (error) {
    tcp::resolver resolver(acceptor.get_executor());
    const auto found =
        resolver.resolve(address.host, std::to_string(address.port), tcp::resolver::passive, error);
    if (error) return error;
    endpoint = *found.begin();
  }
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(kBacklog, error);
  return error;
}

Error cannot_listen(const Address& address, const std::error_code& error) {
  std::string message = fmt::format("cannot listen on {}: {}", to_string(address), words(error));
  if (error == asio::error::address_in_use)
    message +=
        "; another program, or another peer, holds this port: stop it, or give another in "
        "net.listen or net.peers";
  else if (error == asio::error::no_descriptors) message += fmt::format("; {}", kRaiseOpenFiles);
  else message += "; give an address of this machine in net.listen or net.peers";
  return {ErrorKind::network, std::move(message)};
}

}  // namespace

std::unique_ptr<Attempt> connect(RealScheduler& scheduler, const Address& address,
                                 OnConnected done) {
  return std::make_unique<TcpAttempt>(scheduler, address, std::move(done));
}

Result<OpenPort> OpenPort::open(const Address& address) {
  asio::io_context context;
  tcp::acceptor acceptor(context);
  if (const std::error_code error = open_port(acceptor, address))
    return cannot_listen(address, error);
  const tcp::endpoint bound = acceptor.local_endpoint();
  return OpenPort({address.host, bound.port()}, unmapped(bound.address()).is_loopback(),
                  Descriptor(acceptor.release()));
}

Result<std::unique_ptr<Listener>> listen(RealScheduler& scheduler, const OpenPort& port,
                                         std::function<void(std::unique_ptr<Socket>)> accepted) {
  auto listener =
      std::make_unique<TcpListener>(scheduler.context(), port.address(), std::move(accepted));
  if (const std::error_code error = listener->accept_from(port.descriptor()))
    return cannot_listen(port.address(), error);
  return std::unique_ptr<Listener>(std::move(listener));
}

Result<std::unique_ptr<Listener>> listen(RealScheduler& scheduler, const Address& address,
                                         std::function<void(std::unique_ptr<Socket>)> accepted) {
  GOSSAMER_TRY(const OpenPort port, OpenPort::open(address));
  return listen(scheduler, port, std::move(accepted));
}

std::string host_name() {
  std::error_code error;
  std::string name = asio::ip::host_name(error);
  return error ? std::string("localhost") : name;
}

}  // namespace gossamer::net
