// Arithmetic on rows: every operation of a GPU against the CPU in double.
#include "tests/cuda/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

namespace {

/// A row on a GPU and the same row in double on the CPU.
template <class Real>
struct Twin {
  Twin(Memory& device, const std::vector<Real>& values, std::size_t offset = 0)
      : on_gpu(device, values, offset), cpu(as<double>(values)) {}
  void check() const { CHECK(worst_error(on_gpu.values(), cpu) < kRoundings<Real>); }

  Held<Real> on_gpu;
  std::vector<double> cpu;
};

/// function(values, offset) for every length, aligned and not.
template <class Function>
void each_shape(Function function) {
  for (const std::size_t length : kLengths)
    for (const std::size_t offset : {0, 1}) {
      CAPTURE(length);
      CAPTURE(offset);
      function(length, offset);
    }
}

/// `peers` rows of normal values; rows of odd peers are off alignment.
template <class Real>
std::vector<Held<Real>> rows_of(Memory& device, std::size_t peers, std::size_t length,
                                std::vector<std::vector<double>>& cpu) {
  std::vector<Held<Real>> rows;
  for (std::size_t p = 0; p < peers; ++p) {
    const auto values = normal<Real>(length, 100 + p);
    rows.emplace_back(device, values, p % 2);
    cpu.push_back(as<double>(values));
  }
  return rows;
}

/// Every peer p mixes with the p % 6 peers before it; weights differ, and lengths too if `ragged`.
template <class Real>
void check_mix(BasicDevice<Real>& device, std::size_t peers, std::size_t length, bool ragged) {
  BasicCpuDevice<double> cpu_device(1);
  std::vector<std::vector<double>> cpu;
  const auto rows = rows_of<Real>(device, peers, length, cpu);
  std::vector<Held<Real>> out;
  std::vector<std::vector<double>> cpu_out(peers);
  std::vector<std::vector<BasicMixSource<Real>>> sources(peers);
  std::vector<std::vector<BasicMixSource<double>>> cpu_sources(peers);
  std::vector<BasicMixRequest<Real>> requests;
  std::vector<BasicMixRequest<double>> cpu_requests;
  for (std::size_t p = 0; p < peers; ++p) {
    const std::size_t mine = ragged ? length * (p % 4) / 3 : length;
    out.emplace_back(device, mine, p % 3);
    cpu_out[p].resize(mine);
    for (std::size_t k = 1; k <= p % 6; ++k) {
      const std::size_t from = (p + peers - k) % peers;
      const Real weight = static_cast<Real>(0.9 / static_cast<double>(k + 3));
      sources[p].push_back({rows[from].get(), weight});
      cpu_sources[p].push_back({cpu[from].data(), static_cast<double>(weight)});
    }
    requests.push_back({rows[p].get(), out[p].get(), sources[p], mine});
    cpu_requests.push_back({cpu[p].data(), cpu_out[p].data(), cpu_sources[p], mine});
    requests.back().own = p % 5 == 3 ? 0 : 1;
    cpu_requests.back().own = static_cast<double>(requests.back().own);
  }
  device.execute(requests);
  cpu_device.execute(cpu_requests);
  for (std::size_t p = 0; p < peers; ++p)
    CHECK(worst_error(out[p].values(), cpu_out[p]) < kRoundings<Real>);
}

}  // namespace

TEST_CASE_TEMPLATE("GPU: mix of 16 peers with none to five sources", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  for (const std::size_t length : kLengths)
    for (const bool ragged : {false, true}) {
      CAPTURE(length);
      check_mix<Real>(*gpu_device, 16, length, ragged);
    }
  check_mix<Real>(*gpu_device, 1, 1000, false);
  gpu_device->execute(std::span<const BasicMixRequest<Real>>());
}

