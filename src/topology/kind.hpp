// The interface of a topology: a graph on the peers for each round. Each file of topology/kinds/ is
// one kind.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/parameter.hpp"
#include "base/result.hpp"

namespace gossamer::topology {

using Round = std::uint64_t;

/// The largest network that is built: far beyond what is simulated, and small enough to bound every
/// kind's memory.
inline constexpr int kMaximumPeers = 131072;

/// A directed graph on peers 0..n−1 without self-loops: out[i] are i's
/// out-neighbours, ascending, each once. An undirected edge is two directed ones.
struct Graph {
  std::vector<std::vector<int>> out;

  int peers() const { return static_cast<int>(out.size()); }
};

/// One entry of a row of W.
struct Neighbour {
  int peer = 0;
  double weight = 0;
};

/// One round's W before it is checked: row i lists every entry of W[i], ascending by peer, the
/// diagonal included.
using WeightRows = std::vector<std::vector<Neighbour>>;

/// What is known beforehand of a random sequence, whose rounds are drawn independently of each
/// other by one law.
struct RandomLaw {
  bool undirected = true;  ///< every round's graph
  /// Rounds draw all peers alike: a round's graph with other names for the peers is as likely as
  /// that graph, and the squares of W's entries have the same sum in every round.
  bool alike = true;
  /// mean_square_factor() (topology/spectrum.hpp) with the weights that `auto` means for the kind,
  /// of W or of the lazy (I + W)/2; NaN where it is too costly. Empty: it follows from `alike`, or
  /// is not known.
  std::function<double(bool lazy)> mean_square_factor;
};

/// A graph for each round. Immutable; safe to read from any thread.
class Topology {
 public:
  virtual ~Topology() = default;
  virtual int peers() const = 0;
  /// Rounds after which the sequence repeats; 1 for a static graph; 0 for a seeded random sequence
  /// without period.
  virtual int period() const = 0;
  /// Of a random sequence.
  virtual RandomLaw law() const { return {}; }
  /// The graph of round t.
  virtual Graph graph(Round t) const = 0;
  /// The weights that this kind prescribes for round t (weights = "given"); none where any rule may
  /// weigh it. Prescribed or not is the same in every round.
  virtual std::optional<WeightRows> weights(Round) const { return std::nullopt; }
  /// The rule that weights = "auto" means where the kind prescribes none.
  virtual std::string automatic() const { return "metropolis"; }
  /// Sides n_1, …, n_k with n_1 ⋯ n_k = peers, where every round looks the same from every peer:
  /// peers numbered along the last side, and adding the same offset to each (every coordinate
  /// modulo its side) leaves the graph and its weights as they are. Empty where no such sides are
  /// known. A hint that makes spectra quick; its users check it first.
  virtual std::vector<int> lattice() const { return {}; }
};

/// A kind's factory receives this beside the kind's own parameters.
struct TopologyContext {
  int peers = 0;  ///< 1..kMaximumPeers
  std::uint64_t seed = 0;
  bool allow_negative = false;  ///< the weights of a peer's own row may be negative
};

/// The descriptor that a file of topology/kinds/ returns.
struct TopologyKind {
  std::string name;     ///< as the file
  std::string summary;  ///< one line
  std::string source;   ///< paper, or empty for folklore
  std::vector<ParameterSpec> parameters;
  bool needs_values = false;  ///< its defaults alone build nothing: it wants a file, say
  /// Builds it, or says why it cannot be built for n and which n near it can. Every kind builds one
  /// peer, without an edge. Helpers: topology/building.hpp.
  std::function<Result<std::unique_ptr<Topology>>(const TopologyContext&, const ParameterValues&)>
      make;
};

namespace kinds {
/// Every kind, in the order of the file names (generated).
std::vector<TopologyKind> catalog();
}  // namespace kinds

/// The catalog's kind of that name; the error (invalid) lists the names there are.
Result<TopologyKind> find_kind(const std::string& name);

}  // namespace gossamer::topology
