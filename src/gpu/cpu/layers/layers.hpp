// The layers on the CPU: one overload of forward and backward each. executor.cpp dispatches to
// them.
#pragma once

#include <algorithm>
#include <cstddef>

#include "gpu/cpu/executor.hpp"

namespace gossamer::gpu {

inline std::size_t size(int value) { return static_cast<std::size_t>(value); }

/// Addresses of a layer's operands in a peer's workspace.
template <class Real>
class Operands {
 public:
  const Real* x;  ///< of the first input, as dx
  Real* y;
  Real* dx;  ///< null: it is not wanted
  Real* dy;  ///< null: the layer has no backward pass
  Real* scratch;
  bool accumulate;         ///< gradients of parameters are added to what is there
  bool goes_on;            ///< dx begins with what is there (LayerInput::begun_gradient)
  WantedGradients wanted;  ///< of a dense layer or a convolution; others make all

  Operands(const LayerOperation& layer, Real* workspace, bool accumulate_gradients = false,
           WantedGradients wanted_gradients = {})
      : x(workspace + layer.input()),
        y(workspace + layer.output),
        dx(address(workspace, layer.input_gradient())),
        dy(address(workspace, layer.output_gradient())),
        scratch(workspace + layer.scratch),
        accumulate(accumulate_gradients),
        goes_on(layer.inputs[0].begun_gradient != kNowhere),
        wanted(wanted_gradients),
        layer_(layer),
        workspace_(workspace) {}

  /// Gradients of parameters start from 0, unless they are added.
  void start(Real* gradient, std::size_t values) const {
    if (!accumulate) std::fill_n(gradient, values, Real(0));
  }

  std::size_t inputs() const { return layer_.inputs.size(); }
  const Real* input(std::size_t k) const { return workspace_ + layer_.inputs[k].value; }
  /// Null: it is not wanted.
  Real* input_gradient(std::size_t k) const {
    return address(workspace_, layer_.inputs[k].gradient);
  }

 private:
  static Real* address(Real* workspace, std::size_t offset) {
    return offset == kNowhere ? nullptr : workspace + offset;
  }
  const LayerOperation& layer_;
  Real* workspace_;
};

/// Outputs of `batch` samples, with the parameters of `row`.
template <class Real>
void forward(const DenseOperation& dense, int batch, const Real* row, const Operands<Real>& at);
template <class Real>
void forward(const ConvolutionOperation& c, int batch, const Real* row, const Operands<Real>& at);
template <class Real>
void forward(const MaxPoolOperation& pool, int batch, const Real* row, const Operands<Real>& at);
template <class Real>
void forward(const GroupNormOperation& n, int batch, const Real* row, const Operands<Real>& at);
template <class Real>
void forward(const AveragePoolOperation& pool, int batch, const Real* row,
             const Operands<Real>& at);
template <class Real>
void forward(const ElementwiseOperation& e, int batch, const Real* row, const Operands<Real>& at);
template <class Real>
void forward(const SumOperation& sum, int batch, const Real* row, const Operands<Real>& at);
template <class Real>
void forward(const ConcatenateOperation& c, int batch, const Real* row, const Operands<Real>& at);
template <class Real>
void forward(const EmbeddingOperation& e, int batch, const Real* row, const Operands<Real>& at);
template <class Real>
void forward(const AttentionOperation& a, int batch, const Real* row, const Operands<Real>& at);

/// Gradients of the parameters, into `gradient` (laid out as the row), and of the input. Each
/// parameter's is one chain of additions, sample by sample and position by position, so that a
/// batch in pieces that accumulate has the bits of the whole batch.
template <class Real>
void backward(const DenseOperation& dense, int batch, const Real* row, Real* gradient,
              const Operands<Real>& at);
template <class Real>
void backward(const ConvolutionOperation& c, int batch, const Real* row, Real* gradient,
              const Operands<Real>& at);
template <class Real>
void backward(const MaxPoolOperation& pool, int batch, const Real* row, Real* gradient,
              const Operands<Real>& at);
template <class Real>
void backward(const GroupNormOperation& n, int batch, const Real* row, Real* gradient,
              const Operands<Real>& at);
template <class Real>
void backward(const AveragePoolOperation& pool, int batch, const Real* row, Real* gradient,
              const Operands<Real>& at);
template <class Real>
void backward(const ElementwiseOperation& e, int batch, const Real* row, Real* gradient,
              const Operands<Real>& at);
template <class Real>
void backward(const SumOperation& sum, int batch, const Real* row, Real* gradient,
              const Operands<Real>& at);
template <class Real>
void backward(const ConcatenateOperation& c, int batch, const Real* row, Real* gradient,
              const Operands<Real>& at);
template <class Real>
void backward(const EmbeddingOperation& e, int batch, const Real* row, Real* gradient,
              const Operands<Real>& at);
template <class Real>
void backward(const AttentionOperation& a, int batch, const Real* row, Real* gradient,
              const Operands<Real>& at);

}  // namespace gossamer::gpu
