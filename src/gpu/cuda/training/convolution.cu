// Convolution by implicit products. With a pixel (sample, h, w) as one index:
//   Y[pixel, o]     = activation(b[o] + Σ_{(i,j,c)} X[pixel + (i, j) − padding, c] W[(i,j,c), o])
//   dX[pixel, c]    = Σ_{(i,j,o)} dY[pixel − (i, j) + padding, o] W[(i,j,c), o]
//   dW[(i,j,c), o]  = Σ_pixel X[pixel + (i, j) − padding, c] dY[pixel, o]
// Values outside an image are 0. The last sum is long and its result small, so it is split, and the
// partial sums are added in order.
#include <algorithm>

#include "gpu/cuda/training/layers.hpp"
#include "gpu/cuda/training/tiled_product.hpp"

namespace gossamer::gpu::cuda {
namespace {

/// Images of [height, width, channels], sample after sample.
struct Images {
  int height, width, channels;
  FastDivide by_height, by_width, by_channels;
  Images(int h, int w, int c)
      : height(h), width(w), channels(c), by_height(h), by_width(w), by_channels(c) {}
};

/// A pixel of the images, to which the kernel's offsets are added; far outside if there is none.
struct Pixel {
  int image, h, w;  ///< image: index of its sample's first value
};
constexpr int kFarOutside = -(1 << 29);

/// A position in the kernel.
struct Tap {
  int h, w, channel;
};

template <class Real>
struct Sources {
  Batch<Real> batch;
  Images in;   ///< gathered from
  Images out;  ///< its pixels are the product's rows
  FastDivide by_kernel;
  int kernel, shift;     ///< shift: added to a pixel's h and w
  std::size_t gathered;  ///< in the workspace

  /// Pixel `index` of the `count` pixels of `out`, as a position in `in`.
  __device__ __forceinline__ Pixel pixel(int index, int count) const {
    if (index >= count) return {0, kFarOutside, kFarOutside};
    const int w = out.by_width.split(index), h = out.by_height.split(index);
    return {index * in.height * in.width * in.channels, h + shift, w + shift};
  }
  __device__ __forceinline__ Tap tap(int index) const {
    const int channel = in.by_channels.split(index), w = by_kernel.split(index);
    return {index, w, channel};
  }
  template <int kSign>
  __device__ __forceinline__ Real value(const Real* images, const Pixel& p, const Tap& t) const {
    const int h = p.h + kSign * t.h, w = p.w + kSign * t.w;
    const bool inside = static_cast<unsigned>(h) < static_cast<unsigned>(in.height) &&
                        static_cast<unsigned>(w) < static_cast<unsigned>(in.width);
    return inside ? images[p.image + (h * in.width + w) * in.channels + t.channel] : Real(0);
  }
};

/// Y.
template <class Real>
struct Forward {
  static constexpr bool kAlongK = true;
  using Row = Pixel;
  int m, n, k;
  Sources<Real> sources;
  std::size_t weights, bias, output;  ///< bias: kNowhere if there is none
  Activation activation;
  const Real *x = nullptr, *w = nullptr, *b_row = nullptr;
  Real* y = nullptr;

  __device__ void bind(unsigned peer) {
    x = sources.batch.at(peer, sources.gathered);
    w = sources.batch.parameters(peer) + weights;
    b_row = bias == kNowhere ? nullptr : sources.batch.parameters(peer) + bias;
    y = sources.batch.at(peer, output);
  }
  __device__ __forceinline__ Row row(int index) const { return sources.pixel(index, m); }
  __device__ __forceinline__ Tap step(int index) const { return sources.tap(index); }
  __device__ __forceinline__ Real a(const Row& row, const Tap& tap) const {
    return sources.template value<1>(x, row, tap);
  }
  __device__ __forceinline__ Real b(int l, int j) const {
    return w[static_cast<std::size_t>(l) * n + j];
  }
  __device__ __forceinline__ void store(int, int i, int j, Real value) const {
    if (b_row != nullptr) value += b_row[j];
    y[static_cast<std::size_t>(i) * n + j] = activated(activation, value);
  }
};

/// dX.
template <class Real>
struct InputGradient {
  static constexpr bool kAlongK = true;
  using Row = Pixel;
  int m, n, k;
  Sources<Real> sources;  // from dY
  std::size_t weights, input_gradient;
  const Real *dy = nullptr, *w = nullptr;
  Real* dx = nullptr;