TEST_CASE("GPU: a mix of many sources and of more requests than a grid is deep") {
  GOSSAMER_GPU(gpu_device);
  std::vector<std::vector<double>> cpu;
  const auto rows = rows_of<float>(*gpu_device, 41, 33, cpu);
  std::vector<MixSource> sources;
  std::vector<double> expected = cpu[0];
  for (std::size_t p = 1; p < 41; ++p) {
    sources.push_back({rows[p].get(), 1.0F / 41});
    for (std::size_t i = 0; i < 33; ++i)
      expected[i] += static_cast<double>(1.0F / 41) * (cpu[p][i] - cpu[0][i]);
  }
  const Held<float> out(*gpu_device, 33);
  const MixRequest request{rows[0].get(), out.get(), sources, 33};
  gpu_device->execute(std::span(&request, 1));
  CHECK(worst_error(out.values(), expected) < kRoundings<float>);

  const std::size_t many = 70'001;
  const Held<float> x(*gpu_device, normal<float>(many, 1)), y(*gpu_device, normal<float>(many, 2)),
      mixed(*gpu_device, many);
  const auto before_x = x.values(), before_y = y.values();
  std::vector<MixSource> one_each;
  for (std::size_t i = 0; i < many; ++i) one_each.push_back({y.get() + i, 0.5F});
  std::vector<MixRequest> requests;
  for (std::size_t i = 0; i < many; ++i)
    requests.push_back({x.get() + i, mixed.get() + i, std::span(&one_each[i], 1), 1});
  gpu_device->execute(requests);
  std::vector<double> mean;
  for (std::size_t i = 0; i < many; ++i)
    mean.push_back(0.5 * (static_cast<double>(before_x[i]) + before_y[i]));
  CHECK(worst_error(mixed.values(), mean) < kRoundings<float>);
}

TEST_CASE("GPU: consensus is an exact fixed point of mix, and pieces have the bits of the whole") {
  GOSSAMER_GPU(gpu_device);
  const std::size_t length = 4099;
  const auto values = normal<float>(length, 1, 1e3);
  const Held<float> a(*gpu_device, values), b(*gpu_device, values, 1),
      other(*gpu_device, normal<float>(length, 2)), out(*gpu_device, length);
  const MixSource same[] = {{b.get(), 1.0F / 7}, {b.get(), 0.3F}};
  const MixRequest fixed{a.get(), out.get(), same, length};
  gpu_device->execute(std::span(&fixed, 1));
  CHECK(same_bits(out.values(), values));

  const MixSource source{other.get(), 0.3F};
  const MixRequest whole{a.get(), out.get(), std::span(&source, 1), length};
  gpu_device->execute(std::span(&whole, 1));
  const Held<float> pieced(*gpu_device, length, 1);
  for (std::size_t begin = 0, size = 1; begin < length; begin += size, size = 3 * size + 1) {
    const std::size_t left = std::min(size, length - begin);
    const MixSource moved{other.get() + begin, 0.3F};
    const MixRequest piece{a.get() + begin, pieced.get() + begin, std::span(&moved, 1), left};
    gpu_device->execute(std::span(&piece, 1));
  }
  CHECK(same_bits(pieced.values(), out.values()));
}

