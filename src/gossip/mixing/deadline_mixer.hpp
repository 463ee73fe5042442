// Policy deadline: a mix takes the rows of its round that arrive in time.
//
// The two ends of an edge agree whether the exchange of a round on it counts, so what is realised
// of a symmetric W is symmetric. The lower id decides: it sends `commit` when the other's row
// arrives in time, and `decline` when it does not. The higher id waits for the decision; when that
// takes too long it sends `query`, which the lower id answers at once, whatever it is computing.
// `skip` withdraws its sender from every undecided exchange up to a round. Invariant: an exchange
// is committed at both ends or at neither, and a committed row is the row of that round.
//
// A peer waits no longer for a slow neighbour than its deadline and an answer take. The deadline is
// twice the usual lateness of the neighbours' rows, plus a part of a round. A neighbour that was
// too late is not waited for the next time, but its exchange counts if its row is here before the
// rows that are waited for. From time to time it is waited for again: of two peers that are equally
// fast, the one a little ahead would otherwise never have the other's row. A peer that the others
// have left behind skips the rounds for which it would be too late (Pace).
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "gossip/mixing/buffered_mix.hpp"
#include "gossip/mixing/pace.hpp"

namespace gossamer::gossip {

class DeadlineMix final : public BufferedMix {
 public:
  /// `pace` is the peer's, and outlives the mix.
  DeadlineMix(const MixerContext& context, Channel channel, std::size_t length, Pace& pace)
      : BufferedMix(context, channel, length), pace_(pace) {}
  ~DeadlineMix() override;

  void expect(int from) override { edge(from); }
  Status on_control_message(const ChunkHeader& header) override;
  void on_link_restored(int peer, Round first) override;
  void skip_to(Round next) override;
  /// Adds the newest round of which each neighbour's row has arrived, and when. The row of a
  /// neighbour that has just skipped rounds is left out: it may have arrived early.
  void observe(Pace::Others& others) const;

 private:
  enum class Outcome { open, committed, declined };
  struct Edge {
    Round round = 0;  ///< of the outcome
    Outcome outcome = Outcome::declined;
    std::shared_ptr<const BufferedRow> row;  ///< if committed
    Round declined_end = 0;                  ///< rounds below are declined, unless committed before
    bool on_time = true;     ///< the last exchange was committed, or skipped on purpose
    bool waited_for = true;  ///< in this round
    Round missed = 0;        ///< rounds since an exchange was committed, this one included
    Round skip_end = 0;      ///< the other end skips the rounds below
    Time arrived{0};         ///< of the newest row
    /// Seconds from the beginning of this peer's mix until the exchange is known to count,
    /// smoothed.
    std::optional<double> lateness;
  };

  Edge& edge(int peer);
  bool decides(int peer) const { return context_.peer() < peer; }
  bool is_decided() override;
  void on_begin() override;
  void send(int to) override;
  void on_sent() override;
  void on_whole_row(int from) override;
  bool is_waiting_for(int from) const override {
    return active_ && edges_.at(from).outcome == Outcome::open;
  }
  std::shared_ptr<const BufferedRow> take_row(int peer) override;
  void on_end() override;
  void forget(int peer) override;
  void advance() override;

  Status on_commit(const ChunkHeader& header);
  void decide(int peer, Edge& edge, Outcome outcome);
  void note_lateness(Edge& edge, Round t);
  std::optional<double> patience() const;
  void arm_timer();
  void on_deadline();

  Pace& pace_;
  std::map<int, Edge> edges_;
  bool took_part_ = false;               ///< the last mix had a neighbour's row
  std::map<Round, Time> begun_;          ///< when this peer's mixes of the last rounds began
  std::optional<double> round_seconds_;  ///< between the beginnings of mixes, smoothed
  std::optional<Scheduler::TimerId> timer_;
  std::optional<Round> skipped_to_;  ///< the deadline of this round starts with the first commit
  int patience_factor_ = 1;          ///< of this round
  int deadlines_passed_ =
      0;  ///< in this round: of the edges that this peer decides, then of others
};

class DeadlineMixer final : public BufferedMixer {
 public:
  using BufferedMixer::BufferedMixer;

  void begin_at(Round first) override { pace_.begin_at(first); }
  Round next_round(Round t) override;

 private:
  std::unique_ptr<BufferedMix> make_mix(Channel channel, std::size_t length) override;

  Pace pace_;
  std::map<Channel, DeadlineMix*> mixes_;
};

}  // namespace gossamer::gossip
