// The layers on the CPU, one overload pair each. Dense and convolution are matrix products (cpu/product.inl).
#include <algorithm>
#include <cmath>

#include "gpu/cpu/executor.hpp"

namespace gossamer::gpu {
namespace {

std::size_t size(int value) { return static_cast<std::size_t>(value); }

// Where a layer's operands lie.
template <class Real>
struct Places {
  const Real* x;
  Real* y;
  Real* dx;  ///< null: not asked for
  Real* dy;
  Real* scratch;

  Places(const LayerOperation& layer, Real* workspace)
      : x(workspace + layer.input), y(workspace + layer.output),
        dx(layer.input_gradient == kNowhere ? nullptr : workspace + layer.input_gradient),
        dy(workspace + layer.output_gradient), scratch(workspace + layer.scratch) {}
};

// Dense: Y = f(X W + b); with dY ← dY ⊙ f′: db = Σ_rows dY, dW = Xᵀ dY, dX = dY Wᵀ.

template <class Real>
void forward(const DenseOperation& dense, int batch, const Real* row, const Places<Real>& at) {
  const int in = dense.inputs, out = dense.outputs;
  const Real* bias = dense.bias == kNowhere ? nullptr : row + dense.bias;
  kernels<Real>().product({.m = batch, .n = out, .k = in, .a = at.x, .a_row = in, .b = row + dense.weights, .b_row = out,
                           .scratch = at.scratch, .c = at.y, .c_row = out, .bias = bias});
  kernels<Real>().activate(dense.activation, at.y, size(batch) * size(out));
}

template <class Real>
void backward(const DenseOperation& dense, int batch, const Real* row, Real* gradient, const Places<Real>& at) {
  const int in = dense.inputs, out = dense.outputs;
  kernels<Real>().activation_backward(dense.activation, at.y, at.dy, size(batch) * size(out));
  if (dense.bias != kNowhere) {
    std::fill_n(gradient + dense.bias, out, Real(0));
    kernels<Real>().column_sums(at.dy, batch, out, gradient + dense.bias);
  }
  kernels<Real>().product({.m = in, .n = out, .k = batch, .a = at.x, .a_row = 1, .a_column = in, .b = at.dy, .b_row = out,
                           .scratch = at.scratch, .c = gradient + dense.weights, .c_row = out});
  if (at.dx == nullptr) return;
  kernels<Real>().product({.m = batch, .n = in, .k = out, .a = at.dy, .a_row = out, .b = row + dense.weights, .b_row = out,
                           .b_transposed = true, .scratch = at.scratch, .c = at.dx, .c_row = in});
}

// Convolution. In a padded channels-last image the pixels under one line of the kernel are contiguous: line i of an output
// row is one product of its patches [width, kernel · channels], overlapping rows `channels` apart, with W[i].

/// The geometry of a correlation of a padded image with a kernel.
struct Correlation {
  int width = 0, channels = 0;  ///< of the padded input
  int out_height = 0, out_width = 0, outputs = 0;
  int kernel = 0;
};

template <class Real>
void correlate(const Correlation& c, const Real* padded, const Real* weights, const Real* bias, Real* out) {
  const int line = c.width * c.channels;
  for (int h = 0; h < c.out_height; ++h)
    kernels<Real>().product({.m = c.out_width, .n = c.outputs, .k = c.kernel * c.channels, .a = padded + h * line,
                             .a_row = c.channels, .b = weights, .b_row = c.outputs,
                             .c = out + h * c.out_width * c.outputs, .c_row = c.outputs, .segments = c.kernel,
                             .a_segment = line, .bias = bias});
}

/// One image into the middle of a zero frame.
template <class Real>
void pad(const Real* image, int height, int line, int padded_line, int top, int left, Real* padded, int padded_height) {
  std::fill_n(padded, size(padded_height) * size(padded_line), Real(0));
  for (int h = 0; h < height; ++h)
    std::copy_n(image + h * line, line, padded + (h + top) * padded_line + left);
}

std::size_t padded_values(const ConvolutionOperation& c) {
  return size(c.padded_height()) * size(c.padded_width()) * size(c.channels);
}
/// The output's gradient in a frame of kernel − 1 − padding zeros: the input's gradient is a correlation of that.
int frame(const ConvolutionOperation& c) { return c.kernel - 1 - c.padding; }
int framed_height(const ConvolutionOperation& c) { return c.output_height() + 2 * frame(c); }
int framed_width(const ConvolutionOperation& c) { return c.output_width() + 2 * frame(c); }
std::size_t framed_values(const ConvolutionOperation& c) {
  return size(framed_height(c)) * size(framed_width(c)) * size(c.outputs);
}
std::size_t weight_values(const ConvolutionOperation& c) { return size(c.kernel * c.kernel * c.channels * c.outputs); }
std::size_t input_values(const ConvolutionOperation& c) { return size(c.height * c.width * c.channels); }
std::size_t output_values(const ConvolutionOperation& c) { return size(c.output_height() * c.output_width() * c.outputs); }

// Scratch of a convolution: the padded inputs of the batch; then for the backward pass one framed gradient and the turned
// weights.

template <class Real>
void forward(const ConvolutionOperation& c, int batch, const Real* row, const Places<Real>& at) {
  const Correlation shape{c.padded_width(), c.channels, c.output_height(), c.output_width(), c.outputs, c.kernel};
  for (int i = 0; i < batch; ++i) {
    const Real* image = at.x + size(i) * input_values(c);
    if (c.padding > 0) {
      Real* padded = at.scratch + size(i) * padded_values(c);
      pad(image, c.height, c.width * c.channels, c.padded_width() * c.channels, c.padding, c.padding * c.channels, padded,
          c.padded_height());
      image = padded;
    }
    correlate(shape, image, row + c.weights, row + c.bias, at.y + size(i) * output_values(c));
  }
  kernels<Real>().activate(c.activation, at.y, size(batch) * output_values(c));
}

/// dW[i] += patchesᵀ dY, row of pixels by row of pixels.
template <class Real>
void accumulate_weights(const ConvolutionOperation& c, const Real* padded, const Real* dy, Real* gradient) {
  const int line = c.padded_width() * c.channels, patch = c.kernel * c.channels;
  for (int i = 0; i < c.kernel; ++i)
    kernels<Real>().product({.m = patch, .n = c.outputs, .k = c.output_width(), .a = padded + i * line, .a_row = 1,
                             .a_column = c.channels, .b = dy, .b_row = c.outputs,
                             .c = gradient + i * patch * c.outputs, .c_row = c.outputs, .segments = c.output_height(),
                             .a_segment = line, .accumulate = true});
}

/// turned[i, j, o, c] = W[k − 1 − i, k − 1 − j, c, o].
template <class Real>
void turn(const ConvolutionOperation& c, const Real* weights, Real* turned) {
  const int taps = c.kernel * c.kernel, tap_size = c.channels * c.outputs;
  for (int tap = 0; tap < taps; ++tap)
    for (int i = 0; i < c.channels; ++i)
      for (int o = 0; o < c.outputs; ++o)
        turned[tap * tap_size + o * c.channels + i] = weights[(taps - 1 - tap) * tap_size + i * c.outputs + o];
}

/// dX is the correlation of the framed dY with the turned weights.
template <class Real>
void input_gradient(const ConvolutionOperation& c, const Real* dy, const Real* turned, Real* framed, Real* dx) {
  pad(dy, c.output_height(), c.output_width() * c.outputs, framed_width(c) * c.outputs, frame(c), frame(c) * c.outputs, framed,
      framed_height(c));
  correlate<Real>({framed_width(c), c.outputs, c.height, c.width, c.channels, c.kernel}, framed, turned, nullptr, dx);
}

template <class Real>
void backward(const ConvolutionOperation& c, int batch, const Real* row, Real* gradient, const Places<Real>& at) {
  kernels<Real>().activation_backward(c.activation, at.y, at.dy, size(batch) * output_values(c));
  std::fill_n(gradient + c.bias, c.outputs, Real(0));
  kernels<Real>().column_sums(at.dy, batch * c.output_height() * c.output_width(), c.outputs, gradient + c.bias);
  std::fill_n(gradient + c.weights, weight_values(c), Real(0));
  Real* framed = at.scratch + (c.padding > 0 ? size(batch) * padded_values(c) : 0);
  Real* turned = framed + framed_values(c);
  if (at.dx != nullptr) turn(c, row + c.weights, turned);
  for (int i = 0; i < batch; ++i) {
    const Real* image = c.padding > 0 ? at.scratch + size(i) * padded_values(c) : at.x + size(i) * input_values(c);
    const Real* dy = at.dy + size(i) * output_values(c);
    accumulate_weights(c, image, dy, gradient + c.weights);
    if (at.dx != nullptr) input_gradient(c, dy, turned, framed, at.dx + size(i) * input_values(c));
  }
}

// Max-pool.

std::size_t input_values(const MaxPoolOperation& p) { return size(p.height * p.width * p.channels); }
std::size_t output_values(const MaxPoolOperation& p) {
  return size((p.height / p.size) * (p.width / p.size) * p.channels);
}

template <class Real>
void forward(const MaxPoolOperation& pool, int batch, const Real*, const Places<Real>& at) {
  for (int i = 0; i < batch; ++i)
    kernels<Real>().max_pool(pool, at.x + size(i) * input_values(pool), at.y + size(i) * output_values(pool));
}

template <class Real>
void backward(const MaxPoolOperation& pool, int batch, const Real*, Real*, const Places<Real>& at) {
  if (at.dx == nullptr) return;
  if (pool.height % pool.size != 0 || pool.width % pool.size != 0)
    std::fill_n(at.dx, size(batch) * input_values(pool), Real(0));
  for (int i = 0; i < batch; ++i) {
    const std::size_t in = size(i) * input_values(pool), out = size(i) * output_values(pool);
    kernels<Real>().max_pool_backward(pool, at.x + in, at.y + out, at.dy + out, at.dx + in);
  }
}

// Group norm. Scratch: μ and 1/σ of each sample and channel (a group's channels hold the same), then room for a few rows of
// channels.

template <class Real>
void group_totals(const GroupNormOperation& n, Real* values) {
  const int each = n.channels / n.groups;
  for (int g = 0; g < n.groups; ++g) {
    Real total = 0;
    for (int c = g * each; c < (g + 1) * each; ++c) total += values[c];
    for (int c = g * each; c < (g + 1) * each; ++c) values[c] = total;
  }
}

template <class Real>
void forward(const GroupNormOperation& n, int batch, const Real* row, const Places<Real>& at) {
  const int channels = n.channels;
  const std::size_t image = size(n.pixels) * size(channels);
  const Real share = Real(1) / static_cast<Real>(n.pixels * (channels / n.groups));
  Real* factor = at.scratch + 2 * size(batch) * size(channels);
  Real* term = factor + channels;
  for (int i = 0; i < batch; ++i) {
    const Real* x = at.x + size(i) * image;
    Real* y = at.y + size(i) * image;
    Real* mean = at.scratch + 2 * size(i) * size(channels);
    Real* inverse = mean + channels;
    std::fill_n(mean, 2 * channels, Real(0));
    kernels<Real>().column_sums(x, n.pixels, channels, mean);
    group_totals(n, mean);
    for (int c = 0; c < channels; ++c) mean[c] *= share;
    kernels<Real>().channel_products(x, mean, x, mean, n.pixels, channels, inverse);
    group_totals(n, inverse);
    for (int c = 0; c < channels; ++c) {
      inverse[c] = Real(1) / std::sqrt(inverse[c] * share + static_cast<Real>(GroupNormOperation::kEpsilon));
      factor[c] = row[n.scale + size(c)] * inverse[c];
      term[c] = row[n.shift + size(c)] - mean[c] * factor[c];
    }
    kernels<Real>().channel_affine(x, factor, term, y, n.pixels, channels);
    kernels<Real>().activate(n.activation, y, image);
  }
}

/// With N values in a group, A_c = Σ dy, B_c = Σ dy (x − μ), r = 1/σ:  dshift = A, dscale = r B,
/// dx = r scale dy − r (S₁ + x̂ S₂),  S₁ = Σ_group scale A / N,  S₂ = Σ_group scale r B / N.
template <class Real>
void backward(const GroupNormOperation& n, int batch, const Real* row, Real* gradient, const Places<Real>& at) {
  const int channels = n.channels;
  const std::size_t image = size(n.pixels) * size(channels);
  const Real share = Real(1) / static_cast<Real>(n.pixels * (channels / n.groups));
  Real* room = at.scratch + 2 * size(batch) * size(channels);
  Real *a = room, *b = room + channels, *dy_factor = room + 2 * channels, *x_factor = room + 3 * channels;
  Real *term = room + 4 * channels, *zero = room + 5 * channels;
  std::fill_n(zero, channels, Real(0));
  std::fill_n(gradient + n.scale, channels, Real(0));
  std::fill_n(gradient + n.shift, channels, Real(0));
  kernels<Real>().activation_backward(n.activation, at.y, at.dy, size(batch) * image);
  for (int i = 0; i < batch; ++i) {
    const Real* x = at.x + size(i) * image;
    const Real* dy = at.dy + size(i) * image;
    const Real* mean = at.scratch + 2 * size(i) * size(channels);
    const Real* inverse = mean + channels;
    std::fill_n(a, 2 * channels, Real(0));
    kernels<Real>().column_sums(dy, n.pixels, channels, a);
    kernels<Real>().channel_products(x, mean, dy, zero, n.pixels, channels, b);
    for (int c = 0; c < channels; ++c) {
      const Real scale = row[n.scale + size(c)];
      gradient[n.shift + size(c)] += a[c];
      b[c] *= inverse[c];
      gradient[n.scale + size(c)] += b[c];
      dy_factor[c] = scale * inverse[c];
      a[c] *= scale * share;
      b[c] *= scale * share;
    }
    if (at.dx == nullptr) continue;
    group_totals(n, a);
    group_totals(n, b);
    for (int c = 0; c < channels; ++c) {
      x_factor[c] = -(inverse[c] * inverse[c] * b[c]);
      term[c] = -(mean[c] * x_factor[c]) - inverse[c] * a[c];
    }
    kernels<Real>().channel_affine2(dy, dy_factor, x, x_factor, term, at.dx + size(i) * image, n.pixels, channels);
  }
}

}  // namespace

std::size_t scratch_values(const DenseOperation& dense, int batch) {
  return packed_values(std::max({dense.inputs, dense.outputs, batch}));
}
std::size_t scratch_values(const ConvolutionOperation& c, int batch) {
  return (c.padding > 0 ? size(batch) * padded_values(c) : 0) + framed_values(c) + weight_values(c);
}
std::size_t scratch_values(const MaxPoolOperation&, int) { return 0; }
std::size_t scratch_values(const GroupNormOperation& n, int batch) { return size(2 * batch + 6) * size(n.channels); }

template <class Real>
void forward(const LayerOperation& layer, int batch, const Real* parameters, Real* workspace) {
  const Places<Real> at(layer, workspace);
  std::visit([&](const auto& operation) { forward(operation, batch, parameters, at); }, layer.operation);
}

template <class Real>
void backward(const LayerOperation& layer, int batch, const Real* parameters, Real* gradient, Real* workspace) {
  const Places<Real> at(layer, workspace);
  std::visit([&](const auto& operation) { backward(operation, batch, parameters, gradient, at); }, layer.operation);
}

template void forward(const LayerOperation&, int, const float*, float*);
template void forward(const LayerOperation&, int, const double*, double*);
template void backward(const LayerOperation&, int, const float*, float*, float*);
template void backward(const LayerOperation&, int, const double*, double*, double*);

}  // namespace gossamer::gpu
