// Mixing by differences: out ← own · x + Σ_j w_j (row_j − x), products and sums rounded one by one,
// in the order of the sources, as on the CPU.
//
// There are two ways with the same bits. mix_kernel mixes one row at a time. If rows are long and
// several requests of a call share them, mix_team_kernel mixes team by team: a block fetches its
// columns of all rows of a team once and computes all outputs of the team from them, so that even
// the cache is read once per row.
#include <algorithm>
#include <vector>

#include "gpu/cuda/kernels/chunks.hpp"
#include "gpu/cuda/kernels/memory_spaces.hpp"
#include "gpu/cuda/kernels/rows.hpp"

namespace gossamer::gpu::cuda {
namespace {

template <class Real>
struct MixTask {
  const Real* x;
  Real* out;
  const BasicMixSource<Real>* sources;
  std::uint32_t count;
  bool vectors;
  std::size_t length;
  Real own;
};

/// own · x + Σ_j w_j (row_j − x): products and sums rounded one by one, in the order of the
/// sources, as on the CPU.
template <class Real>
__global__ void __launch_bounds__(kThreads)
    mix_kernel(const MixTask<Real>* tasks, unsigned rows, bool streaming) {
  constexpr int kValues = Pack<Real>::kValues;
  const ChunkPosition at = chunk_position<Real>(rows);
  const MixTask<Real> task = tasks[at.row];
  if (at.begin >= task.length) return;
  const int thread = static_cast<int>(threadIdx.x);
  const auto* sources = in_global(task.sources);
  if (!task.vectors || task.length - at.begin < kChunk<Real>) {
    const std::size_t end = min(task.length, at.begin + kChunk<Real>);
    for (std::size_t i = at.begin + thread; i < end; i += kThreads) {
      const Real x = in_global(task.x)[i];
      Real sum = times(task.own, x);
      for (std::uint32_t j = 0; j < task.count; ++j)
        sum = plus(sum, times(sources[j].weight, minus(in_global(sources[j].row)[i], x)));
      in_global(task.out)[i] = sum;
    }
    return;
  }
  const std::size_t first = at.begin + static_cast<std::size_t>(thread) * kValues;
  constexpr std::size_t step = std::size_t{kThreads} * kValues;
  Pack<Real> x[kPacks], sum[kPacks];
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    x[k] = load_pack(in_global(task.x) + first + k * step);
#pragma unroll
    for (int v = 0; v < kValues; ++v) sum[k].v[v] = times(task.own, x[k].v[v]);
  }
#pragma unroll 2
  for (std::uint32_t j = 0; j < task.count; ++j) {
    const BasicMixSource<Real> source = sources[j];
    Pack<Real> row[kPacks];
#pragma unroll
    for (int k = 0; k < kPacks; ++k) row[k] = load_pack(in_global(source.row) + first + k * step);
#pragma unroll
    for (int k = 0; k < kPacks; ++k)
#pragma unroll
      for (int v = 0; v < kValues; ++v)
        sum[k].v[v] = plus(sum[k].v[v], times(source.weight, minus(row[k].v[v], x[k].v[v])));
  }
#pragma unroll
  for (int k = 0; k < kPacks; ++k)
    store_pack(in_global(task.out) + first + k * step, sum[k], streaming);
}

constexpr int kTeamThreads = 128;
constexpr std::size_t kTeamRows =
    16;                    ///< most different rows of a team: a block's shared memory holds them
constexpr int kAhead = 8;  ///< loads of a thread in flight
/// Output bytes of a call from which on teams are worth while.
constexpr std::size_t kTeamBytes = std::size_t{4} << 20;

/// One output of a team: x and its sources by their index among the team's rows.
template <class Real>
struct TeamOutput {
  Real* out;
  std::uint32_t x, first, end;  ///< sources first … end − 1 of the call
  Real own;
};
template <class Real>
struct TeamSource {
  std::uint32_t row;
  Real weight;
};
/// Rows and outputs first … end − 1 of the call.
struct Team {
  std::uint32_t first_row, end_row, first_output, end_output;
};

template <class Real>
struct TeamArguments {
  const Team* teams;
  const Real* const* rows;
  const TeamOutput<Real>* outputs;
  const TeamSource<Real>* sources;
  std::size_t length;  ///< a whole number of packs
  bool streaming;
};

/// blockIdx.x: a run of kTeamThreads packs; blockIdx.y: a team. Each thread fetches and uses its
/// own column only.
template <class Real>
__global__ void __launch_bounds__(kTeamThreads) mix_team_kernel(TeamArguments<Real> a) {
  constexpr int kValues = Pack<Real>::kValues;
  GOSSAMER_SHARED(Pack<Real>, columns, [kTeamRows][kTeamThreads]);
  const std::size_t i = (std::size_t{blockIdx.x} * kTeamThreads + threadIdx.x) * kValues;
  if (i >= a.length) return;
  const Team team = a.teams[blockIdx.y];
  const Real* const* rows = a.rows + team.first_row;
  const std::uint32_t count = team.end_row - team.first_row;
  for (std::uint32_t r0 = 0; r0 < count; r0 += kAhead) {
    Pack<Real> ahead[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      if (r0 + k < count) ahead[k] = load_pack(in_global(rows[r0 + k]) + i);
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      if (r0 + k < count) columns[r0 + k][threadIdx.x] = ahead[k];
  }
  for (std::uint32_t o = team.first_output; o < team.end_output; ++o) {
    const TeamOutput<Real> output = a.outputs[o];
    const Pack<Real> x = columns[output.x][threadIdx.x];
    Pack<Real> sum;
#pragma unroll
    for (int v = 0; v < kValues; ++v) sum.v[v] = times(output.own, x.v[v]);
    for (std::uint32_t j = output.first; j < output.end; ++j) {
      const TeamSource<Real> source = a.sources[j];
      const Pack<Real> row = columns[source.row][threadIdx.x];
#pragma unroll
      for (int v = 0; v < kValues; ++v)
        sum.v[v] = plus(sum.v[v], times(source.weight, minus(row.v[v], x.v[v])));
    }
    store_pack(in_global(output.out) + i, sum, a.streaming);
  }
}

/// The teams of a call, formed on the host.
template <class Real>
class Teams {
 public:
  /// Takes requests in order; a new team begins when a team would exceed kTeamRows.
  explicit Teams(std::span<const BasicMixRequest<Real>> requests) {
    for (const auto& request : requests) {
      std::vector<const Real*> used{request.x};
      for (const auto& source : request.sources) used.push_back(source.row);
      if (!fits(used)) close();
      const std::uint32_t x = index_of(request.x),
                          first = static_cast<std::uint32_t>(sources.size());
      for (const auto& source : request.sources)
        sources.push_back({index_of(source.row), source.weight});
      outputs.push_back(
          {request.out, x, first, static_cast<std::uint32_t>(sources.size()), request.own});
    }
    close();
  }

  /// Whether a request can be in a team.
  static bool suits(const BasicMixRequest<Real>& request, std::size_t length) {
    bool suits = request.length == length && request.sources.size() < kTeamRows;
    suits = suits && aligned(request.x) && aligned(request.out);
    for (const auto& source : request.sources) suits = suits && aligned(source.row);
    return suits;
  }

  std::vector<Team> teams;
  std::vector<const Real*> rows;
  std::vector<TeamOutput<Real>> outputs;
  std::vector<TeamSource<Real>> sources;

 private:
  bool fits(const std::vector<const Real*>& used) const {
    std::size_t more = 0;
    for (std::size_t i = 0; i < used.size(); ++i)
      if (std::find(rows.begin() + first_row_, rows.end(), used[i]) == rows.end() &&
          std::find(used.begin(), used.begin() + static_cast<std::ptrdiff_t>(i), used[i]) ==
              used.begin() + static_cast<std::ptrdiff_t>(i))
        ++more;
    return rows.size() - static_cast<std::size_t>(first_row_) + more <= kTeamRows;
  }
  std::uint32_t index_of(const Real* row) {
    const auto found = std::find(rows.begin() + first_row_, rows.end(), row);
    const auto index = static_cast<std::uint32_t>(found - rows.begin() - first_row_);
    if (found == rows.end()) rows.push_back(row);
    return index;
  }
  void close() {
    if (outputs.size() == first_output_) return;
    teams.push_back({static_cast<std::uint32_t>(first_row_),
                     static_cast<std::uint32_t>(rows.size()), first_output_,
                     static_cast<std::uint32_t>(outputs.size())});
    first_row_ = static_cast<std::ptrdiff_t>(rows.size());
    first_output_ = static_cast<std::uint32_t>(outputs.size());
  }

  std::ptrdiff_t first_row_ = 0;
  std::uint32_t first_output_ = 0;
};

/// Copies lists one after the other into a slot, and returns the address of each on the GPU.
class SlotWriter {
 public:
  explicit SlotWriter(const UploadRing::Slot& slot) : slot_(slot) {}
  template <class Value>
  const Value* add(const std::vector<Value>& values) {
    std::copy(values.begin(), values.end(), reinterpret_cast<Value*>(slot_.host + at_));
    const auto* on_gpu = reinterpret_cast<const Value*>(slot_.device + at_);
    at_ += bytes(values);
    return on_gpu;
  }
  template <class Value>
  static std::size_t bytes(const std::vector<Value>& values) {
    return rounded_up(values.size() * sizeof(Value), 16);
  }

 private:
  UploadRing::Slot slot_;
  std::size_t at_ = 0;
};

/// Mixes the first `length` values of all rows, a whole number of packs.
template <class Real>
void mix_teams(StreamContext& context, const Teams<Real>& teams, std::size_t length,
               bool streaming) {
  const UploadRing::Slot slot = context.uploads().reserve(
      SlotWriter::bytes(teams.teams) + SlotWriter::bytes(teams.rows) +
      SlotWriter::bytes(teams.outputs) + SlotWriter::bytes(teams.sources));
  SlotWriter writer(slot);
  TeamArguments<Real> arguments{};
  arguments.length = length;
  arguments.streaming = streaming;
  arguments.teams = writer.add(teams.teams);
  arguments.rows = writer.add(teams.rows);
  arguments.outputs = writer.add(teams.outputs);
  arguments.sources = writer.add(teams.sources);
  context.uploads().send(slot);
  const std::size_t block_values = static_cast<std::size_t>(kTeamThreads) * Pack<Real>::kValues;
  const auto blocks = static_cast<unsigned>(pieces_of(length, block_values));
  launch(mix_team_kernel<Real>, dim3(blocks, static_cast<unsigned>(teams.teams.size())),
         kTeamThreads, context.stream(), arguments);
}

template <class Real>
void mix_one_by_one(StreamContext& context, std::span<const BasicMixRequest<Real>> requests) {
  std::size_t sources = 0, longest = 0, total = 0;
  for (const auto& request : requests) {
    sources += request.sources.size();
    longest = std::max(longest, request.length);
    total += request.length;
  }
  if (total == 0) return;
  using Source = BasicMixSource<Real>;
  const std::size_t tasks_bytes = rounded_up(requests.size() * sizeof(MixTask<Real>), 16);
  const UploadRing::Slot slot = context.uploads().reserve(tasks_bytes + sources * sizeof(Source));
  auto* tasks = reinterpret_cast<MixTask<Real>*>(slot.host);
  auto* next = reinterpret_cast<Source*>(slot.host + tasks_bytes);
  const auto* next_on_gpu = reinterpret_cast<const Source*>(slot.device + tasks_bytes);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto& request = requests[i];
    bool vectors = aligned(request.x) && aligned(request.out);
    for (const Source& source : request.sources) vectors = vectors && aligned(source.row);
    tasks[i] = {
        request.x, request.out,    next_on_gpu, static_cast<std::uint32_t>(request.sources.size()),
        vectors,   request.length, request.own};
    next = std::copy(request.sources.begin(), request.sources.end(), next);
    next_on_gpu += request.sources.size();
  }
  context.uploads().send(slot);
  launch(mix_kernel<Real>, blocks_for<Real>(requests.size(), longest), kThreads, context.stream(),
         reinterpret_cast<const MixTask<Real>*>(slot.device),
         static_cast<unsigned>(requests.size()), total * sizeof(Real) > kStreamBytes);
}

/// Whether teams read noticeably fewer rows than each request by itself.
template <class Real>
bool pays(const Teams<Real>& teams) {
  const std::size_t one_by_one = teams.sources.size() + 2 * teams.outputs.size();
  const std::size_t together = teams.rows.size() + teams.outputs.size();
  return teams.teams.size() <= 65535 && together * 5 <= one_by_one * 4;
}

/// Mixes the values from `begin` on.
template <class Real>
void mix_remainders(StreamContext& context, std::span<const BasicMixRequest<Real>> requests,
                    std::size_t begin) {
  std::vector<BasicMixRequest<Real>> remainders(requests.begin(), requests.end());
  std::vector<BasicMixSource<Real>> sources;
  for (const auto& request : requests)
    for (const auto& source : request.sources)
      sources.push_back({source.row + begin, source.weight});
  std::size_t first = 0;
  for (auto& remainder : remainders) {
    const std::size_t count = remainder.sources.size();
    remainder = {remainder.x + begin, remainder.out + begin,
                 std::span(sources).subspan(first, count), remainder.length - begin, remainder.own};
    first += count;
  }
  mix_one_by_one<Real>(context, remainders);
}

}  // namespace

template <class Real>
void enqueue(StreamContext& context, std::span<const BasicMixRequest<Real>> requests) {
  if (requests.empty()) return;
  const std::size_t length = requests[0].length,
                    whole = length / Pack<Real>::kValues * Pack<Real>::kValues;
  const bool alike =
      std::ranges::all_of(requests, [&](const auto& r) { return Teams<Real>::suits(r, length); });
  if (requests.size() < 2 || !alike || requests.size() * length * sizeof(Real) <= kTeamBytes)
    return mix_one_by_one(context, requests);
  const Teams<Real> teams(requests);
  if (!pays(teams)) return mix_one_by_one(context, requests);
  mix_teams(context, teams, whole, requests.size() * length * sizeof(Real) > kStreamBytes);
  if (whole < length) mix_remainders(context, requests, whole);
}

template void enqueue(StreamContext&, std::span<const BasicMixRequest<float>>);
template void enqueue(StreamContext&, std::span<const BasicMixRequest<double>>);

}  // namespace gossamer::gpu::cuda
