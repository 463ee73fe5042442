// The flooding of link states: each peer publishes the state of its own link ends, and forwards
// what is new to it, so that every reachable peer knows all states n rounds later. What follows
// from a change is computed here: which peers are reachable, and when rows with a conserved sum are
// reinitialised. docs/MEMBERSHIP.md specifies the protocol.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gossip/exchange/exchange.hpp"
#include "gossip/membership/link_state_table.hpp"
#include "gossip/node/node.hpp"

namespace gossamer::gossip {

/// A change of what a peer knows of links and peers.
struct MembershipEvent {
  enum class Kind {
    link_lost,      ///< the link to peer `value` was lost in round `round`, the round under way
    link_restored,  ///< the link to peer `value` takes effect again from round `round` on
    reachability,   ///< `value` peers can be reached now, this one included
  };
  Kind kind = Kind::link_lost;
  Round round = 0;
  int value = 0;
  std::string cause = {};  ///< link_lost: why, as a sentence
};

struct MembershipOptions {
  /// The links of the whole network: the partners of each peer, by peer, ascending.
  std::shared_ptr<const std::vector<std::vector<int>>> partners;
  /// Receives one line of text for people for each event.
  std::function<void(const std::string&)> message = [](const std::string&) {};
  /// Receives each event, for the log.
  std::function<void(const MembershipEvent&)> on_event = [](const MembershipEvent&) {};
  /// Whether in each round of the schedule two neighbours take each other's rows, or neither does.
  /// Only then does a peer catch up (CatchUpFlooding).
  bool exchanges_both_ways = false;
  /// Of an open run: the schedule of this process, to which changes of participants are added.
  topology::ChangingSchedule* changing = nullptr;

  /// The partners of one peer, ascending.
  const std::vector<int>& partners_of(int peer) const {
    return partners->at(static_cast<std::size_t>(peer));
  }
};

/// Thread: the scheduler's.
class LinkStateFlooding {
 public:
  /// `is_active`: whether this peer's link to a partner takes part in mixing; updates are sent over
  /// active links only. All references outlive this object.
  LinkStateFlooding(Exchange& exchange, Node& node, const MembershipOptions& options,
                    std::function<bool(int partner)> is_active);
  ~LinkStateFlooding();
  LinkStateFlooding(const LinkStateFlooding&) = delete;
  LinkStateFlooding& operator=(const LinkStateFlooding&) = delete;

  /// The updates that one partner may send at once, or within kRefillTime, beside those that are
  /// known here: many times what a network of this size has when every link of it changes.
  double largest_burst() const;
  static constexpr Time kRefillTime = std::chrono::seconds(10);

  /// Checks a link_lost or link_restored message. An error names the protocol violation.
  Status check(const ChunkHeader& header) const;
  /// Stores the state in a message that was checked, and forwards it if it is new. An error names
  /// the sender, which has sent more updates than a network of this size has.
  Status receive(const ChunkHeader& header);
  /// Counts an announcement that is news here, of an update or a catch-up. An error names its
  /// sender, which has sent more than a network of this size has.
  Status charge(const ChunkHeader& header);
  /// Publishes the state of this peer's end of the link to `peer`, which changed in round t.
  void publish(int peer, Round t) { publish(peer, t, false); }
  /// Sends all states, and the reinitialisations that are due, to `peer`, whose link takes effect.
  void send_all(int peer);
  /// This peer joins: all of its links count as lost.
  void begin_lost();

  /// A catch-up took this peer from round `from` − 1 to round `to`. Reinitialisations that were due
  /// in between fall away: the one that its cause schedules comes later.
  void leave_out(Round from, Round to);
  /// This peer begins round t. Returns whether a reinitialisation of rows is due since the last
  /// call.
  bool begin_round(Round t);
  /// Passes an event and its text to the receivers of the options.
  void report(const MembershipEvent& event, const std::string& text);

  /// Whether after t rounds no reinitialisation is outstanding: the sums over the peers are whole.
  /// They are up to a change of a link that takes effect in a round to come.
  bool sums_are_whole(Round t) const;

  const LinkStateTable& table() const { return table_; }
  /// Entries stored: at most two for each link of the network and one for each round of the run.
  std::size_t stored_entries() const {
    return table_.versions().size() + reinitialisations_.size();
  }

 private:
  struct Update {
    LinkEnd end;
    LinkVersion version = 0;
    Round round = 0;                 ///< reinitialise n rounds after this one
    bool reachability_only = false;  ///< without a reinitialisation
  };

  /// A token bucket: `size` at once, and as many again in each kRefillTime.
  class Budget {
   public:
    bool take(Time now, double size);

   private:
    std::optional<double> tokens_;  ///< none: full
    Time filled_{0};
  };

  bool is_news(const Update& update) const;
  Round now() const { return std::max(last_begun_, endpoint_.round()); }
  /// The round in which an update's reinitialisation takes place.
  Round due_round(const Update& update) const { return update.round + delay_; }
  bool is_due_later(const Update& update) const;
  void publish(int peer, Round t, bool reachability_only);
  void merge(const Update& update, int from);
  void update_conservation();
  void forward_later();
  void send(int to, const Update& update);
  void report_reachability();

  Exchange& exchange_;
  Node& node_;
  Endpoint& endpoint_;
  const MembershipOptions& options_;
  std::function<bool(int partner)> is_active_;
  LinkStateTable table_;
  const Round delay_;  ///< from a change to its reinitialisation: in these rounds all learn of it
  std::set<Round> reinitialisations_;  ///< rounds of the ones to come
  /// The sums are whole from this round on, and up to the changes to come: those of
  /// reinitialisations_, and the first one that comes too late for a reinitialisation.
  Round reinitialised_from_ = 0;
  std::optional<Round> last_changed_from_;
  Round last_begun_ = 0;            ///< of begin_round()
  std::size_t reachable_;           ///< as last reported
  std::map<int, Budget> received_;  ///< by partner: news that it may still send
  Budget forwarded_;                ///< news that this peer may still forward at once
  std::optional<Scheduler::TimerId> forward_timer_;  ///< updates wait for it to be forwarded
};

}  // namespace gossamer::gossip
