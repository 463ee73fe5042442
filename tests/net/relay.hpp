// A relay for the network tests: connections go through it, and it cuts them.
#pragma once

#include "tests/net/test_util.hpp"

namespace gossamer::net::words {

/// Stands between a caller and a listener, and cuts, damages or holds what goes through it.
class Relay {
 public:
  Relay(World& world, const Address& target) : world_(world), target_(target) { open(); }
  Address address() const { return address_; }
  /// Ends all connections through it; new ones are made.
  void cut() { pipes_.clear(); }
  /// Ends all connections, and takes no more: whoever calls is refused, until open().
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
  /// Ends the listener's end of all connections; the caller's stays open, and mute.
  void cut_there() {
    for (auto& pipe : pipes_) {
      pipe->ends[1].socket->close();
      mute_.push_back(std::move(pipe));
    }
    pipes_.clear();
  }
  /// Passes nothing on over the connections that there are.
  void hold() {
    for (auto& pipe : pipes_)
      for (End& end : pipe->ends) end.held = true;
  }
  int connections = 0;  ///< so many were made
  /// How many bytes connection k, from 0, passes on, both ways together, before it ends.
  std::function<std::size_t(int k)> life = [](int) { return SIZE_MAX; };
  /// Which byte that the caller sends over connection k is damaged.
  std::function<std::size_t(int k)> damage = [](int) { return SIZE_MAX; };

 private:
  struct End final : SocketUser {
    void read_done(const Transfer& transfer) override {
      if (transfer.end || transfer.error) return over();
      left = std::min(transfer.bytes, *life);
      *life -= left;
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
        std::vector<std::byte>(65536);  // that came in and go out of the other
    std::size_t written = 0, left = 0;
    std::size_t* life = nullptr;
    std::size_t passed = 0, damage = SIZE_MAX;
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
    ++connections;
    pipes_.push_back(std::move(owned));
    pipe.ends[0].socket = std::move(socket);
    const auto over = [this, &pipe] {
      const auto at =
          std::ranges::find_if(pipes_, [&](const auto& each) { return each.get() == &pipe; });
      if (at == pipes_.end()) return;
      const auto gone = *at;  // alive until we return: one of its ends has called
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

/// Peers 0 and 1, joined, and between them a relay.
struct Cuttable {
  explicit Cuttable(
      double failure_timeout = 20, const std::function<void(Relay&)>& prepare = [](Relay&) {})
      : world(2),
        front(world.folder.path() + "/front", "run-1"),
        behind(world.folder.path(), "run-1") {
    world.bears = true;
    world.options.failure_timeout = failure_timeout;
    one = &world.add({1}, {{0, 1}});
    REQUIRE(one->network->start().ok());
    relay = std::make_unique<Relay>(world, one->network->address());
    prepare(*relay);
    REQUIRE(front.announce({1}, relay->address()).ok());
    world.options.rendezvous += "/front";  // where peer 0 looks
    zero = &world.add({0}, {{0, 1}});
    REQUIRE(zero->network->start().ok());
    REQUIRE(behind.announce({0}, zero->network->address()).ok());
    world.run_until([&] { return zero->network->joined() && one->network->joined(); });
  }
  /// Nobody can go on with the connection that breaks, for a while.
  void lose(long times) {
    relay->shut();
    world.run_until(
        [&] { return zero->count("lost 0-1") == times && one->count("lost 1-0") == times; });
    relay->open();
  }
  bool both_back(long times) const {
    return zero->count("back 0-1") == times && one->count("back 1-0") == times;
  }

  World world;
  Rendezvous front, behind;  ///< where peers 0 and 1 look
  Process *zero, *one;
  std::unique_ptr<Relay> relay;
};

}  // namespace gossamer::net::words
