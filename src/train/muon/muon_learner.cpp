#include "train/muon/muon_learner.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.hpp"

namespace gossamer::train {
namespace {

/// A part of a row. columns: of a matrix that Muon steps with; 0: of the tensors beside them.
struct Part {
  std::size_t offset = 0, length = 0;
  int columns = 0;
};

/// The last tensor with more than one dimension is the output layer's. A convolution's weights
/// [kernel, kernel, inputs, outputs] are a matrix of as many columns as it has outputs. Embeddings
/// are tables, and no matrices that multiply anything.
std::vector<Part> parts_of(const std::vector<ParameterBlock>& blocks) {
  const auto is_matrix = [](const ParameterBlock& block) {
    return block.shape.size() > 1 && block.start != ParameterBlock::Start::embedding;
  };
  std::size_t last = blocks.size();
  for (std::size_t k = 0; k < blocks.size(); ++k)
    if (is_matrix(blocks[k])) last = k;
  std::vector<Part> parts;
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    const ParameterBlock& block = blocks[k];
    const bool hidden = is_matrix(block) && k != last;
    if (hidden || parts.empty() || parts.back().columns > 0)
      parts.push_back({block.offset, block.length, hidden ? block.shape.back() : 0});
    else parts.back().length += block.length;
  }
  return parts;
}

template <class Real>
class MuonLearner final : public Learner<Real> {
 public:
  MuonLearner(std::unique_ptr<Learner<Real>> learner, OptimizerOptions optimizer,
              gpu::BasicDevice<Real>& device)
      : learner_(std::move(learner)),
        optimizer_(std::move(optimizer)),
        device_(device),
        parts_(parts_of(learner_->blocks())) {}

  std::size_t parameters() const override { return learner_->parameters(); }
  const std::vector<ParameterBlock>& blocks() const override { return learner_->blocks(); }
  void initialise(int peer, std::span<Real> row) const override { learner_->initialise(peer, row); }

  void local_steps(std::span<StepRequest<Real>> requests) override {
    std::vector<StepRequest<Real>> gradients(requests.begin(), requests.end());
    for (StepRequest<Real>& each : gradients) each.steps = 1;
    std::vector<UpdateRequest<Real>> updates(requests.size());
    const int steps = requests.empty() ? 0 : requests.front().steps;
    for (int s = 0; s < steps; ++s) {
      for (std::size_t i = 0; i < requests.size(); ++i) {
        GOSSAMER_CHECK(requests[i].steps == steps, "all peers take the same number of steps");
        gradients[i].first_step = requests[i].first_step + static_cast<std::uint64_t>(s);
        updates[i] = {.step = gradients[i].first_step,
                      .parameters = requests[i].parameters,
                      .state = requests[i].state,
                      .gradient = requests[i].gradient,
                      .length = parameters(),
                      .peer = requests[i].peer,
                      .rate_lead = requests[i].rate_lead};
      }
      learner_->gradient(gradients);
      update(updates);
    }
  }
  void gradient(std::span<StepRequest<Real>> requests) override { learner_->gradient(requests); }

  void update(std::span<UpdateRequest<Real>> requests) override {
    std::vector<gpu::UpdateJob<Real>> matrices, others;
    for (const UpdateRequest<Real>& request : requests) {
      GOSSAMER_CHECK(request.length == parameters(), "Muon updates whole rows");
      const double rate = this->rate(request.peer, request.step + request.rate_lead);
      for (const Part& part : parts_)
        (part.columns > 0 ? matrices : others)
            .push_back({.parameters = request.parameters + part.offset,
                        .state = {request.state[0] + part.offset, request.state[1] + part.offset},
                        .gradient = request.gradient + part.offset,
                        .length = part.length,
                        .rate = part.columns > 0 ? rate : rate * optimizer_.other_rate_factor,
                        .step = request.step,
                        .columns = part.columns});
    }
    device_.update(optimizer_.rule, matrices);
    device_.update(optimizer_.other_rule, others);
  }

  void evaluate(std::span<EvaluateRequest<Real>> requests) override {
    learner_->evaluate(requests);
  }
  void batch_loss(std::span<LossRequest<Real>> requests) override {
    learner_->batch_loss(requests);
  }
  double rate(int peer, std::uint64_t step) const override { return learner_->rate(peer, step); }
  void refresh_data(std::vector<std::size_t> sizes) override {
    learner_->refresh_data(std::move(sizes));
  }
  std::size_t shard_size(int peer) const override { return learner_->shard_size(peer); }
  double data_weight(int peer) const override { return learner_->data_weight(peer); }
  std::uint64_t batches_per_epoch(int peer) const override {
    return learner_->batches_per_epoch(peer);
  }
  std::shared_ptr<const SplitModel> split() const override { return learner_->split(); }
  std::size_t workspace_bytes() const override {
    return learner_->workspace_bytes() + matrix_bytes();
  }
  std::size_t whole_workspace_bytes() const override {
    return learner_->whole_workspace_bytes() + matrix_bytes();
  }

 private:
  /// Two matrices of the largest one's shape and two of its Gram matrix, at most for each peer.
  std::size_t matrix_bytes() const {
    std::size_t most = 0;
    for (const Part& part : parts_) {
      if (part.columns == 0) continue;
      const auto columns = static_cast<std::size_t>(part.columns);
      const std::size_t less = std::min(columns, part.length / columns);
      most = std::max(most, 2 * (part.length + less * less));
    }
    return most * sizeof(Real);
  }

  std::unique_ptr<Learner<Real>> learner_;
  OptimizerOptions optimizer_;
  gpu::BasicDevice<Real>& device_;
  std::vector<Part> parts_;
};

}  // namespace

template <class Real>
std::unique_ptr<Learner<Real>> make_muon_learner(std::unique_ptr<Learner<Real>> learner,
                                                 OptimizerOptions optimizer,
                                                 gpu::BasicDevice<Real>& device) {
  return std::make_unique<MuonLearner<Real>>(std::move(learner), std::move(optimizer), device);
}

template std::unique_ptr<Learner<float>> make_muon_learner(std::unique_ptr<Learner<float>>,
                                                           OptimizerOptions,
                                                           gpu::BasicDevice<float>&);
template std::unique_ptr<Learner<double>> make_muon_learner(std::unique_ptr<Learner<double>>,
                                                            OptimizerOptions,
                                                            gpu::BasicDevice<double>&);

}  // namespace gossamer::train
