#include "peer/leak/membership.hpp"

#include <algorithm>
#include <utility>

namespace gossamer::peer {
namespace {

/// At most kMostCompared of `samples`, evenly spaced.
std::vector<std::uint32_t> some_of(const std::vector<std::uint32_t>& samples) {
  const std::size_t count = std::min(samples.size(), kMostCompared);
  std::vector<std::uint32_t> some;
  for (std::size_t i = 0; i < count; ++i) some.push_back(samples[i * samples.size() / count]);
  return some;
}

/// The compared samples as a data set of their own.
struct Compared {
  std::shared_ptr<train::Dataset> data = std::make_shared<train::Dataset>();

  /// Returns the numbers that the samples have there.
  std::vector<int> add(const train::Dataset& from, const std::vector<std::uint32_t>& samples) {
    std::vector<int> numbers;
    for (const std::uint32_t sample : samples) {
      numbers.push_back(static_cast<int>(data->count++));
      const std::span<const float> features = from.features_of(sample);
      data->features.insert(data->features.end(), features.begin(), features.end());
      if (from.classes > 0) data->labels.push_back(from.labels[sample]);
      else data->targets.push_back(from.targets[sample]);
    }
    return numbers;
  }
};

}  // namespace

Result<MembershipAttack> MembershipAttack::make(const Config& config, const train::Dataset& data,
                                                const train::Shards& members) {
  MembershipAttack attack;
  Compared compared;
  compared.data->channels = data.channels;
  compared.data->height = data.height;
  compared.data->width = data.width;
  compared.data->classes = data.classes;
  for (const std::vector<std::uint32_t>& samples : members)
    attack.members_.push_back(compared.add(data, some_of(samples)));
  std::vector<std::uint32_t> test;
  for (std::size_t i = data.train_count; i < data.count; ++i)
    test.push_back(static_cast<std::uint32_t>(i));
  attack.others_ = compared.add(data, some_of(test));
  compared.data->train_count = compared.data->count;

  train::LearnerRequest request;
  for (std::uint32_t i = 0; i < compared.data->count; ++i) request.shards.push_back({i});
  request.sampling.batch = 1;
  GOSSAMER_TRY(request.model, train::make_model(config.model.kind,
                                                {.channels = data.channels,
                                                 .height = data.height,
                                                 .width = data.width,
                                                 .classes = data.classes},
                                                config.model.values));
  request.data = std::move(compared.data);
  attack.device_ = std::make_unique<gpu::CpuDevice>(1);
  GOSSAMER_TRY(attack.learner_, train::make_learner<float>(std::move(request), *attack.device_));
  return attack;
}

std::vector<double> MembershipAttack::losses(std::span<const float> row,
                                             const std::vector<int>& samples) const {
  std::vector<train::LossRequest<float>> requests;
  for (const int sample : samples) requests.push_back({.peer = sample, .parameters = row.data()});
  learner_->batch_loss(requests);
  std::vector<double> losses;
  for (const auto& request : requests) losses.push_back(request.loss);
  std::ranges::sort(losses);
  return losses;
}

std::optional<double> MembershipAttack::auc(std::span<const float> row, int peer) const {
  if (others_.empty()) return std::nullopt;
  const std::vector<double> members = losses(row, members_[static_cast<std::size_t>(peer)]),
                            others = losses(row, others_);
  double smaller = 0;
  for (const double loss : members) {
    const auto [equal, greater] = std::ranges::equal_range(others, loss);
    smaller +=
        static_cast<double>(others.end() - greater) + 0.5 * static_cast<double>(greater - equal);
  }
  return smaller / static_cast<double>(members.size() * others.size());
}

}  // namespace gossamer::peer
