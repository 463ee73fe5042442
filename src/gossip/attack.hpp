// The interface of an attack: what hostile peers send in place of their rows, when they send none,
// or what they train on. Each file of gossip/attacks/ is one kind. An attack tests the mixing
// rules: an honest run has none.
//
// Hostile peers follow the protocol otherwise. They train, mix what they receive, and exchange
// their true rows with each other. A kind knows of the honest peers what its paper grants: nothing,
// or the rows that they send in the same round.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/parameter.hpp"
#include "base/result.hpp"
#include "gossip/link.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::gossip {

/// What a hostile peer knows when it makes its messages of a round. Valid during the call.
struct AttackView {
  Round t = 0;
  int peer = 0;                     ///< the hostile peer
  std::span<const float> own;       ///< [d]: the row that an honest peer would send in its place
  const topology::MixingMatrix& w;  ///< W_t
  std::span<const int> hostile;     ///< all hostile peers, ascending
  /// rows[i]: the row that peer i sends in round t, or would send if it were honest. Empty if the
  /// kind does not read the rows of honest peers.
  std::span<const std::vector<float>> rows;

  bool is_hostile(int i) const;
  /// The honest peers, ascending.
  std::vector<int> honest() const;
  /// The receiver and then its honest in-neighbours, ascending: whose rows it mixes, as He et al.
  /// 2022 grant to an attacker.
  std::vector<int> honest_of(int receiver) const;
};

/// The attack of one hostile peer. Its messages are a function of the views so far and of its
/// context. Thread: the scheduler's.
class Attack {
 public:
  virtual ~Attack() = default;
  /// Sees a round, before its messages are made: each once, in order, also those before the attack
  /// begins.
  virtual void observe(const AttackView&) {}
  /// [d]: the message to the honest peer `receiver`, an out-neighbour. `strength`, ≥ 0, is that of
  /// the kinds that have one; of those that read honest rows, the message is a + strength · b, the
  /// same for all hostile peers.
  virtual std::vector<double> message(const AttackView& view, int receiver,
                                      double strength) const = 0;
};

/// What an attack is made from, beside the parameters of its kind.
struct AttackContext {
  int peers = 0;             ///< n
  std::vector<int> hostile;  ///< ascending
  std::uint64_t seed = 0;    ///< of the run
};

/// What hostile peers train on in place of their samples: peer/attack/poisoning.hpp carries it out.
struct LabelFlip {};
struct Backdoor {
  int target = 0;      ///< class of the samples with the trigger
  int size = 3;        ///< pixels: side of the trigger
  double share = 0.5;  ///< part of a hostile peer's samples that are changed, in [0, 1]
};
using Poisoning = std::variant<std::monostate, LabelFlip, Backdoor>;

using MakeAttack = std::function<std::unique_ptr<Attack>()>;

struct AttackKind {
  std::string name;
  std::string summary;
  std::string source;
  std::vector<ParameterSpec> parameters;
  /// What attack.strength is, and its value if it is 0 in the configuration. Null: the kind has no
  /// strength.
  std::string strength_help = {};
  std::function<Result<double>(int peers, int hostile)> default_strength = nullptr;
  bool reads_honest_rows = false;  ///< the rows of all peers of the round: only in one process
  bool needs_fixed_graph = false;  ///< W is the same in all rounds
  bool remembers = false;  ///< it keeps state from round to round, which no checkpoint contains
  /// How the hostile peers' samples are changed. Null: the kind changes no data.
  std::function<Result<Poisoning>(const ParameterValues&)> poison = nullptr;
  /// k: a hostile peer sends no row to honest peers in every k-th round. Null: it always sends.
  std::function<Result<Round>(const ParameterValues&)> silent_every = nullptr;
  /// Makes the attack of each hostile peer. Null: the kind changes no message.
  std::function<Result<MakeAttack>(const ParameterValues&, const AttackContext&)> make = nullptr;

  /// Whether the strength of each message can be searched (gossip/mixing/line_search.hpp).
  bool is_searchable() const { return reads_honest_rows && default_strength != nullptr; }
};

namespace attacks {
std::vector<AttackKind> catalog();
}  // namespace attacks

/// The kind with this name; an unknown name is an error that lists the kinds.
Result<AttackKind> find_attack(const std::string& name);

/// The attack of a run. Immutable; shared by all peers of a process.
struct AttackPlan {
  std::vector<int> hostile;  ///< ascending; empty: all peers are honest
  Round from = 0;            ///< the first round in which it changes messages
  bool reads_honest_rows = false;
  Poisoning poisoning = {};   ///< monostate: hostile peers train on their own samples
  Round silent_every = 0;     ///< AttackKind::silent_every; 0: all rows are sent
  MakeAttack make = nullptr;  ///< null: all messages are honest
  double strength = 1;        ///< of all messages
  bool line_search = false;   ///< each message has the strength that does most harm instead

  bool is_hostile(int peer) const;
  bool poisons() const { return !std::holds_alternative<std::monostate>(poisoning); }
  /// Null: the plan has no backdoor.
  const Backdoor* backdoor() const { return std::get_if<Backdoor>(&poisoning); }
  /// Whether `sender` is hostile, `to` is honest, and no row is sent in round t.
  bool withholds(int sender, int to, Round t) const;
};

/// AttackKind::make of a class without parameters, which is built from the context or from nothing.
template <class Kind>
Result<MakeAttack> make_attack(const ParameterValues& values, const AttackContext& context) {
  GOSSAMER_TRY_STATUS(check_values("attack", {}, values));
  if constexpr (std::is_default_constructible_v<Kind>)
    return MakeAttack([] { return std::make_unique<Kind>(); });
  else return MakeAttack([context] { return std::make_unique<Kind>(context); });
}
/// AttackKind::default_strength of a published constant.
std::function<Result<double>(int, int)> published(double strength);

/// [d]: normal numbers, keyed by (seed, peer, round): the same for all receivers.
std::vector<double> normal_numbers(const AttackView& view, std::uint64_t seed);

/// Σ_i rows[i] / count over the peers `of`, which are at least one, in double.
std::vector<double> mean_of(const AttackView& view, std::span<const int> of);

}  // namespace gossamer::gossip
