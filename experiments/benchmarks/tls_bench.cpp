// bench_tls: the speed of one stream, plain and encrypted, over loopback TCP. Both ends run on one
// thread. The speeds are bits per second of CPU time, so other jobs on the machine count less.
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

#include "net/io/real_scheduler.hpp"
#include "net/tls/engine.hpp"
#include "net/tls/tls_socket.hpp"

namespace {

using namespace gossamer::net;

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr std::size_t kStreamBytes = std::size_t{2} << 30;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double gbit(std::size_t bytes, double seconds) {
  return 8e-9 * static_cast<double>(bytes) / seconds;
}

/// Sends the same chunk, or receives into it, until the stream has had kStreamBytes.
class End final : public SocketUser {
 public:
  End(std::unique_ptr<Socket> socket, bool sends)
      : socket_(std::move(socket)), sends_(sends), chunk_(kChunkBytes) {
    socket_->set_user(this);
    next();
  }
  bool done() const { return done_ >= kStreamBytes; }

  void read_done(const Transfer& transfer) override { took(transfer); }
  void write_done(const Transfer& transfer) override { took(transfer); }

 private:
  void took(const Transfer& transfer) {
    if (transfer.error || transfer.end) {
      fmt::print(stderr, "bench_tls: {}\n", reason(transfer));
      std::exit(1);
    }
    done_ += transfer.bytes;
    at_ = (at_ + transfer.bytes) % kChunkBytes;
    if (!done()) next();
  }
  void next() {
    const Area area{chunk_.data() + at_, kChunkBytes - at_};
    if (sends_) socket_->write({&area, 1});
    else socket_->read({&area, 1});
  }

  std::unique_ptr<Socket> socket_;
  bool sends_;
  std::vector<std::byte> chunk_;
  std::size_t at_ = 0, done_ = 0;
};

/// Gbit per CPU second of both ends together.
double stream(bool is_encrypted) {
  RealScheduler scheduler;
  const TlsContext context(KeyPair::generate());
  const auto wrap = [&](std::unique_ptr<Socket> socket, TlsRole role) {
    if (!is_encrypted) return socket;
    return encrypted(scheduler, std::move(socket), context, role,
                     [](const PublicKey&) { return true; });
  };
  std::unique_ptr<End> sender, receiver;
  auto listener = listen(scheduler, {"127.0.0.1", 0}, [&](std::unique_ptr<Socket> socket) {
    receiver = std::make_unique<End>(wrap(std::move(socket), TlsRole::server), false);
  });
  if (!listener.ok()) std::exit(1);
  auto attempt = connect(scheduler, listener.value()->address(),
                         [&](gossamer::Result<std::unique_ptr<Socket>> socket) {
                           if (!socket.ok()) std::exit(1);
                           sender = std::make_unique<End>(
                               wrap(std::move(socket).value(), TlsRole::client), true);
                         });
  const double begin = cpu_seconds();
  scheduler.run_until([&] { return receiver && receiver->done(); });
  return gbit(kStreamBytes, cpu_seconds() - begin);
}

/// Gbit per CPU second of encrypting and of decrypting, without sockets.
std::pair<double, double> records() {
  const TlsContext context(KeyPair::generate());
  const auto any = [](const PublicKey&) { return true; };
  TlsEngine client(context, TlsRole::client, any), server(context, TlsRole::server, any);
  std::vector<std::byte> chunk(kChunkBytes);
  double encrypting = 0, decrypting = 0;
  const auto carry = [&](TlsEngine& from, TlsEngine& to) {
    for (auto bytes = from.take_output(); !bytes.empty();) {
      const Area room = to.input_room();
      const std::size_t count = std::min(room.size, bytes.size());
      std::copy_n(bytes.begin(), count, static_cast<std::byte*>(room.data));
      to.input_filled(count);
      bytes = bytes.subspan(count);
      const double begin = cpu_seconds();
      const Area area{chunk.data(), chunk.size()};
      if (!to.established()) to.handshake();
      if (to.established()) to.decrypt({&area, 1});
      decrypting += cpu_seconds() - begin;
    }
  };
  client.handshake();
  for (int turn = 0; turn < 3; ++turn) carry(client, server), carry(server, client);
  decrypting = 0;
  for (std::size_t done = 0; done < kStreamBytes;) {
    const double begin = cpu_seconds();
    const Area area{chunk.data(), chunk.size()};
    done += client.encrypt({&area, 1}).bytes;
    encrypting += cpu_seconds() - begin;
    carry(client, server);
  }
  return {gbit(kStreamBytes, encrypting), gbit(kStreamBytes, decrypting)};
}

}  // namespace

int main() {
  const auto [encrypting, decrypting] = records();
  fmt::print("records alone: encrypting {:.1f}, decrypting {:.1f} Gbit/s a core\n", encrypting,
             decrypting);
  for (const bool is_encrypted : {false, true, false, true, false, true}) {
    const double both = stream(is_encrypted);
    fmt::print("{} stream over loopback: {:.1f} Gbit/s with both ends on one core\n",
               is_encrypted ? "encrypted" : "plain", both);
  }
}
