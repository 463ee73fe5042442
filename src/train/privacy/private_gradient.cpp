#include "train/privacy/private_gradient.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/check.hpp"
#include "base/philox.hpp"
#include "train/privacy/system_bits.hpp"

namespace gossamer::train {
namespace {

/// Samples whose gradients are in memory together: many keep the device busy. A function of the
/// row's length alone, because the order of a sum's parts decides its last bits.
std::size_t samples_together(std::size_t parameters) {
  constexpr std::size_t kValues = std::size_t{1} << 20;
  return std::clamp<std::size_t>(kValues / std::max<std::size_t>(parameters, 1), 4, 64);
}

/// Numbers of a source, which is asked for many at a time.
class BufferedBits {
 public:
  explicit BufferedBits(BitSource& source) : source_(source) {}
  std::uint64_t next_u64() {
    if (used_ == numbers_.size()) source_.fill(numbers_), used_ = 0;
    return numbers_[used_++];
  }

 private:
  BitSource& source_;
  std::array<std::uint64_t, 512> numbers_{};
  std::size_t used_ = numbers_.size();
};

double unit(std::uint64_t bits) {
  return unit_double(static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits));
}

/// Two standard normal numbers (Box and Muller 1958), in double.
std::pair<double, double> normal_pair(auto& bits) {
  const double radius = std::sqrt(-2 * std::log1p(-unit(bits.next_u64())));
  const double angle = 2 * std::numbers::pi * unit(bits.next_u64());
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// The samples of a batch, each by itself with probability q.
void draw_batch(std::span<const std::uint32_t> shard, double q, auto& bits,
                std::vector<std::uint32_t>& samples) {
  samples.clear();
  for (const std::uint32_t sample : shard)
    if (unit(bits.next_u64()) < q) samples.push_back(sample);
}

template <class Real>
void add_noise(double deviation, auto& bits, std::vector<Real>& noise) {
  for (std::size_t i = 0; i < noise.size(); i += 2) {
    const auto [first, second] = normal_pair(bits);
    noise[i] += static_cast<Real>(deviation * first);
    if (i + 1 < noise.size()) noise[i + 1] += static_cast<Real>(deviation * second);
  }
}

}  // namespace

template <class Real>
PrivateGradient<Real>::PrivateGradient(const PrivacyOptions& options, PairNoiseRequest pairs,
                                       std::uint64_t seed, gpu::BasicDevice<Real>& device,
                                       std::size_t parameters)
    : options_(options),
      pairs_(std::move(pairs)),
      seed_(seed),
      device_(device),
      parameters_(parameters),
      workspaces_(static_cast<std::size_t>(device.gpu_count())),
      noise_(parameters) {
  GOSSAMER_CHECK(options.clip > 0 && options.noise_multiplier > 0, "privacy is on");
}

template <class Real>
std::size_t PrivateGradient<Real>::workspace_bytes(std::size_t parameters) {
  const std::size_t samples = samples_together(parameters);
  return gpu::DeviceRows<Real>::bytes(2 + samples, parameters) +
         gpu::DeviceRows<double>::bytes(1, samples);
}

template <class Real>
typename PrivateGradient<Real>::Workspace& PrivateGradient<Real>::workspace_of(const Real* row) {
  const int gpu_index = device_.gpu_of(row);
  Workspace& workspace = workspaces_[static_cast<std::size_t>(gpu_index)];
  if (workspace.rows.count() > 0) return workspace;
  const std::size_t samples = samples_together(parameters_);
  workspace.rows = gpu::DeviceRows<Real>::on_gpu(device_, gpu_index, 2 + samples, parameters_);
  workspace.losses = gpu::DeviceRows<double>::on_gpu(device_, gpu_index, 1, samples);
  return workspace;
}

template <class Real>
void PrivateGradient<Real>::compute(const gpu::Task& task,
                                    const PrivateGradientRequest<Real>& request) {
  const double q = request.batch / static_cast<double>(request.shard.size());
  const double deviation = options_.noise_multiplier * options_.clip;
  std::ranges::fill(noise_, Real(0));
  if (options_.noise == "reproducible") {
    const auto peer = static_cast<std::uint32_t>(request.peer);
    RandomStream batch(seed_, peer, Purpose::private_batch, request.step);
    RandomStream noise(seed_, peer, Purpose::private_noise, request.step);
    draw_batch(request.shard, q, batch, samples_);
    add_noise(deviation, noise, noise_);
  } else {
    SystemBits system;
    BufferedBits bits(system);
    draw_batch(request.shard, q, bits, samples_);
    add_noise(deviation, bits, noise_);
  }
  if (pairs_.deviation > 0) add_pair_noise(request.peer, request.step);
  device_.upload(request.gradient, noise_.data(), noise_.size() * sizeof(Real));
  Workspace& workspace = workspace_of(request.parameters);
  double loss = 0;
  std::span<const std::uint32_t> rest(samples_);
  while (!rest.empty()) {
    const std::size_t count = std::min(rest.size(), workspace.losses.length());
    loss += add_clipped(task, request, rest.first(count), workspace);
    rest = rest.subspan(count);
  }
  const gpu::ScaleRequest<Real> scale{static_cast<Real>(request.weight / request.batch),
                                      request.gradient, parameters_};
  device_.execute(std::span(&scale, 1));
  double sum = 0;
  device_.download(&sum, request.loss, sizeof sum);
  sum += loss / request.batch;
  device_.upload(request.loss, &sum, sizeof sum);
}

/// Of an edge, the peer with the lower number adds the noise, and the other one takes it away.
template <class Real>
void PrivateGradient<Real>::add_pair_noise(int peer, std::uint64_t step) {
  for (const int partner : pairs_.partners.at(static_cast<std::size_t>(peer))) {
    const std::unique_ptr<BitSource> secret = pairs_.secrets->bits(peer, partner, step);
    BufferedBits bits(*secret);
    add_noise(peer < partner ? pairs_.deviation : -pairs_.deviation, bits, noise_);
  }
}

/// min(1, C / norm), rounded so that the product with the norm is not above C.
template <class Real>
Real PrivateGradient<Real>::clip_factor(double norm) const {
  if (norm <= options_.clip) return 1;
  auto factor = static_cast<Real>(options_.clip / norm);
  while (static_cast<double>(factor) * norm > options_.clip)
    factor = std::nextafter(factor, Real(0));
  return factor;
}

template <class Real>
double PrivateGradient<Real>::add_clipped(const gpu::Task& task,
                                          const PrivateGradientRequest<Real>& request,
                                          std::span<const std::uint32_t> samples,
                                          Workspace& workspace) {
  std::vector<double> losses(samples.size()), squares(samples.size());
  double* const device_losses = workspace.losses.row(0).data();
  device_.upload(device_losses, losses.data(), losses.size() * sizeof(double));
  const Real* const zeros = workspace.rows.row(0).data();
  Real* const partial = workspace.rows.row(1).data();
  std::vector<gpu::Job<Real>> jobs;
  std::vector<const Real*> rows{zeros};
  for (std::size_t s = 0; s < samples.size(); ++s) {
    Real* const row = workspace.rows.row(2 + s).data();
    jobs.push_back({.parameters = const_cast<Real*>(  // Pass::gradient only reads them
                        request.parameters),
                    .gradient = row,
                    .samples = &samples[s],
                    .batch = 1,
                    .peer = static_cast<std::uint32_t>(request.peer),
                    .first_step = request.step,
                    .loss = device_losses + s});
    rows.push_back(row);
  }
  device_.train(task, gpu::Pass::gradient, jobs);
  const gpu::DistancesRequest<Real> norms{rows, true, parameters_, squares.data()};
  device_.execute(std::span(&norms, 1));

  std::vector<gpu::BasicMixSource<Real>> sources;
  for (std::size_t s = 0; s < samples.size(); ++s) {
    // Whoever chooses the parameters can have the gradient of one sample alone overflow. It is left
    // out, because its sum, or the end of the run, would tell that the sample is there.
    if (!std::isfinite(squares[s])) continue;
    sources.push_back({rows[1 + s], clip_factor(std::sqrt(squares[s]))});
  }
  const gpu::BasicMixRequest<Real> sum{zeros, partial, sources, parameters_};
  device_.execute(std::span(&sum, 1));
  const gpu::AxpyRequest<Real> add{1, partial, request.gradient, parameters_};
  device_.execute(std::span(&add, 1));
  device_.download(losses.data(), device_losses, losses.size() * sizeof(double));
  double loss = 0;
  for (const double one : losses)
    if (std::isfinite(one)) loss += one;
  return loss;
}

template class PrivateGradient<float>;
template class PrivateGradient<double>;

}  // namespace gossamer::train
