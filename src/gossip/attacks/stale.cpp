// Replay: a hostile peer sends the row that it had k rounds ago, or its first one in the first k
// rounds.
#include <deque>

#include "gossip/attack.hpp"

namespace gossamer::gossip::attacks::stale {
namespace {

struct Options {
  int lag = 10;
};

/// Memory: k + 1 rows.
class Stale final : public Attack {
 public:
  explicit Stale(const Options& options) : lag_(static_cast<std::size_t>(options.lag)) {}

  void observe(const AttackView& view) override {
    rows_.emplace_back(view.own.begin(), view.own.end());
    if (rows_.size() > lag_ + 1) rows_.pop_front();
  }
  std::vector<double> message(const AttackView&, int, double) const override {
    return {rows_.front().begin(), rows_.front().end()};
  }

 private:
  std::size_t lag_;
  std::deque<std::vector<float>> rows_;  ///< of the last rounds, the oldest first
};

}  // namespace

AttackKind descriptor() {
  static const auto parameters =
      ParameterSet<Options>().add("lag", &Options::lag,
                                  {.help = "k: the age of the row that is sent",
                                   .minimum = 1,
                                   .maximum = 1e6,
                                   .unit = "rounds"});
  return {.name = "stale",
          .summary = "the own row of k rounds ago",
          .source = "",
          .parameters = parameters.specs(),
          .remembers = true,
          .make = [](const ParameterValues& values, const AttackContext&) -> Result<MakeAttack> {
            GOSSAMER_TRY(const Options options, parameters.read("attack", values));
            return MakeAttack([=] { return std::make_unique<Stale>(options); });
          }};
}

}  // namespace gossamer::gossip::attacks::stale
