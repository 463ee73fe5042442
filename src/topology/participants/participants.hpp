// Which peers take part in which rounds of a run: all in all of them, unless peers join or leave.
// In an open run they do so whenever they want, and each process learns of it while it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "topology/kind.hpp"

namespace gossamer::topology {

/// From round `first` on, until the next change, the peers take part. Ids are those of the run,
/// 0 … n−1.
struct ParticipantChange {
  Round first = 0;
  std::vector<int> peers;  ///< ascending, at least one
};

/// Immutable, but for those of an open run.
class Participants {
 public:
  /// All of n peers in every round.
  explicit Participants(int peers);
  /// Reads "IDS" (from round 0 on) and "ROUND: IDS", with ascending rounds, of n peers: "0-3",
  /// "100: 0-15". No text: all peers in every round. Errors (invalid) name `origin`, the key: a
  /// text that is not of this form; an id that is no peer; rounds that do not ascend; participants
  /// that do not change; a change after which no earlier participant is left, so that no peer has
  /// parameters to give.
  static Result<Participants> parse(const std::vector<std::string>& texts, int peers,
                                    const std::string& origin);
  /// Of an open run of n peers: those that it begins with are in `text`; none: all. Errors as of
  /// parse(), and more than one text.
  static Result<Participants> parse_open(const std::vector<std::string>& texts, int peers,
                                         const std::string& origin);

  /// Whether further changes may be set.
  bool is_open() const { return open_; }
  /// Of an open run: what follows the first participants is `changes`, as parse() would accept
  /// them.
  void set_changes(const std::vector<ParticipantChange>& changes);
  /// Grows with each call of set_changes().
  std::uint64_t revision() const { return revision_; }

  /// n: the number of ids.
  int peers() const { return peers_; }
  /// In the order of their rounds, the first from round 0 on.
  std::span<const ParticipantChange> changes() const { return changes_; }
  /// The index in changes() of the one that round t belongs to.
  std::size_t index_at(Round t) const;
  const ParticipantChange& at(Round t) const { return changes_[index_at(t)]; }
  /// Whether every peer takes part in every round; of an open run that is never certain.
  bool are_all() const;

  /// A server, whose id is n or more, takes part in every round.
  bool takes_part(int peer, Round t) const;
  /// The first round from t on in which the peer takes part; none if there is none.
  std::optional<Round> next_round(int peer, Round t) const;
  /// The first round from which on the peer takes no part any more; none if it does at the end.
  std::optional<Round> end_of(int peer) const;
  /// Rounds before t in which the peer took no part.
  Round missed(int peer, Round t) const;
  /// Whether the peer is one of those whose state counts after t rounds: it took part in the last
  /// of them (for t = 0: takes part in the first).
  bool counts_after(int peer, Round t) const { return takes_part(peer, t > 0 ? t - 1 : 0); }
  /// Those of `peers` of which it does, in their order.
  std::vector<int> counted_after(std::vector<int> peers, Round t) const;

  /// The texts that parse() reads; empty where all take part.
  std::vector<std::string> texts() const;

 private:
  Participants(int peers, std::vector<ParticipantChange> changes)
      : peers_(peers), changes_(std::move(changes)) {}

  int peers_;
  std::vector<ParticipantChange> changes_;
  bool open_ = false;
  std::uint64_t revision_ = 0;
};

}  // namespace gossamer::topology
