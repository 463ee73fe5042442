// Cut models beside whole ones, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "tests/train/compiled_model_test_util.hpp"
#include "tests/train/graph_test_util.hpp"
#include "train/split/pipelined_gradient.hpp"

namespace gossamer::train {

template <class Real>
bool same_bits(const std::vector<Real>& a, const std::vector<Real>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Real)) == 0;
}

/// The gradient of a cut model has the bits of that of the whole one, as has the loss.
template <class Real>
void check_same_gradient(Bench& bench, const SplitOptions& options) {
  const std::vector<Real> row = bench.parameters<Real>();
  double loss = 0;
  const std::vector<Real> expected = bench.gradient(row, &loss);
  gpu::BasicCpuDevice<Real> device(1);
  PipelinedGradient<Real> pipeline(split_of(bench.network, options, bench.batch), options, device);
  // Two replicas at once, from memory that is not 0.
  std::vector<Real> gradients[2] = {std::vector<Real>(row.size(), Real(NAN)),
                                    std::vector<Real>(row.size(), Real(7))};
  double losses[2] = {0, 0};
  std::vector<PipelinedRequest<Real>> requests;
  for (int r = 0; r < 2; ++r)
    requests.push_back({.samples = bench.table.all.data(),
                        .batch = bench.batch,
                        .parameters = row.data(),
                        .gradient = gradients[r].data(),
                        .loss = &losses[r]});
  for (int time = 0; time < 2; ++time) pipeline.compute(bench.task(), requests);
  for (int r = 0; r < 2; ++r) {
    CHECK(same_bits(gradients[r], expected));
    CHECK(losses[r] == loss + loss);
  }
}

/// Messages as FROM TO : VALUES.
inline std::vector<std::string> texts_of(const std::vector<Message>& messages) {
  std::vector<std::string> texts;
  for (const Message& message : messages)
    texts.push_back(std::to_string(message.from) + std::to_string(message.to) + ":" +
                    std::to_string(message.values));
  return texts;
}

/// Copies the worker's values of the model's row `whole` to the worker's row.
template <class Real>
void take_part(const ModelPart& part, std::span<const Real> whole, Real* own) {
  part.for_each_run([&](std::size_t in_whole, std::size_t in_own, std::size_t values) {
    std::copy_n(whole.data() + in_whole, values, own + in_own);
  });
}

/// Up to 9 samples for a random graph; tokens, if it embeds them.
inline Bench random_bench(const RandomGraph& graph, RandomStream& random) {
  Bench bench(graph.spec(), kSmallImage, 1 + static_cast<int>(random.below(9)));
  if (graph.embeds())
    for (float& value : bench.table.features)
      value = static_cast<float>(random.below(RandomGraph::kVocabulary));
  return bench;
}

/// Operations that have parameters.
inline int parameterised(const CompiledModel& model) {
  int count = 0;
  for (const CompiledOperation& operation : model.operations())
    count += operation.parameters > 0 ? 1 : 0;
  return count;
}

}  // namespace gossamer::train
