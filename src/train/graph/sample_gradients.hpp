// The gradients of a batch's loss in the parameters and in the samples themselves, in double: what
// an attack on gradients needs. Training never computes the latter.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/rows.hpp"
#include "gpu/cpu_device.hpp"
#include "train/graph/compiled_model.hpp"

namespace gossamer::train {

/// Thread: one at a time.
class SampleGradients {
 public:
  /// For batches of `batch` samples of a model that classifies. Errors (invalid): those of
  /// CompiledModel::compile(); a model that takes tokens, which have no gradient; a regression.
  static Result<SampleGradients> make(const ModelSpec& spec, const ModelContext& data, int batch);

  std::size_t parameters() const { return model_->parameters(); }  ///< d
  int batch() const { return model_->program().batch; }

  /// `parameters`: [d]. `samples`: [batch, channels, height, width], as in a data set. `labels`:
  /// [batch].
  void compute(std::span<const double> parameters, std::span<const float> samples,
               std::span<const std::int32_t> labels);

  // ---- of the last compute()
  double loss() const { return loss_; }                                       ///< the batch's mean
  std::span<const double> in_parameters() const { return gradient_.row(0); }  ///< [d]
  /// As `samples`. Each is divided by the batch, as the loss is a mean.
  std::span<const double> in_samples() const { return in_samples_; }

 private:
  explicit SampleGradients(CompiledModel model);

  std::shared_ptr<const CompiledModel> model_;
  std::unique_ptr<gpu::BasicCpuDevice<double>> device_;
  Rows<double> parameters_, gradient_, workspace_;
  std::vector<std::uint32_t> order_;  ///< 0 … batch − 1
  std::vector<double> in_samples_;
  double loss_ = 0;
};

}  // namespace gossamer::train
