// A relay for the network tests: connections go through it, and it cuts them.
#pragma once

#include "net_words.hpp"

namespace gossamer::net::words {

/// Stands between a caller and a listener, and cuts what goes through it.
class Relay {
 public:
  Relay(World& world, const Address& target) : world_(world), target_(target) {
    auto opened = listen(world.scheduler, {"127.0.0.1", 0}, [this](std::unique_ptr<Socket> socket) { accept(std::move(socket)); });
    REQUIRE(opened.ok());
    listener_ = std::move(opened).value();
  }
  Address address() const { return listener_->address(); }
  /// Ends all connections through it; new ones are made.
  void cut() { pipes_.clear(); }

 private:
  struct End final : SocketUser {
    void read_done(const Transfer& transfer) override {
      if (transfer.end || transfer.error) return over();
      left = transfer.bytes;
      write_on();
    }
    void write_done(const Transfer& transfer) override {
      if (transfer.error) return over();
      other->written += transfer.bytes;
      other->left -= transfer.bytes;
      other->write_on();
    }
    void write_on() {
      const Area area{bytes.data() + written, left};
      if (left > 0) return other->socket->write({&area, 1});
      written = 0;
      const Area whole{bytes.data(), bytes.size()};
      socket->read({&whole, 1});
    }

    std::unique_ptr<Socket> socket;
    End* other = nullptr;
    std::vector<std::byte> bytes = std::vector<std::byte>(65536);  // that came in and go out of the other
    std::size_t written = 0, left = 0;
    std::function<void()> over;
  };
  struct Pipe {
    std::unique_ptr<Attempt> attempt;
    End ends[2];
  };

  void accept(std::unique_ptr<Socket> socket) {
    auto owned = std::make_shared<Pipe>();
    Pipe& pipe = *owned;
    pipes_.push_back(std::move(owned));
    pipe.ends[0].socket = std::move(socket);
    const auto over = [this, &pipe] {
      const auto at = std::ranges::find_if(pipes_, [&](const auto& each) { return each.get() == &pipe; });
      const auto gone = *at;  // alive until we return: one of its ends has called
      pipes_.erase(at);
      for (End& end : gone->ends)
        if (end.socket) end.socket->close();
      world_.scheduler.after(0ns, [gone] {});
    };
    pipe.attempt = connect(world_.scheduler, target_, [&pipe, over](Result<std::unique_ptr<Socket>> connected) {
      if (!connected.ok()) return over();
      pipe.ends[1].socket = std::move(connected).value();
      for (int i : {0, 1}) {
        pipe.ends[i].other = &pipe.ends[1 - i];
        pipe.ends[i].over = over;
        pipe.ends[i].socket->set_user(&pipe.ends[i]);
      }
      for (End& end : pipe.ends) end.write_on();
    });
  }

  World& world_;
  Address target_;
  std::vector<std::shared_ptr<Pipe>> pipes_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace gossamer::net::words