  __device__ void bind(unsigned peer) {
    dy = sources.batch.at(peer, sources.gathered);
    w = sources.batch.parameters(peer) + weights;
    dx = sources.batch.at(peer, input_gradient);
  }
  __device__ __forceinline__ Row row(int index) const { return sources.pixel(index, m); }
  __device__ __forceinline__ Tap step(int index) const { return sources.tap(index); }
  __device__ __forceinline__ Real a(const Row& row, const Tap& tap) const {
    return sources.template value<-1>(dy, row, tap);
  }
  __device__ __forceinline__ Real b(int l, int c) const {
    const int o = sources.in.by_channels.split(l);
    return w[(static_cast<std::size_t>(l) * n + c) * sources.in.channels + o];
  }
  __device__ __forceinline__ void store(int, int i, int j, Real value) const {
    dx[static_cast<std::size_t>(i) * n + j] = value;
  }
};

/// dW, or its partial sums [split, m, n] if there are several.
template <class Real>
struct WeightGradient {
  static constexpr bool kAlongK = false;
  using Row = Tap;
  int m, n, k;
  Sources<Real> sources;
  std::size_t weights, output_gradient, partials;
  bool split_up;
  const Real *x = nullptr, *dy = nullptr;
  Real* to = nullptr;

  __device__ void bind(unsigned peer) {
    x = sources.batch.at(peer, sources.gathered);
    dy = sources.batch.at(peer, output_gradient);
    to = split_up ? sources.batch.at(peer, partials) : sources.batch.gradient(peer) + weights;
  }
  __device__ __forceinline__ Row row(int index) const {
    return index < m ? sources.tap(index) : Tap{kFarOutside, kFarOutside, 0};
  }
  __device__ __forceinline__ Pixel step(int index) const { return sources.pixel(index, k); }
  __device__ __forceinline__ Real a(const Row& tap, const Pixel& pixel) const {
    return sources.template value<1>(x, pixel, tap);
  }
  __device__ __forceinline__ Real b(int l, int j) const {
    return dy[static_cast<std::size_t>(l) * n + j];
  }
  __device__ __forceinline__ void store(int split, int i, int j, Real value) const {
    to[(static_cast<std::size_t>(split) * m + i) * n + j] = value;
  }
};

constexpr int kLongSum = 128;  // terms from which on several groups of threads share a tile

/// Products of many rows and few columns: the narrower the result, the taller the tile.
template <class Real, class Problem>
void launch_tall(cudaStream_t stream, const Problem& problem, int peers) {
  const bool is_long = problem.k >= kLongSum;
  if (problem.n <= 8 && is_long)
    launch_tiled<Tiles<Real, 128, 8, 16, 4>>(stream, problem, peers, 1);
  else if (problem.n <= 8) launch_tiled<Tiles<Real, 256, 8, 8>>(stream, problem, peers, 1);
  else if (problem.n <= 16 && is_long)
    launch_tiled<Tiles<Real, 128, 16, 16, 2>>(stream, problem, peers, 1);
  else if (problem.n <= 16) launch_tiled<Tiles<Real, 256, 16, 8>>(stream, problem, peers, 1);
  else if (problem.n <= 32) launch_tiled<Tiles<Real, 128, 32>>(stream, problem, peers, 1);
  else launch_tiled<Tiles<Real, 64, 64>>(stream, problem, peers, 1);
}

// The weight gradient's tile, and the number of partial sums.
constexpr int kSmallM = 64, kSmallN = 16, kLargeN = 64;
constexpr int kShareBlocks = 1056, kLeastShare = 512;

int taps(const ConvolutionOperation& c) { return c.kernel * c.kernel * c.channels; }
int output_pixels(const ConvolutionOperation& c) { return c.output_height() * c.output_width(); }

int weight_splits(const ConvolutionOperation& c, int peers, int samples) {
  const int tile_n = c.outputs <= kSmallN ? kSmallN : kLargeN;
  const int tiles = ((taps(c) + kSmallM - 1) / kSmallM) * ((c.outputs + tile_n - 1) / tile_n);
  const int wanted = std::max(1, kShareBlocks / std::max(1, std::min(kShareBlocks, tiles * peers)));
  return std::clamp(samples * output_pixels(c) / kLeastShare, 1, wanted);
}

Columns columns(const LayerOperation& layer, const ConvolutionOperation& c, int samples,
                std::size_t extra) {
  return {samples * output_pixels(c), c.outputs, c.activation, layer.output,
          layer.output_gradient(),    c.bias,    extra};
}

Images input_images(const ConvolutionOperation& c) { return {c.height, c.width, c.channels}; }
Images output_images(const ConvolutionOperation& c) {
  return {c.output_height(), c.output_width(), c.outputs};
}

template <class Real>
void weight_gradient(const LayerCall<Real>& call, const ConvolutionOperation& c) {
  const int samples = call.batch.samples, peers = call.batch.peers,
            splits = weight_splits(c, peers, samples);
  const WeightGradient<Real> problem{
      .m = taps(c),
      .n = c.outputs,
      .k = samples * output_pixels(c),
      .sources = {call.batch, input_images(c), output_images(c), FastDivide(c.kernel), c.kernel,
                  -c.padding, call.layer.input()},
      .weights = c.weights,
      .output_gradient = call.layer.output_gradient(),
      .partials = call.extra,
      .split_up = splits > 1};
  if (c.outputs <= kSmallN)
    launch_tiled<Tiles<Real, kSmallM, kSmallN, 32, 4>>(call.stream(), problem, peers, splits);
  else launch_tiled<Tiles<Real, kSmallM, kLargeN>>(call.stream(), problem, peers, splits);
  if (splits > 1)
    add_partial_sums(
        call.stream(), call.batch,
        {.from = call.extra, .to = c.weights, .values = problem.m * problem.n, .count = splits});
}

}  // namespace

template <class Real>
void forward(const LayerCall<Real>& call, const ConvolutionOperation& c) {
  const Forward<Real> problem{
      .m = call.batch.samples * output_pixels(c),
      .n = c.outputs,
      .k = taps(c),
      .sources = {call.batch, input_images(c), output_images(c), FastDivide(c.kernel), c.kernel,
                  -c.padding, call.layer.input()},
      .weights = c.weights,
      .bias = c.bias,
      .output = call.layer.output,
      .activation = c.activation};
  launch_tall<Real>(call.stream(), problem, call.batch.peers);
}

template <class Real>
void backward(const LayerCall<Real>& call, const ConvolutionOperation& c) {
  activation_and_bias_backward(call.stream(), call.batch,
                               columns(call.layer, c, call.batch.samples, call.extra));
  weight_gradient(call, c);
  if (call.layer.input_gradient() == kNowhere) return;
  const InputGradient<Real> problem{
      .m = call.batch.samples * c.height * c.width,
      .n = c.channels,
      .k = c.kernel * c.kernel * c.outputs,
      .sources = {call.batch, output_images(c), input_images(c), FastDivide(c.kernel), c.kernel,
                  c.padding, call.layer.output_gradient()},
      .weights = c.weights,
      .input_gradient = call.layer.input_gradient()};
  launch_tall<Real>(call.stream(), problem, call.batch.peers);
}

std::size_t extra_values(const ConvolutionOperation& c, int peers, int samples) {
  const int splits = weight_splits(c, peers, samples);
  const std::size_t partials = splits == 1 ? 0
                                           : static_cast<std::size_t>(splits) *
                                                 static_cast<std::size_t>(taps(c)) *
                                                 static_cast<std::size_t>(c.outputs);
  return std::max(partials, column_extra(peers, samples * output_pixels(c), c.outputs));
}

template void forward(const LayerCall<float>&, const ConvolutionOperation&);
template void forward(const LayerCall<double>&, const ConvolutionOperation&);
template void backward(const LayerCall<float>&, const ConvolutionOperation&);
template void backward(const LayerCall<double>&, const ConvolutionOperation&);

}  // namespace gossamer::gpu::cuda