TEST_CASE_TEMPLATE("GPU: axpy, add_difference, scale, divide, copy, fill", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  BasicCpuDevice<double> cpu(1);
  each_shape([&](std::size_t length, std::size_t offset) {
    Twin<Real> x(*gpu_device, normal<Real>(length, 1), offset),
        y(*gpu_device, normal<Real>(length, 2)), z(*gpu_device, normal<Real>(length, 3)),
        copied(*gpu_device, normal<Real>(length, 4)),
        filled(*gpu_device, normal<Real>(length, 5), offset), made(*gpu_device, {Real(3)}, offset);
    const std::size_t half = length / 2;
    const auto both = [&](const auto& on_gpu, const auto& on_cpu) {
      gpu_device->execute(std::span(on_gpu));
      cpu.execute(std::span(on_cpu));
    };
    const AxpyRequest<Real> axpy[] = {{Real(0.75), x.on_gpu.get(), y.on_gpu.get(), length},
                                      {-2, x.on_gpu.get(), z.on_gpu.get(), half}};
    const AxpyRequest<double> cpu_axpy[] = {{0.75, x.cpu.data(), y.cpu.data(), length},
                                            {-2, x.cpu.data(), z.cpu.data(), half}};
    both(axpy, cpu_axpy);
    // z ← z + (y − x), then x ← x + (x − y): out may be an input.
    const DifferenceRequest<Real> difference[] = {
        {z.on_gpu.get(), y.on_gpu.get(), x.on_gpu.get(), length}};
    const DifferenceRequest<double> cpu_difference[] = {
        {z.cpu.data(), y.cpu.data(), x.cpu.data(), length}};
    both(difference, cpu_difference);
    const DifferenceRequest<Real> itself[] = {
        {x.on_gpu.get(), x.on_gpu.get(), y.on_gpu.get(), length}};
    const DifferenceRequest<double> cpu_itself[] = {
        {x.cpu.data(), x.cpu.data(), y.cpu.data(), length}};
    both(itself, cpu_itself);
    // z ← z + (x − y) and a copy beside it; then x ← x + (y − z), and y is the copy.
    const DifferenceRequest<Real> beside[] = {
        {z.on_gpu.get(), x.on_gpu.get(), y.on_gpu.get(), length, Real(0.5), copied.on_gpu.get()}};
    const DifferenceRequest<double> cpu_beside[] = {
        {z.cpu.data(), x.cpu.data(), y.cpu.data(), length, 0.5, copied.cpu.data()}};
    both(beside, cpu_beside);
    const DifferenceRequest<Real> onto_input[] = {
        {x.on_gpu.get(), y.on_gpu.get(), z.on_gpu.get(), half, Real(0.25), y.on_gpu.get()},
        {z.on_gpu.get(), x.on_gpu.get(), x.on_gpu.get(), 0}};
    const DifferenceRequest<double> cpu_onto_input[] = {
        {x.cpu.data(), y.cpu.data(), z.cpu.data(), half, 0.25, y.cpu.data()},
        {z.cpu.data(), x.cpu.data(), x.cpu.data(), 0}};
    both(onto_input, cpu_onto_input);
    const ScaleRequest<Real> scale[] = {{Real(0.3), y.on_gpu.get(), half},
                                        {Real(-1.5), z.on_gpu.get(), length}};
    const ScaleRequest<double> cpu_scale[] = {{static_cast<double>(Real(0.3)), y.cpu.data(), half},
                                              {-1.5, z.cpu.data(), length}};
    both(scale, cpu_scale);
    // y ← y / c, and z ← x / c, where c is a value that a kernel has just made.
    const DivideRequest<Real> divide[] = {
        {y.on_gpu.get(), made.on_gpu.get(), y.on_gpu.get(), length},
        {x.on_gpu.get(), made.on_gpu.get(), z.on_gpu.get(), half}};
    const DivideRequest<double> cpu_divide[] = {
        {y.cpu.data(), made.cpu.data(), y.cpu.data(), length},
        {x.cpu.data(), made.cpu.data(), z.cpu.data(), half}};
    const FillRequest<Real> make[] = {{Real(-1.75), made.on_gpu.get(), 1}};
    const FillRequest<double> cpu_make[] = {{-1.75, made.cpu.data(), 1}};
    both(make, cpu_make);
    both(divide, cpu_divide);
    const CopyRequest<Real> copy[] = {{x.on_gpu.get(), copied.on_gpu.get(), half}};
    const CopyRequest<double> cpu_copy[] = {{x.cpu.data(), copied.cpu.data(), half}};
    both(copy, cpu_copy);
    const FillRequest<Real> fill[] = {{Real(2.5), filled.on_gpu.get(), half}};
    const FillRequest<double> cpu_fill[] = {{2.5, filled.cpu.data(), half}};
    both(fill, cpu_fill);
    for (const auto* row : {&x, &y, &z, &copied, &filled}) row->check();
  });
  gpu_device->execute(std::span<const AxpyRequest<Real>>());
  gpu_device->execute(std::span<const DifferenceRequest<Real>>());
  gpu_device->execute(std::span<const ScaleRequest<Real>>());
  gpu_device->execute(std::span<const DivideRequest<Real>>());
  gpu_device->execute(std::span<const CopyRequest<Real>>());
  gpu_device->execute(std::span<const FillRequest<Real>>());
}

