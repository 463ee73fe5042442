// The layers on the CPU: one overload of forward and backward each. executor.cpp dispatches to
// them.
#pragma once

#include <cstddef>

#include "gpu/cpu/executor.hpp"

namespace gossamer::gpu {

inline std::size_t size(int value) { return static_cast<std::size_t>(value); }

/// Addresses of a layer's operands in a peer's workspace.
template <class Real>
struct Operands {
  const Real* x;
  Real* y;
  Real* dx;  ///< null for the first layer
  Real* dy;
  Real* scratch;

  Operands(const LayerOperation& layer, Real* workspace)
      : x(workspace + layer.input),
        y(workspace + layer.output),
        dx(layer.input_gradient == kNowhere ? nullptr : workspace + layer.input_gradient),
        dy(workspace + layer.output_gradient),
        scratch(workspace + layer.scratch) {}
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

/// Gradients of the parameters, into `gradient` (laid out as the row), and of the input.
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

}  // namespace gossamer::gpu
