#include "peer/setup/untrained_workload.hpp"

#include <limits>
#include <utility>

#include "base/philox.hpp"

namespace gossamer::peer {
namespace {

class UntrainedWorkload final : public Workload {
 public:
  UntrainedWorkload(std::vector<train::ParameterBlock> blocks, std::uint64_t seed, bool recorded)
      : seed_(seed) {
    spec_.recorded = recorded;
    for (const train::ParameterBlock& block : blocks) spec_.parameters += block.length;
    spec_.blocks = std::move(blocks);
  }

  const WorkloadSpec& spec() const override { return spec_; }
  void initialise(int node, std::span<float> row) const override {
    RandomStream random(seed_, static_cast<std::uint32_t>(node), Purpose::initial_rows);
    for (float& value : row) value = static_cast<float>(random.next_normal());
  }
  gossip::Trainer* trainer() override { return nullptr; }
  std::vector<train::Evaluation> evaluate(const RowViews& rows,
                                          std::span<const int> /*nodes*/) override {
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    return std::vector<train::Evaluation>(rows.size(), {kUnknown, kUnknown});
  }
  LossSum loss_sum(int) const override { return {}; }
  void set_loss_sum(int, const LossSum&, const float*) override {}
  std::string data_hash() const override { return {}; }
  void set_one_at_a_time(bool) override {}

 private:
  WorkloadSpec spec_;
  std::uint64_t seed_;
};

}  // namespace

std::shared_ptr<Workload> make_untrained_workload(std::size_t length, std::uint64_t seed) {
  train::ParameterBlock block;
  block.name = "x";
  block.shape = {static_cast<int>(length)};
  block.length = length;
  return std::make_shared<UntrainedWorkload>(std::vector{block}, seed, false);
}

std::shared_ptr<Workload> make_recorded_workload(std::vector<train::ParameterBlock> blocks,
                                                 std::uint64_t seed) {
  return std::make_shared<UntrainedWorkload>(std::move(blocks), seed, true);
}

}  // namespace gossamer::peer
