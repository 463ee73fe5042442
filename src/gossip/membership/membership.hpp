// Who is there, as one peer knows it: which links were lost and which came back, told from
// neighbour to neighbour, and what follows from it.
//
// Nobody decides for others. A peer that loses a link goes on without it, and so does the other
// end, if it lives: mixing by differences then leaves the rest of W symmetric and doubly
// stochastic. That the link is lost is told to all, each peer passing on what says more than it
// knew. From the links that are left follows who is out of reach.
//
// Each end tells of its own, and counts how often that has changed, as routers do (sequence numbers
// in OSPF, RFC 2328, section 12.1.6): rounds would not say which of two news is the later one, for
// a link may be lost again before the round from which it was to count, and parts of a network that
// were on their own are in rounds of their own. A link carries where neither end has lost it. Who
// was started again counts anew; what the others still have from its earlier life reaches it with
// all that they know, and is put right by it.
//
// A link that is there again counts from a round on that neither end has begun. One end proposes
// it, `enter`: the lower id, or of one that runs and one that joins, the former. Where the other
// has begun that round already it says so, `late`, and a later one is proposed; else it tells the
// network that the link is back, and that is the answer. Until it comes, the proposer goes no
// further than that round. Both then tell each other of all links that they know, for there may
// have been two networks.
//
// A peer that joins, a process that was started again, has no round and no rows. It asks one
// partner, which sends it its own rows and proposes the next round; there it begins, and the others
// then take it for one that runs.
//
// Rows whose sum over the peers is conserved lose it with a link, and again when one comes back:
// they begin again, at the same round everywhere. News of round t has come to every peer that can
// be reached by round t + n, because news travels before the rows of a round, so that is the round.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gossip/exchange/exchange.hpp"
#include "gossip/node.hpp"

namespace gossamer::gossip {

/// Thread: the scheduler's.
class Membership {
 public:
  /// Of who is there, as this peer knows it.
  struct Change {
    enum class Kind {
      lost,   ///< the link to a peer, in the round under way
      back,   ///< it counts again, from `round` on
      reach,  ///< more or fewer peers can be reached
    };
    Kind kind = Kind::lost;
    Round round = 0;
    int value = 0;  ///< the other end; for reach: how many peers links lead to, this one among them
  };

  struct Plan {
    /// By peer, ascending: the links of the whole network.
    std::shared_ptr<const std::vector<std::vector<int>>> partners;
    /// Lines for people: what changed, as this peer knows it.
    std::function<void(const std::string&)> message = [](const std::string&) {};
    /// The same for the log.
    std::function<void(const Change&)> on_change = [](const Change&) {};
  };

  /// The node outlives it; its endpoint tells it of notes.
  Membership(Exchange& exchange, Node& node, Plan plan);

  /// This peer's link to `peer` is lost; `why` is a whole sentence.
  void lost(int peer, const std::string& why);
  /// `peer` has done its last round and takes its leave: nobody waits for its rows, or for a link
  /// to it to count again.
  void left(int peer);
  /// Of a peer that joins: whom it has that may give it rows.
  enum class Help {
    nobody,          ///< no partner is there
    joiners,         ///< those that are there have not said that they run: they may join too
    asked,           ///< one is asked
    needed_no_more,  ///< it has rows, or never joined
  };
  Help help() const;
  /// The link to `peer`, which was lost, carries again; nothing comes any more of what was sent
  /// before.
  void back(int peer);
  /// What a partner says.
  Status heard(const ChunkHeader& head);

  /// What is to be done before this peer's round t: rows with a conserved sum begin again where
  /// that is due (it gives whether), and partners that join are given rows.
  task<bool> begin_round(Round t);

  /// This peer joins: all of its links are taken for lost, until they are back. Before any of them
  /// is.
  void join();
  /// Waits for a partner that runs, and for its rows; the node is then where the giver was, but for
  /// its optimizer and for rows that begin anew. Gives the round that is its first: begin it at
  /// once.
  task<Round> await_admission();

  /// Peers that links lead to, this one among them, ascending.
  std::vector<int> reachable() const;
  /// Whether all whom what this peer gives reaches, however often it is passed on, reach this peer:
  /// on what is left of a directed graph, sums else flow off, and do not come back.
  bool leads_back() const;
  /// Entries that are kept of what was told of links: at most two for each link of the network, and
  /// one for each round of the run.
  std::size_t remembered() const { return known_.size() + restarts_.size(); }

 private:
  using LinkEnd = std::pair<int, int>;  ///< whose, and to whom
  /// Of one end of a link: odd where it lost the link, even where it has it. Of two the higher is
  /// the later one.
  using Changes = std::uint32_t;
  struct News {
    LinkEnd end;
    Changes changes = 0;
    Round round = 0;   ///< rows begin again n rounds after it
    bool old = false;  ///< but do not by this
  };
  /// To a partner.
  struct OwnLink {
    bool up = true;                 ///< it carries
    bool entered = true;            ///< and counts, or will from an agreed round on
    std::optional<Round> proposed;  ///< by us, and not answered
    std::optional<Round> seen;      ///< the round that the other end was in when the link came back
    Round margin = 1;               ///< rounds between the further end and what we propose

    static OwnLink gone() {
      OwnLink link;
      link.up = link.entered = false;
      return link;
    }
  };

  /// Where one that joins begins.
  struct Place {
    Round round = 0;
    std::uint64_t steps = 0;  ///< local steps that the giver of its rows has done
  };

  OwnLink& link(int peer) { return links_.at(peer); }
  const std::vector<int>& partners_of(int peer) const {
    return (*plan_.partners)[static_cast<std::size_t>(peer)];
  }
  int peers() const { return static_cast<int>(plan_.partners->size()); }
  Status heard_of_link(const ChunkHeader& head);
  Status heard_of_end(const ChunkHeader& head);
  void meet(int peer, Round seen, bool again = false);
  void propose(int peer, Round t, std::uint64_t steps);
  void withdraw(int peer);
  void answer(int peer, Round first);
  void agreed(int peer, Round first);
  void tell_links(int peer);
  void say(int to, ControlMessage note, Round t, std::uint64_t donor_steps = 0);
  void tell_link(int to, const News& news);
  void change_own(int peer, Round t, bool old = false);
  void take(const News& news, int from);
  Changes known_of(LinkEnd end) const;
  void say_who_is_there();
  void tell(const Change& change, const std::string& words);
  bool alone() const;
  std::vector<int> reached(const std::vector<std::vector<int>>& arcs) const;
  bool restarts(Round t);
  void ask_for_rows();
  void settle(const Place& place);
  void wake();

  Exchange& exchange_;
  Node& node_;
  Endpoint& endpoint_;
  Plan plan_;
  std::map<int, OwnLink> links_;
  std::map<LinkEnd, Changes> known_;  ///< where a link was ever lost
  std::set<Round> restarts_;          ///< that are to come
  Round attended_ = 0;                ///< the last one that was attended
  std::vector<int> joiners_;
  std::size_t reachable_;
  // Of one that joins.
  bool joining_ = false;
  std::optional<int> donor_;
  std::optional<Place> place_;
  std::coroutine_handle<> waiter_;  ///< until there is a giver, or a place

  /// co_await changed(): until one of these changes.
  auto changed() {
    struct Awaiter {
      Membership& membership;
      bool await_ready() const { return false; }
      void await_suspend(std::coroutine_handle<> waiter) { membership.waiter_ = waiter; }
      void await_resume() const {}
    };
    return Awaiter{*this};
  }
};

}  // namespace gossamer::gossip
