#include "gossip/attack.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/philox.hpp"

namespace gossamer::gossip {

bool AttackView::is_hostile(int i) const { return std::ranges::binary_search(hostile, i); }

std::vector<int> AttackView::honest() const {
  std::vector<int> peers;
  for (int i = 0; i < w.peers(); ++i)
    if (!is_hostile(i)) peers.push_back(i);
  return peers;
}

std::vector<int> AttackView::honest_of(int receiver) const {
  std::vector<int> peers{receiver};
  for (const topology::Neighbour& neighbour : w.in_neighbours(receiver))
    if (!is_hostile(neighbour.peer)) peers.push_back(neighbour.peer);
  return peers;
}

bool AttackPlan::is_hostile(int peer) const { return std::ranges::binary_search(hostile, peer); }

bool AttackPlan::withholds(int sender, int to, Round t) const {
  return silent_every > 0 && t >= from && (t - from) % silent_every == 0 && is_hostile(sender) &&
         !is_hostile(to);
}

Result<AttackKind> find_attack(const std::string& name) {
  std::string names;
  for (AttackKind& known : attacks::catalog()) {
    if (known.name == name) return std::move(known);
    names += (names.empty() ? "" : ", ") + known.name;
  }
  return invalid_error(fmt::format("attack.kind: unknown attack '{}'; there are: {}", name, names));
}

std::function<Result<double>(int, int)> published(double strength) {
  return [strength](int, int) -> Result<double> { return strength; };
}

std::vector<double> normal_numbers(const AttackView& view, std::uint64_t seed) {
  RandomStream random(seed, static_cast<std::uint32_t>(view.peer), Purpose::attack, view.t);
  std::vector<double> numbers(view.own.size());
  for (double& number : numbers) number = random.next_normal();
  return numbers;
}

std::vector<double> mean_of(const AttackView& view, std::span<const int> of) {
  std::vector<double> mean(view.own.size());
  for (const int i : of) {
    const std::vector<float>& row = view.rows[static_cast<std::size_t>(i)];
    for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += static_cast<double>(row[k]);
  }
  for (double& value : mean) value /= static_cast<double>(of.size());
  return mean;
}

}  // namespace gossamer::gossip
