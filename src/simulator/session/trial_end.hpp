// One end of a session trial: sends messages, holds chunks of the other end for a while, and
// compares what arrives with what was sent.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/session/session.hpp"
#include "simulator/session/trial_context.hpp"
#include "simulator/session/trial_row.hpp"

namespace gossamer::simulator {

inline constexpr Time kTrialFailureTimeout = std::chrono::seconds(4);

/// A frame that was sent, for comparison with what arrives.
struct SentFrame {
  net::FrameKind kind = net::FrameKind::data;
  ChunkHeader header;
  std::uint64_t hash = 0;  ///< of values or text
};

class TrialEnd final : public net::SessionOwner {
 public:
  /// `reconnect` is the session's (SessionOptions).
  TrialEnd(TrialContext& context, int number, std::function<void(Time pause)> reconnect);
  ~TrialEnd() override { kept_.clear(); }

  net::Session& session() { return *session_; }
  const std::vector<SentFrame>& sent() const { return sent_; }
  std::size_t received() const { return received_; }
  bool failed() const { return failed_; }
  bool closes_early() const { return closes_early_; }
  bool leases_are_back() const { return std::ranges::all_of(rows_, &TrialRow::free); }

  /// Starts to send.
  void begin(TrialEnd& other);
  void tick(Time now, Time counted);

  Status on_chunk(Chunk chunk) override;
  Status on_contribution(net::Session&, std::string contribution) override;
  void on_running() override { receive({net::FrameKind::running, {}, 0}); }
  Status on_figures(net::Session&, const net::FiguresFrame&, std::string) override {
    return Error{ErrorKind::internal, "figures that no end has sent"};
  }
  void on_alive(net::Session&) override {}
  void on_goodbye(net::Session&) override;
  void on_failure(net::Session&, Error error) override;
  void on_abort(net::Session&, Error error) override { context_.add_violation(error.message); }

 private:
  void close_if_done();
  void close_soon();
  void receive(const SentFrame& came);
  void send_next();
  bool send_row();

  TrialContext& context_;
  int number_;
  int left_;  ///< messages to send
  TrialEnd* other_ = nullptr;
  net::SocketTraffic traffic_;
  net::HashMemo hashes_;
  std::unique_ptr<SharedMemory> memory_;  ///< of the rows; null: they are the end's own
  std::array<TrialRow, 3> rows_;
  std::vector<SentFrame> sent_;
  std::vector<std::pair<std::uint64_t, Chunk>> kept_;
  std::unique_ptr<net::Session> session_;
  std::size_t received_ = 0;
  std::uint64_t kept_ids_ = 0;
  Round round_ = 0;
  Time waited_{0};
  bool closing_ = false, failed_ = false, closes_early_ = false;
};

}  // namespace gossamer::simulator
