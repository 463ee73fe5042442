#include "peer/leak/sent_rows.hpp"

#include <limits>
#include <memory>

#include "base/check.hpp"

namespace gossamer::peer {

/// Sees the rows of each round once, in order, as the one "hostile" peer of the plan. It makes no
/// message, since the plan begins after every run.
class RowKeeper final : public gossip::Attack {
 public:
  explicit RowKeeper(SentRows& kept) : kept_(kept) {}

  void observe(const gossip::AttackView& view) override {
    if (kept_.complete()) return;
    GOSSAMER_CHECK(view.t == kept_.rows_.size() && std::ssize(view.rows) == kept_.peers_,
                   "the rows of all peers, round by round");
    kept_.rows_.emplace_back(view.rows.begin(), view.rows.end());
  }
  std::vector<double> message(const gossip::AttackView&, int) const override { return {}; }

 private:
  SentRows& kept_;
};

gossip::AttackPlan SentRows::plan() {
  gossip::AttackPlan plan;
  plan.hostile = {0};
  plan.from = std::numeric_limits<gossip::Round>::max();
  plan.reads_honest_rows = true;
  plan.make = [this] { return std::make_unique<RowKeeper>(*this); };
  return plan;
}

}  // namespace gossamer::peer