TEST_CASE_TEMPLATE("GPU: copies and fills keep every bit, in many requests of different lengths",
                   Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  auto values = normal<Real>(5000, 1);
  values[7] = std::numeric_limits<Real>::quiet_NaN();
  values[8] = std::numeric_limits<Real>::infinity();
  values[9] = Real(-0.0);
  values[10] = std::numeric_limits<Real>::denorm_min();
  const Held<Real> from(*gpu_device, values), to(*gpu_device, 5000, 1), filled(*gpu_device, 5000);
  std::vector<CopyRequest<Real>> copies;
  std::vector<FillRequest<Real>> fills;
  std::vector<Real> expected(5000);
  for (std::size_t begin = 0, length = 1; begin < 5000; begin += length, length += 3) {
    const std::size_t left = std::min(length, 5000 - begin);
    copies.push_back({from.get() + begin, to.get() + begin, left});
    fills.push_back({static_cast<Real>(begin), filled.get() + begin, left});
    std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(begin), left,
                static_cast<Real>(begin));
  }
  gpu_device->execute(copies);
  gpu_device->execute(fills);
  CHECK(same_bits(to.values(), values));
  CHECK(same_bits(filled.values(), expected));
}

TEST_CASE_TEMPLATE("GPU: what a thread asks for is done in that order", Real, float, double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  const std::size_t length = 1000;
  const Held<Real> x(*gpu_device, std::vector<Real>(length, 1)), y(*gpu_device, length);
  for (int i = 0; i < 20; ++i) {  // y ← 2 y + 1, x ← y
    const CopyRequest<Real> copy{x.get(), y.get(), length};
    gpu_device->execute(std::span(&copy, 1));
    const ScaleRequest<Real> scale{2, y.get(), length};
    gpu_device->execute(std::span(&scale, 1));
    const FillRequest<Real> one{1, x.get(), length};
    gpu_device->execute(std::span(&one, 1));
    const AxpyRequest<Real> axpy{1, y.get(), x.get(), length};
    gpu_device->execute(std::span(&axpy, 1));
  }
  gpu_device->finish();
  CHECK(x.values() == std::vector<Real>(length, Real((1 << 21) - 1)));
}

TEST_CASE("GPU: an update of a row with its state or its gradient off alignment") {
  GOSSAMER_GPU(gpu_device);
  constexpr std::size_t kLength = 5000;  // a whole chunk of a block, and a part of one
  for (const UpdateRule& rule :
       {UpdateRule{.momentum = 0.9}, UpdateRule{.kind = UpdateRule::Kind::adam}}) {
    std::vector<std::vector<float>> results;
    for (int unaligned = -1; unaligned < 4; ++unaligned) {
      const auto row = [&](int which, std::vector<float> values) {
        for (float& value : values) value = which == 3 ? std::abs(value) : value;
        return Held<float>(*gpu_device, values, which == unaligned ? 1 : 0);
      };
      const Held<float> x = row(0, normal<float>(kLength, 1)),
                        g = row(1, normal<float>(kLength, 2)),
                        first = row(2, normal<float>(kLength, 3)),
                        second = row(3, normal<float>(kLength, 4));
      const UpdateJob<float> job{.parameters = x.get(),
                                 .state = {first.get(), second.get()},
                                 .gradient = g.get(),
                                 .length = kLength,
                                 .rate = 0.1};
      gpu_device->update(rule, std::span(&job, 1));
      results.push_back(x.values());
      for (const auto& state : {first.values(), second.values()})
        results.back().insert(results.back().end(), state.begin(), state.end());
      CHECK(same_bits(results.back(), results.front()));
    }
  }
}
