#include "net/relay/relay.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace gossamer::net {

/// The connection of a peer that waits, and once it is called, that of the caller. Each end has the
/// bytes that were read from it and are to be written to the other one; it is read again when all
/// of them are.
class Relay::Circuit final : public std::enable_shared_from_this<Circuit> {
 public:
  Circuit(Relay& relay, Pair pair, std::unique_ptr<Socket> waits) : pair(pair), relay_(relay) {
    for (End& end : ends_) end.circuit = this;
    open(ends_[0], std::move(waits));
    // The read ends when the peer closes, or with the first byte that it sends when it is called.
    ends_[0].bytes.resize(1);
    read(ends_[0]);
    watch();
  }
  Circuit(const Circuit&) = delete;
  Circuit& operator=(const Circuit&) = delete;

  void connect(std::unique_ptr<Socket> caller) {
    open(ends_[1], std::move(caller));
    const auto answer = encode_rejection(HandshakeResult::accepted);
    ends_[1].bytes.assign(answer.begin(), answer.end());
    ends_[1].left = answer.size();
    write_rest(ends_[1]);
  }

  /// No call follows. The relay may be gone afterwards.
  void close() {
    relay_.scheduler_.cancel(timer_);
    for (End& end : ends_)
      if (end.socket) end.socket->close();
  }

  const Pair pair;

 private:
  struct End final : SocketUser {
    void read_done(const Transfer& transfer) override { circuit->on_read(*this, transfer); }
    void write_done(const Transfer& transfer) override { circuit->on_written(*this, transfer); }

    Circuit* circuit = nullptr;
    std::unique_ptr<Socket> socket;
    std::vector<std::byte> bytes;
    std::size_t written = 0, left = 0;  ///< of `bytes`, to the other end
    bool ended = false;                 ///< it sends nothing more
  };

  End& other(const End& end) { return &end == &ends_[0] ? ends_[1] : ends_[0]; }

  void open(End& end, std::unique_ptr<Socket> socket) {
    end.socket = std::move(socket);
    end.socket->set_user(&end);
  }

  void read(End& end) {
    const Area area{end.bytes.data(), end.bytes.size()};
    end.socket->read({&area, 1});
  }

  void write_rest(End& end) {
    const Area area{end.bytes.data() + end.written, end.left};
    other(end).socket->write({&area, 1});
  }

  void on_read(End& end, const Transfer& transfer) {
    const auto self = shared_from_this();
    if (transfer.error || !other(end).socket) return relay_.drop(*this);
    if (transfer.end) {
      end.ended = true;
      if (other(end).ended) return relay_.drop(*this);
      return other(end).socket->finish_sending();
    }
    active_ = true;
    end.left = transfer.bytes;
    write_rest(end);
  }

  /// Bytes of the other end have been written to this one.
  void on_written(End& end, const Transfer& transfer) {
    const auto self = shared_from_this();
    if (transfer.error) return relay_.drop(*this);
    End& source = other(end);
    source.written += transfer.bytes;
    source.left -= transfer.bytes;
    if (source.left > 0) return write_rest(source);
    source.written = 0;
    source.bytes.resize(kBufferBytes);
    read(source);
  }

  /// The machines of both ends may be gone, or one end may never close after the other has.
  void watch() {
    timer_ = relay_.scheduler_.after(relay_.idle_, [this] {
      if (!std::exchange(active_, false)) return relay_.drop(*this);
      watch();
    });
  }

  Relay& relay_;
  std::array<End, 2> ends_;  ///< of the peer that waits, and of the caller
  bool active_ = true;       ///< something has passed since the timer was set
  gossip::Scheduler::TimerId timer_;
};

Relay::Relay(RealScheduler& scheduler, gossip::Time idle) : scheduler_(scheduler), idle_(idle) {}

Relay::~Relay() {
  for (const auto& [pair, circuit] : waiting_) circuit->close();
  for (const auto& circuit : connected_) circuit->close();
}

std::size_t Relay::waits_of(int peer) const {
  const auto of_peer = [peer](const Pair& pair) { return pair.first == peer; };
  return static_cast<std::size_t>(
      std::ranges::count_if(waiting_, [&](const auto& entry) { return of_peer(entry.first); }) +
      std::ranges::count_if(connected_, [&](const auto& each) { return of_peer(each->pair); }));
}

HandshakeResult Relay::admit(const RelayRequest& request) const {
  using enum HandshakeResult;
  const bool waits = request.kind == RelayRequest::Kind::wait;
  if (!waits && !waiting_.contains({request.to, request.from})) return does_not_wait;
  if (!waits) return connected_.size() < kMostPairs ? accepted : relays_nothing;
  if (waiting_.contains({request.from, request.to})) return accepted;
  return waiting_.size() < kMostWaiting && waits_of(request.from) < kMostOfPeer ? accepted
                                                                                : relays_nothing;
}

void Relay::wait(const RelayRequest& request, std::unique_ptr<Socket> socket) {
  const Pair pair{request.from, request.to};
  if (const auto earlier = waiting_.find(pair); earlier != waiting_.end()) drop(*earlier->second);
  waiting_.emplace(pair, std::make_shared<Circuit>(*this, pair, std::move(socket)));
}

void Relay::call(const RelayRequest& request, std::unique_ptr<Socket> socket) {
  const auto found = waiting_.find({request.to, request.from});
  if (found == waiting_.end()) return;
  const auto circuit = std::move(found->second);
  waiting_.erase(found);
  connected_.insert(circuit);
  circuit->connect(std::move(socket));
}

/// May be called from within a call of a socket of the circuit, which lives until the loop's next
/// turn.
void Relay::drop(const Circuit& circuit) {
  std::shared_ptr<Circuit> dropped;
  const auto connected =
      std::ranges::find_if(connected_, [&](const auto& entry) { return entry.get() == &circuit; });
  if (connected != connected_.end()) {
    dropped = *connected;
    connected_.erase(connected);
  } else if (const auto waits = waiting_.find(circuit.pair); waits != waiting_.end()) {
    dropped = waits->second;
    waiting_.erase(waits);
  }
  if (!dropped) return;
  dropped->close();
  scheduler_.after(gossip::Time(0), [dropped] {});
}

}  // namespace gossamer::net
