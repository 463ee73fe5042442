// Convolution.
//
// In a padded channels-last image the pixels under one line of the kernel are contiguous: line i of
// an output row is one product of its patches [width, kernel · channels], overlapping rows
// `channels` apart, with W[i].
//
// Scratch of a convolution: the padded inputs of the batch; then for the backward pass one framed
// gradient and the turned weights.
#include <algorithm>

#include "gpu/cpu/layers/layers.hpp"

namespace gossamer::gpu {
namespace {

/// The geometry of a correlation of a padded image with a kernel.
struct Correlation {
  int width = 0, channels = 0;  ///< of the padded input
  int out_height = 0, out_width = 0, outputs = 0;
  int kernel = 0;
};

template <class Real>
void correlate(const Correlation& c, const Real* padded, const Real* weights, const Real* bias,
               Real* out, bool accumulate = false) {
  const int line = c.width * c.channels;
  for (int h = 0; h < c.out_height; ++h)
    kernels<Real>().product({.m = c.out_width,
                             .n = c.outputs,
                             .k = c.kernel * c.channels,
                             .a = padded + h * line,
                             .a_row = c.channels,
                             .b = weights,
                             .b_row = c.outputs,
                             .c = out + h * c.out_width * c.outputs,
                             .c_row = c.outputs,
                             .segments = c.kernel,
                             .a_segment = line,
                             .bias = bias,
                             .accumulate = accumulate});
}

/// Copies one image into the middle of a zero frame.
template <class Real>
void pad(const Real* image, int height, int line, int padded_line, int top, int left, Real* padded,
         int padded_height) {
  std::fill_n(padded, size(padded_height) * size(padded_line), Real(0));
  for (int h = 0; h < height; ++h)
    std::copy_n(image + h * line, line, padded + (h + top) * padded_line + left);
}

std::size_t padded_values(const ConvolutionOperation& c) {
  return size(c.padded_height()) * size(c.padded_width()) * size(c.channels);
}
/// The output's gradient in a frame of kernel − 1 − padding zeros: the input's gradient is a
/// correlation of that.
int frame(const ConvolutionOperation& c) { return c.kernel - 1 - c.padding; }
int framed_height(const ConvolutionOperation& c) { return c.output_height() + 2 * frame(c); }
int framed_width(const ConvolutionOperation& c) { return c.output_width() + 2 * frame(c); }
std::size_t framed_values(const ConvolutionOperation& c) {
  return size(framed_height(c)) * size(framed_width(c)) * size(std::min(c.outputs, kChainChannels));
}
std::size_t weight_values(const ConvolutionOperation& c) {
  return size(c.kernel * c.kernel * c.channels * c.outputs);
}
std::size_t input_values(const ConvolutionOperation& c) {
  return size(c.height * c.width * c.channels);
}
std::size_t output_values(const ConvolutionOperation& c) {
  return size(c.output_height() * c.output_width() * c.outputs);
}

/// dW[i] += patchesᵀ dY, row of pixels by row of pixels.
template <class Real>
void accumulate_weights(const ConvolutionOperation& c, const Real* padded, const Real* dy,
                        Real* gradient) {
  const int line = c.padded_width() * c.channels, patch = c.kernel * c.channels;
  for (int i = 0; i < c.kernel; ++i)
    kernels<Real>().product({.m = patch,
                             .n = c.outputs,
                             .k = c.output_width(),
                             .a = padded + i * line,
                             .a_row = 1,
                             .a_column = c.channels,
                             .b = dy,
                             .b_row = c.outputs,
                             .c = gradient + i * patch * c.outputs,
                             .c_row = c.outputs,
                             .segments = c.output_height(),
                             .a_segment = line,
                             .accumulate = true});
}

/// Block by block of outputs, one after the other: turned[i, j, o, c] = W[k − 1 − i, k − 1 − j, c,
/// first + o].
template <class Real>
void turn(const ConvolutionOperation& c, const Real* weights, Real* turned) {
  const int taps = c.kernel * c.kernel, tap_size = c.channels * c.outputs;
  for (int first = 0; first < c.outputs; first += kChainChannels) {
    const int outputs = std::min(kChainChannels, c.outputs - first);
    for (int tap = 0; tap < taps; ++tap, turned += outputs * c.channels)
      for (int i = 0; i < c.channels; ++i)
        for (int o = 0; o < outputs; ++o)
          turned[o * c.channels + i] =
              weights[(taps - 1 - tap) * tap_size + i * c.outputs + first + o];
  }
}

/// Copies outputs first … first + outputs − 1 of a gradient into the middle of a zero frame.
template <class Real>
void pad_block(const ConvolutionOperation& c, const Real* dy, int first, int outputs,
               Real* framed) {
  if (outputs == c.outputs)
    return pad(dy, c.output_height(), c.output_width() * outputs, framed_width(c) * outputs,
               frame(c), frame(c) * outputs, framed, framed_height(c));
  std::fill_n(framed, size(framed_height(c)) * size(framed_width(c)) * size(outputs), Real(0));
  for (int h = 0; h < c.output_height(); ++h)
    for (int w = 0; w < c.output_width(); ++w)
      std::copy_n(dy + (h * c.output_width() + w) * c.outputs + first, outputs,
                  framed + ((h + frame(c)) * framed_width(c) + w + frame(c)) * outputs);
}

/// dX is the sum over the blocks of the correlations of the framed dY with the turned weights.
template <class Real>
void input_gradient(const ConvolutionOperation& c, const Real* dy, const Real* turned, Real* framed,
                    bool goes_on, Real* dx) {
  for (int first = 0; first < c.outputs; first += kChainChannels) {
    const int outputs = std::min(kChainChannels, c.outputs - first);
    pad_block(c, dy, first, outputs, framed);
    correlate<Real>({framed_width(c), outputs, c.height, c.width, c.channels, c.kernel}, framed,
                    turned, nullptr, dx, goes_on || first > 0);
    turned += c.kernel * c.kernel * outputs * c.channels;
  }
}

}  // namespace

template <class Real>
void forward(const ConvolutionOperation& c, int batch, const Real* row, const Operands<Real>& at) {
  const Correlation shape{c.padded_width(), c.channels, c.output_height(),
                          c.output_width(), c.outputs,  c.kernel};
  const Real* bias = c.bias == kNowhere ? nullptr : row + c.bias;
  for (int i = 0; i < batch; ++i) {
    const Real* image = at.x + size(i) * input_values(c);
    if (c.padding > 0) {
      Real* padded = at.scratch + size(i) * padded_values(c);
      pad(image, c.height, c.width * c.channels, c.padded_width() * c.channels, c.padding,
          c.padding * c.channels, padded, c.padded_height());
      image = padded;
    }
    correlate(shape, image, row + c.weights, bias, at.y + size(i) * output_values(c));
  }
  kernels<Real>().activate(c.activation, at.y, size(batch) * output_values(c));
}

template <class Real>
void backward(const ConvolutionOperation& c, int batch, const Real* row, Real* gradient,
              const Operands<Real>& at) {
  const bool wants_input = at.dx != nullptr && at.wanted.input;
  if (at.wanted.is_first)
    kernels<Real>().activation_backward(c.activation, at.y, at.dy, size(batch) * output_values(c));
  if (at.wanted.parameters && c.bias != kNowhere) {
    at.start(gradient + c.bias, size(c.outputs));
    kernels<Real>().column_sums(at.dy, batch * c.output_height() * c.output_width(), c.outputs,
                                gradient + c.bias);
  }
  if (at.wanted.parameters) at.start(gradient + c.weights, weight_values(c));
  Real* framed = at.scratch + (c.padding > 0 ? size(batch) * padded_values(c) : 0);
  Real* turned = framed + framed_values(c);
  if (wants_input) turn(c, row + c.weights, turned);
  for (int i = 0; i < batch; ++i) {
    const Real* image =
        c.padding > 0 ? at.scratch + size(i) * padded_values(c) : at.x + size(i) * input_values(c);
    const Real* dy = at.dy + size(i) * output_values(c);
    if (at.wanted.parameters) accumulate_weights(c, image, dy, gradient + c.weights);
    if (wants_input)
      input_gradient(c, dy, turned, framed, at.goes_on, at.dx + size(i) * input_values(c));
  }
}

std::size_t scratch_values(const ConvolutionOperation& c, int batch) {
  return (c.padding > 0 ? size(batch) * padded_values(c) : 0) + framed_values(c) + weight_values(c);
}

template void forward(const ConvolutionOperation&, int, const float*, const Operands<float>&);
template void backward(const ConvolutionOperation&, int, const float*, float*,
                       const Operands<float>&);
template void forward(const ConvolutionOperation&, int, const double*, const Operands<double>&);
template void backward(const ConvolutionOperation&, int, const double*, double*,
                       const Operands<double>&);

}  // namespace gossamer::gpu
