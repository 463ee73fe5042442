#include "gpu/cuda/training/plan.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include "gpu/cuda/kernels/vector.hpp"

namespace gossamer::gpu::cuda {
namespace {

/// Offsets of arrays one after the other, at 256-byte boundaries.
class Layout {
 public:
  template <class Value>
  std::size_t add(std::size_t count) {
    const std::size_t at = bytes_;
    bytes_ = rounded_up(bytes_ + count * sizeof(Value), 256);
    return at;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

/// Appends values byte by byte, without padding.
class Key {
 public:
  template <class... Values>
  void add(const Values&... values) {
    (add_one(values), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <class Value>
  void add_one(const Value& value) {
    static_assert(std::is_scalar_v<Value>);
    char raw[sizeof(Value)];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof raw);
  }
  std::string bytes_;
};

void add(Key& key, const DenseOperation& o) {
  key.add(o.inputs, o.outputs, o.activation, o.weights, o.bias);
}
void add(Key& key, const ConvolutionOperation& o) {
  key.add(o.height, o.width, o.channels, o.outputs, o.kernel, o.padding, o.activation, o.weights,
          o.bias);
}
void add(Key& key, const MaxPoolOperation& o) { key.add(o.height, o.width, o.channels, o.size); }
void add(Key& key, const GroupNormOperation& o) {
  key.add(o.pixels, o.channels, o.groups, o.activation, o.scale, o.shift);
}
void add(Key& key, const AveragePoolOperation& o) {
  key.add(o.height, o.width, o.channels, o.window_height, o.window_width);
}
void add(Key& key, const ElementwiseOperation& o) { key.add(o.values, o.activation, o.bias); }
void add(Key& key, const SumOperation& o) { key.add(o.values, o.activation); }
void add(Key& key, const ConcatenateOperation& o) {
  key.add(o.pixels, o.channels.size());
  for (const int channels : o.channels) key.add(channels);
}
void add(Key& key, const EmbeddingOperation& o) {
  key.add(o.tokens, o.vocabulary, o.features, o.table);
}
void add(Key& key, const AttentionOperation& o) {
  key.add(o.positions, o.heads, o.features, o.causal);
}

void add(Key& key, const Program& p) {
  key.add(p.layers.size(), p.loss, p.takes_samples, p.has_loss, p.channels, p.pixels, p.outputs,
          p.batch, p.parameters, p.workspace);
  for (const LayerOperation& layer : p.layers) {
    key.add(layer.operation.index(), layer.positions, layer.inputs.size(), layer.output,
            layer.output_values, layer.output_gradients.size(), layer.scratch);
    for (const LayerInput& input : layer.inputs)
      key.add(input.value, input.gradient, input.begun_gradient);
    for (const std::size_t gradient : layer.output_gradients) key.add(gradient);
    std::visit([&](const auto& operation) { add(key, operation); }, layer.operation);
  }
}

/// Whether at(job) has equal distances > 0 from job to job, as a strided product needs; `distance`
/// is set to it, in values.
template <class Real, class At>
bool evenly(std::span<const Job<Real>> jobs, At at, std::ptrdiff_t& distance) {
  const auto apart = [&](std::size_t i) {
    return static_cast<std::ptrdiff_t>(reinterpret_cast<std::intptr_t>(at(jobs[i + 1])) -
                                       reinterpret_cast<std::intptr_t>(at(jobs[i])));
  };
  distance = jobs.size() > 1 ? apart(0) : 0;
  for (std::size_t i = 1; i + 1 < jobs.size(); ++i)
    if (apart(i) != distance) return false;
  const auto size = static_cast<std::ptrdiff_t>(sizeof(Real));
  if (distance % size != 0 || (jobs.size() > 1 && distance <= 0)) return false;
  distance /= size;
  return true;
}

template <class Real>
EvenRows<Real> even_rows(const PlanRequest<Real>& request, bool& even) {
  EvenRows<Real> rows{.parameters = request.jobs[0].parameters,
                      .gradient = request.jobs[0].gradient};
  even = evenly(
      request.jobs, [](const auto& job) { return job.parameters; }, rows.parameters_distance);
  if (request.pass != Pass::evaluate)
    even =
        even &&
        evenly(request.jobs, [](const auto& job) { return job.gradient; }, rows.gradient_distance);
  return rows;
}

/// Fills the lists of addresses of dense layers' operands, one list after the other.
template <class Real>
class PointerWriter {
 public:
  /// `host` and `device` are the two sides of one slot.
  PointerWriter(std::byte* host, std::byte* device, std::size_t peers)
      : host_(reinterpret_cast<Real**>(host)),
        device_(reinterpret_cast<Real**>(device)),
        peers_(peers) {}

  template <class At>
  Real* const* list(At at) {
    for (std::size_t p = 0; p < peers_; ++p) {
      host_[p] = at(p);
      aligned_ = aligned_ && aligned(host_[p]);
    }
    Real* const* on_gpu = device_;
    host_ += peers_;
    device_ += peers_;
    return on_gpu;
  }

  /// Whether all addresses since the last call are multiples of 16 bytes.
  bool take_aligned() { return std::exchange(aligned_, true); }

 private:
  Real** host_;
  Real** device_;
  std::size_t peers_;
  bool aligned_ = true;
};
constexpr std::size_t kPointerLists = 6;

template <class Real>
DensePointers<Real> dense_pointers(const PlanRequest<Real>& request, const LayerOperation& layer,
                                   const DenseOperation& dense, PointerWriter<Real>& writer) {
  const auto in_workspace = [&](std::size_t offset) {
    return writer.list(
        [&](std::size_t p) { return request.workspace + p * request.stride + offset; });
  };
  DensePointers<Real> pointers;
  pointers.weights =
      writer.list([&](std::size_t p) { return request.jobs[p].parameters + dense.weights; });
  pointers.input = in_workspace(layer.input());
  pointers.output = in_workspace(layer.output);
  if (request.pass != Pass::evaluate) {
    pointers.gradient =
        writer.list([&](std::size_t p) { return request.jobs[p].gradient + dense.weights; });
    pointers.output_gradient = in_workspace(layer.output_gradient());
    if (layer.input_gradient() != kNowhere)
      pointers.input_gradient = in_workspace(layer.input_gradient());
  }
  pointers.aligned = writer.take_aligned();
  return pointers;
}

/// Offsets in a plan's memory. The arrays that the host fills come first.
struct PlanLayout {
  Layout layout;
  std::size_t rows, updates, pointers, filled, call, labels, targets, factors, steps, losses, hits;

  template <class Real>
  static PlanLayout of(const PlanRequest<Real>& request, bool even) {
    const std::size_t peers = request.jobs.size(),
                      samples = static_cast<std::size_t>(request.jobs[0].batch);
    const auto pieces = static_cast<std::size_t>(loss_pieces(request.jobs[0].batch));
    PlanLayout p;
    p.rows = p.layout.add<PeerRows<Real>>(peers);
    p.updates = p.layout.add<RowTask<Real>>(request.pass == Pass::step ? peers : 0);
    p.pointers =
        p.layout.add<Real*>(even ? 0 : kPointerLists * peers * request.task.program->layers.size());
    p.filled = p.layout.bytes();
    p.call = p.layout.add<CallInputs>(1);
    p.labels = p.layout.add<std::int32_t>(peers * samples);
    p.targets = p.layout.add<float>(peers * samples);
    p.factors = p.layout.add<Factors<Real>>(peers);
    p.steps = p.layout.add<std::uint64_t>(peers);
    p.losses = p.layout.add<double>(peers * pieces);
    p.hits = p.layout.add<std::int64_t>(peers * pieces);
    return p;
  }
};

template <class Value>
Value* at(void* base, std::size_t offset) {
  return reinterpret_cast<Value*>(static_cast<std::byte*>(base) + offset);
}

template <class Real>
void write_rows(const PlanRequest<Real>& request, PeerRows<Real>* rows) {
  for (std::size_t p = 0; p < request.jobs.size(); ++p) {
    const Job<Real>& job = request.jobs[p];
    rows[p] = {job.parameters, job.gradient, job.loss,
               job.hits,       job.peer,     static_cast<Real>(job.weight)};
  }
}

template <class Real>
void write_updates(const PlanRequest<Real>& request, const Factors<Real>* factors,
                   RowTask<Real>* tasks) {
  for (std::size_t p = 0; p < request.jobs.size(); ++p) {
    const Job<Real>& job = request.jobs[p];
    tasks[p] =
        update_task(request.task.rule, job.parameters, job.state,
                    static_cast<const Real*>(job.gradient), request.task.program->parameters);
    tasks[p].factors_at = factors[p].v;
  }
}

}  // namespace

std::size_t workspace_values(const Program& program, int peers, int samples) {
  std::size_t extra = 0;
  for (const LayerOperation& layer : program.layers)
    extra = std::max(extra, std::visit(
                                [&](const auto& operation) {
                                  return extra_values(operation, peers, samples * layer.positions);
                                },
                                layer.operation));
  return rounded_up(program.workspace, 16) + rounded_up(extra, 16);
}

template <class Real>
std::string plan_key(const PlanRequest<Real>& request) {
  const Task& task = request.task;
  Key key;
  key.add(sizeof(Real), request.pass, request.workspace, request.stride, request.jobs.size(),
          request.jobs[0].batch);
  key.add(task.tables[0].features, task.tables[0].labels, task.tables[0].targets);
  const UpdateRule& rule = task.rule;
  key.add(rule.momentum, rule.nesterov, rule.weight_decay, rule.kind, rule.beta1, rule.beta2,
          rule.epsilon);
  key.add(task.noise.deviation, task.noise.seed);
  key.add(task.views.crop, task.views.flip, task.views.height, task.views.width);
  add(key, *task.program);
  for (const Job<Real>& job : request.jobs)
    key.add(job.parameters, job.state[0], job.state[1], job.gradient, job.loss, job.hits, job.peer,
            job.weight);
  return key.take();
}

template <class Real>
std::unique_ptr<TrainingPlan<Real>> make_plan(StreamContext& context,
                                              const PlanRequest<Real>& request) {
  auto plan = std::make_unique<TrainingPlan<Real>>();
  bool even = false;
  plan->even = even_rows(request, even);
  const PlanLayout layout = PlanLayout::of(request, even);
  plan->memory = context.plans().take(layout.layout.bytes());
  void* base = plan->memory.data();
  plan->batch = {at<PeerRows<Real>>(base, layout.rows), request.workspace, request.stride,
                 static_cast<int>(request.jobs.size()), request.jobs[0].batch};
  plan->call = at<CallInputs>(base, layout.call);
  plan->inputs = {at<std::int32_t>(base, layout.labels),   at<float>(base, layout.targets),
                  at<Factors<Real>>(base, layout.factors), at<std::uint64_t>(base, layout.steps),
                  at<double>(base, layout.losses),         at<std::int64_t>(base, layout.hits)};
  plan->updates = at<RowTask<Real>>(base, layout.updates);
  plan->extra = rounded_up(request.task.program->workspace, 16);

  const UploadRing::Slot slot = context.uploads().reserve(layout.filled);
  write_rows(request, at<PeerRows<Real>>(slot.host, layout.rows));
  if (request.pass == Pass::step)
    write_updates<Real>(request, plan->inputs.factors,
                        at<RowTask<Real>>(slot.host, layout.updates));
  PointerWriter<Real> writer(slot.host + layout.pointers,
                             static_cast<std::byte*>(base) + layout.pointers, request.jobs.size());
  for (const LayerOperation& layer : request.task.program->layers) {
    const auto* dense = std::get_if<DenseOperation>(&layer.operation);
    plan->pointers.push_back(even || dense == nullptr
                                 ? DensePointers<Real>{}
                                 : dense_pointers(request, layer, *dense, writer));
  }
  context.uploads().send(slot, base);
  return plan;
}

#define GOSSAMER_PLAN(Real)                                \
  template std::string plan_key(const PlanRequest<Real>&); \
  template std::unique_ptr<TrainingPlan<Real>> make_plan(StreamContext&, const PlanRequest<Real>&);
GOSSAMER_PLAN(float)
GOSSAMER_PLAN(double)

}  // namespace gossamer::gpu::cuda
