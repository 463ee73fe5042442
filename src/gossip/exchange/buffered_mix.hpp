// The mixes of one row under the policies that take neighbours' rows whole, and whom they wait for:
//   async        nobody: the newest rows that have come
//   stale(s)     neighbours that this round would leave more than s rounds behind, by their newest
//   row deadline     neighbours whose rows of this round come in time
// Under `deadline` the two ends of an edge agree whether a round's exchange on it counts, so that
// what is realised of a symmetric W is symmetric. The lower id decides: `counted` when the other's
// row comes in time, `declined` when it does not; the other waits to be told, and when that takes
// too long says `withdrawn`, which the first answers at once, whatever it is computing. So nobody
// waits longer for a slow neighbour than its deadline and an answer take; and a neighbour that came
// too late is not waited for the next time, but counts where its row is here before those that are.
// Every so often it is waited for again: two that are equally fast, and one a little ahead, would
// else never mix, for the one that is ahead never has the other's row.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gossip/exchange/exchange.hpp"
#include "gossip/exchange/row_assembler.hpp"

namespace gossamer::gossip {

/// Thread: the scheduler's. All rows of a channel have one length.
class BufferedMix {
 public:
  BufferedMix(Endpoint& endpoint, Exchange& exchange, Channel channel, std::size_t length);
  ~BufferedMix();

  /// Sends the row, as one of round `as`, to those who hear it in round t, and begins to wait for
  /// theirs.
  void begin(Round t, std::span<const float> row, Round as);

  /// co_await staged.decided(): until it is known which rows are mixed.
  auto decided() {
    struct Awaiter {
      BufferedMix& staged;
      bool await_ready() const { return staged.is_decided(); }
      void await_suspend(std::coroutine_handle<> waiter) { staged.waiter_ = waiter; }
      void await_resume() const {}
    };
    return Awaiter{*this};
  }

  /// What is mixed, neighbours in ascending order; the rows stay while they are held.
  struct Rows {
    std::vector<gpu::MixSource> sources;
    std::vector<int> from;
    std::vector<std::shared_ptr<const BufferedRow>> held;
  };
  /// Ends the round's mix. What deviates from W is added to `deviations`.
  Rows take(std::vector<Deviation>& deviations);

  /// A chunk from `from` is about to come.
  void expect(int from) { edge(from); }
  /// What the other end says of a round.
  Status heard(const ChunkHeader& head);
  /// Adds the newest round of which each neighbour's row has come, and when. That of a neighbour
  /// which has just left rounds out says nothing: it may have come early.
  void rounds_seen(std::map<int, std::pair<Round, Time>>& seen) const;
  /// Whether the last mix had a row of anybody.
  bool took_part() const { return took_part_; }
  /// `peer` is gone: its exchanges count no more, and nobody waits for it.
  void lose(int peer);
  /// `peer` is back, and takes part in the rounds from `first` on.
  void enter(int peer, Round first);
  /// Tells the neighbours that this peer's rounds are done, of which `last` was the last.
  void end(Round last);
  /// Whether a link that is busy is to get a row later.
  bool has_rest() const;
  /// Whether `peer` has said so.
  bool ended(int peer) const;
  /// This peer mixes in no round before `next`: nobody need wait for it until then.
  void skip_to(Round next);

 private:
  /// A copy of the row that goes out, and who still reads it.
  struct Copy {
    gpu::DeviceRows<float> memory;
    LeasedRow row;
    Round round = 0;
  };
  /// What a neighbour still reads of our copies: one of them at a time.
  class Reading final : public BufferOwner {
   public:
    void begin(BufferedMix& staged, int peer, Copy& copy);
    void give_back() override;
    bool busy() const { return chunks_ > 0; }
    Lease lend() {
      ++chunks_;
      return Lease(*this);
    }

   private:
    BufferedMix* staged_ = nullptr;
    int peer_ = 0;
    int chunks_ = 0;
    Lease copy_;
  };
  enum class Outcome { open, counted, declined };
  struct Edge {
    std::unique_ptr<RowAssembler> stage;
    Reading reading;
    bool ended = false;   ///< the other end's rounds are done (stale, async)
    bool unsent = false;  ///< the newest copy is to go out when the link is free (stale, async)
    // Of the deadline.
    Round round = 0;  ///< that the outcome is of
    Outcome outcome = Outcome::declined;
    std::shared_ptr<const BufferedRow> row;  ///< where it counts
    Round declined_end = 0;                  ///< rounds below are declined unless they counted
    bool on_time = true;             ///< the last exchange counted, or was left out on purpose
    bool waited_for = true;          ///< in this round
    Round missed = 0;                ///< rounds since an exchange counted, this one included
    Round skip_end = 0;              ///< the other end leaves out rounds below
    Time came{0};                    ///< the newest row
    std::optional<double> lateness;  ///< seconds from our beginning to mix until the exchange is
                                     ///< known to count, smoothed
  };

  Edge& edge(int peer);
  bool decides(int peer) const { return endpoint_.peer() < peer; }
  bool is_decided();
  void wake();
  void send(int to);
  Copy& free_copy();
  void say(int to, ControlMessage note, Round t);

  void open_edges();
  void begin_waiting();
  void advance();
  void row_came(int from);
  void note_lateness(Edge& edge, Round t);
  void decide(int peer, Edge& edge, Outcome outcome);
  void arm();
  void on_deadline();
  std::optional<double> patience() const;

  Endpoint& endpoint_;
  Exchange& exchange_;
  Channel channel_;
  std::size_t length_;
  std::vector<std::unique_ptr<Copy>> copies_;
  Copy* newest_copy_ = nullptr;
  std::map<int, Edge> edges_;
  bool active_ = false, took_part_ = false;
  Round round_ = 0;
  std::shared_ptr<const topology::MixingMatrix> matrix_;
  std::vector<topology::Neighbour> heard_;  ///< in this round, of those who are there
  std::map<Round, Time> began_;  ///< the last rounds, and when this peer began to mix in them
  std::optional<double> round_seconds_;  ///< from one beginning to the next, smoothed
  std::optional<Scheduler::TimerId> timer_;
  std::optional<Round> waits_in_;  ///< a round that has no deadline here
  int stretch_ = 1;                ///< times its patience that this round waits
  int deadlines_passed_ =
      0;  ///< in this round: of the edges that are ours to decide, then of the others
  std::coroutine_handle<> waiter_;
};

}  // namespace gossamer::gossip
