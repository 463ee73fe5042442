// A proxy for the network tests: it forwards connections, and cuts, damages or holds them.
#pragma once

#include "tests/net/test_util.hpp"

namespace gossamer::net::words {

/// Forwards bytes between a connecting end and an accepting end.
class Proxy {
 public:
  Proxy(World& world, const Address& target) : world_(world), target_(target) { open(); }
  Address address() const { return address_; }
  /// Closes all connections; new ones are accepted.
  void cut() { pipes_.clear(); }
  /// Closes all connections and accepts no more, until open().
  void shut() {
    listener_.reset();
    cut();
  }
  void open() {
    auto opened = listen(world_.scheduler, address_,
                         [this](std::unique_ptr<Socket> socket) { accept(std::move(socket)); });
    REQUIRE(opened.ok());
    listener_ = std::move(opened).value();
    address_ = listener_->address();
  }
  /// Closes the accepting end of all connections that have one; the connecting end stays open and
  /// silent.
  void cut_there() {
    for (const auto& pipe : std::exchange(pipes_, {})) {
      if (pipe->ends[1].socket) pipe->ends[1].socket->close();
      (pipe->ends[1].socket ? mute_ : pipes_).push_back(pipe);
    }
  }
  /// Stops forwarding over the current connections.
  void hold() {
    for (auto& pipe : pipes_)
      for (End& end : pipe->ends) end.held = true;
  }
  int connections = 0;  ///< accepted so far
  /// The bytes that connection k, from 0, forwards in both directions together before it is closed.
  std::function<std::size_t(int k)> life = [](int) { return SIZE_MAX; };
  /// The position of the byte to damage among those that the connecting end sends over connection
  /// k.
  std::function<std::size_t(int k)> damage = [](int) { return SIZE_MAX; };
  /// The same for the bytes that the accepting end sends.
  std::function<std::size_t(int k)> damage_back = [](int) { return SIZE_MAX; };
  bool records = false;                          ///< keeps the bytes of the connecting ends
  std::vector<std::vector<std::byte>> recorded;  ///< by connection

 private:
  static constexpr int kMaxRecorded = 64;

  struct End final : SocketUser {
    void read_done(const Transfer& transfer) override {
      if (transfer.end || transfer.error) return over();
      left = std::min(transfer.bytes, *life);
      *life -= left;
      if (record != nullptr) record->insert(record->end(), bytes.begin(), bytes.begin() + left);
      if (damage >= passed && damage < passed + left) bytes[damage - passed] ^= std::byte{4};
      passed += left;
      write_on();
    }
    void write_done(const Transfer& transfer) override {
      if (transfer.error) return over();
      other->written += transfer.bytes;
      other->left -= transfer.bytes;
      other->write_on();
    }
    void write_on() {
      if (held) return;
      if (left == 0 && *life == 0) return over();
      const Area area{bytes.data() + written, left};
      if (left > 0) return other->socket->write({&area, 1});
      written = 0;
      const Area whole{bytes.data(), bytes.size()};
      socket->read({&whole, 1});
    }

    std::unique_ptr<Socket> socket;
    End* other = nullptr;
    std::vector<std::byte> bytes =
        std::vector<std::byte>(65536);  // received, to be sent by the other end
    std::size_t written = 0, left = 0;
    std::size_t* life = nullptr;
    std::size_t passed = 0, damage = SIZE_MAX;
    std::vector<std::byte>* record = nullptr;
    bool held = false;
    std::function<void()> over;
  };
  struct Pipe {
    std::unique_ptr<Attempt> attempt;
    End ends[2];
    std::size_t life = 0;
  };

  void accept(std::unique_ptr<Socket> socket) {
    auto owned = std::make_shared<Pipe>();
    Pipe& pipe = *owned;
    pipe.life = life(connections);
    pipe.ends[0].damage = damage(connections);
    pipe.ends[1].damage = damage_back(connections);
    recorded.resize(static_cast<std::size_t>(kMaxRecorded));
    if (records && connections < kMaxRecorded)
      pipe.ends[0].record = &recorded[static_cast<std::size_t>(connections)];
    ++connections;
    pipes_.push_back(std::move(owned));
    pipe.ends[0].socket = std::move(socket);
    const auto over = [this, &pipe] {
      const auto at =
          std::ranges::find_if(pipes_, [&](const auto& each) { return each.get() == &pipe; });
      if (at == pipes_.end()) return;
      const auto gone = *at;  // alive until this returns: one of its ends called
      pipes_.erase(at);
      for (End& end : gone->ends)
        if (end.socket) end.socket->close();
      world_.scheduler.after(0ns, [gone] {});
    };
    pipe.attempt = connect(world_.scheduler, target_,
                           [&pipe, over](Result<std::unique_ptr<Socket>> connected) {
                             if (!connected.ok()) return over();
                             pipe.ends[1].socket = std::move(connected).value();
                             for (int i : {0, 1}) {
                               pipe.ends[i].life = &pipe.life;
                               pipe.ends[i].other = &pipe.ends[1 - i];
                               pipe.ends[i].over = over;
                               pipe.ends[i].socket->set_user(&pipe.ends[i]);
                             }
                             for (End& end : pipe.ends) end.write_on();
                           });
  }

  World& world_;
  Address target_, address_{"127.0.0.1", 0};
  std::vector<std::shared_ptr<Pipe>> pipes_, mute_;
  std::unique_ptr<Listener> listener_;
};

/// Peers 0 and 1, joined through a proxy.
struct Cuttable {
  explicit Cuttable(
      double failure_timeout = 20, const std::function<void(Proxy&)>& prepare = [](Proxy&) {},
      std::vector<KeyPair> keys = {}, bool shares_memory = false)
      : world(2),
        front(world.folder.path() + "/front", "run-1"),
        behind(world.folder.path(), "run-1") {
    world.tolerates_loss = true;
    world.keys = std::move(keys);
    world.shares_memory = shares_memory;
    world.options.failure_timeout = failure_timeout;
    one = &world.add({1}, {{0, 1}});
    REQUIRE(one->network->start().ok());
    proxy = std::make_unique<Proxy>(world, one->network->address());
    prepare(*proxy);
    REQUIRE(front.announce({1}, proxy->address()).ok());
    world.options.rendezvous += "/front";  // where peer 0 reads addresses
    zero = &world.add({0}, {{0, 1}});
    REQUIRE(zero->network->start().ok());
    REQUIRE(behind.announce({0}, zero->network->address()).ok());
    world.run_until([&] { return zero->network->joined() && one->network->joined(); });
  }
  /// For a while no connection can replace one that breaks.
  void lose_link(long times) {
    proxy->shut();
    world.run_until(
        [&] { return zero->count("lost 0-1") == times && one->count("lost 1-0") == times; });
    proxy->open();
  }
  bool both_restored(long times) const {
    return zero->count("restored 0-1") == times && one->count("restored 1-0") == times;
  }

  World world;
  Rendezvous front, behind;  ///< folders of peers 0 and 1
  Process *zero, *one;
  std::unique_ptr<Proxy> proxy;
};

}  // namespace gossamer::net::words
