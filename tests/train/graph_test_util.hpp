// Models as graphs, for tests: one operation after the other, and at random.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/philox.hpp"
#include "train/model.hpp"

namespace gossamer::train {

inline constexpr ModelContext kSmallImage{.channels = 2, .height = 4, .width = 6, .classes = 3};

/// A graph: each operation takes the one before it, unless it says otherwise.
struct TestGraph {
  /// Returns the number of the operation.
  int add(std::string name, Operator op) {
    return add(std::move(name), std::move(op), {static_cast<int>(spec.operations.size()) - 1});
  }
  int add(std::string name, Operator op, std::vector<int> inputs) {
    spec.operations.push_back({std::move(name), std::move(op), std::move(inputs)});
    return static_cast<int>(spec.operations.size()) - 1;
  }
  ModelSpec spec;
};

/// A random graph on kSmallImage: each operation takes random earlier ones, and what is left over
/// at the end is added up. `smooth`: without the operators whose gradient jumps, or is that of
/// tokens: relu, max-pool and embeddings.
class RandomGraph {
 public:
  static constexpr int kVocabulary = 5;  ///< of samples that are embedded

  explicit RandomGraph(std::uint64_t seed, bool smooth = true)
      : random_(seed, kNoPeer, Purpose::test, 2), smooth_(smooth) {
    const int count = 2 + static_cast<int>(random_.below(6));
    for (int i = 0; i < count; ++i) add_operation();
    join();
  }
  ModelSpec spec() const { return graph_.spec; }
  /// Whether the samples are to be tokens.
  bool embeds() const { return std::holds_alternative<Embedding>(graph_.spec.operations[0].op); }

 private:
  static constexpr int kChannels = 6;

  Activation activation() {
    constexpr Activation kAll[] = {Activation::none, Activation::tanh, Activation::gelu,
                                   Activation::relu};
    return kAll[random_.below(smooth_ ? 3 : 4)];
  }
  /// An earlier operation whose output has kChannels channels at each position.
  int earlier() { return like_[random_.below(static_cast<std::uint32_t>(like_.size()))]; }
  std::string name() { return "operation_" + std::to_string(graph_.spec.operations.size()); }
  int dense(int units, int input) {
    return graph_.add(
        name(), Dense{.units = units, .activation = activation(), .per_position = true}, {input});
  }

  void add_operation() { like_.push_back(next_operation()); }

  int next_operation() {
    if (like_.empty()) return first_operation();
    const int input = earlier();
    switch (random_.below(9)) {
      case 0: return dense(kChannels, input);
      case 1: {
        const bool bias = random_.below(2) == 0;
        return graph_.add(
            name(),
            Convolution{
                .channels = kChannels, .padding = 1, .activation = activation(), .bias = bias},
            {input});
      }
      case 2:
        return graph_.add(name(), GroupNorm{.groups = 3, .activation = activation()}, {input});
      case 3: return graph_.add(name(), LayerNorm{}, {input});
      case 4: return graph_.add(name(), Add{.activation = activation()}, {input, earlier()});
      case 5: return graph_.add(name(), PositionEmbedding{}, {input});
      case 6: return graph_.add(name(), Activate{.activation = activation()}, {input});
      case 7: return dense(kChannels, graph_.add(name(), Concatenate{}, {input, earlier()}));
      default: {
        const bool causal = random_.below(2) == 0;
        const int projected = dense(3 * kChannels, input);
        return graph_.add(name(), Attention{.heads = 2, .causal = causal}, {projected});
      }
    }
  }

  int first_operation() {
    if (smooth_ || random_.below(4) > 0) return dense(kChannels, kSampleInput);
    graph_.add(name(), Embedding{.vocabulary = kVocabulary, .features = kChannels}, {kSampleInput});
    return graph_.add(name(), Reshape{.height = 0, .width = 6, .channels = kChannels});
  }

  void join() {
    std::vector<bool> taken(graph_.spec.operations.size());
    for (const Operation& operation : graph_.spec.operations)
      for (const int input : operation.inputs)
        if (input != kSampleInput) taken[static_cast<std::size_t>(input)] = true;
    std::vector<int> left;
    for (std::size_t i = 0; i < taken.size(); ++i)
      if (!taken[i]) left.push_back(static_cast<int>(i));
    if (left.size() > 1) left = {graph_.add("join", Add{}, left)};
    if (smooth_ || random_.below(2) == 0) graph_.add("pool", AveragePool{.size = 2}, {left[0]});
    else graph_.add("pool", MaxPool{.size = 2}, {left[0]});
    graph_.add("out", Dense{.units = kSmallImage.classes});
  }

  RandomStream random_;
  bool smooth_;
  TestGraph graph_;
  std::vector<int> like_;  // operations whose outputs have kChannels channels at each position
};

}  // namespace gossamer::train
