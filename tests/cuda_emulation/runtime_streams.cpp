// Streams, events and graphs of the emulated runtime.
#include <algorithm>
#include <atomic>

#include "memory.hpp"
#include "streams.hpp"

using namespace gossamer::emulation;

namespace {

constexpr int kLeastPriority = 0, kGreatestPriority = -5;  // as on GPUs

std::atomic<std::size_t> events = 0, graphs = 0;

/// The start of every call: checks the stream.
cudaError_t begin_on_stream(const char* name, cudaStream_t stream) {
  if (const cudaError_t error = engine().begin(name); error != cudaSuccess) return error;
  return remember(engine().knows(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

}  // namespace

cudaError_t cudaDeviceSynchronize() {
  GOSSAMER_BEGIN(engine().begin("cudaDeviceSynchronize"));
  GOSSAMER_BEGIN(engine().forbid_during_captures(current_gpu()));
  engine().count(&Counts::synchronisations);
  engine().wait_gpu(current_gpu());
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, kLeastPriority);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int priority) {
  GOSSAMER_BEGIN(engine().begin("cudaStreamCreateWithPriority"));
  int gpu = 0;
  GOSSAMER_BEGIN(cudaGetDevice(&gpu));
  *stream = engine().make_stream(gpu, std::clamp(priority, kGreatestPriority, kLeastPriority));
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = kLeastPriority;
  *greatest = kGreatestPriority;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  GOSSAMER_BEGIN_FREEING(begin_on_stream("cudaStreamDestroy", stream));
  if (stream == nullptr) return remember(cudaErrorInvalidResourceHandle);
  engine().destroy(stream);
  return engine().lost();
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  GOSSAMER_BEGIN(begin_on_stream("cudaStreamSynchronize", stream));
  GOSSAMER_BEGIN(engine().forbid_in_capture());
  engine().count(&Counts::synchronisations);
  engine().wait_stream(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  GOSSAMER_BEGIN(begin_on_stream("cudaStreamQuery", stream));
  GOSSAMER_BEGIN(engine().forbid_in_capture());
  return engine().idle(stream) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  GOSSAMER_BEGIN(begin_on_stream("cudaStreamWaitEvent", stream));
  return engine().ask(
      stream,
      {.kind = Item::Kind::wait, .work = {}, .event = event->state, .ticket = event->state->asked});
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  GOSSAMER_BEGIN(begin_on_stream("cudaLaunchHostFunc", stream));
  return engine().ask(
      stream, {.kind = Item::Kind::host, .work = [function, argument] { function(argument); }});
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  GOSSAMER_BEGIN(engine().begin("cudaEventCreateWithFlags"));
  *event = new CUevent_st{.gpu = current_gpu(), .timed = (flags & cudaEventDisableTiming) == 0};
  ++events;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  GOSSAMER_BEGIN_FREEING(engine().begin("cudaEventDestroy"));
  --events;
  delete event;
  return engine().lost();
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  GOSSAMER_BEGIN(begin_on_stream("cudaEventRecord", stream));
  if (event->gpu != engine().gpu_of(stream)) return remember(cudaErrorInvalidResourceHandle);
  if (engine().captures(stream))
    return remember(cudaErrorStreamCaptureUnsupported);  // on a GPU it is a fork
  engine().record(event->state, stream);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  GOSSAMER_BEGIN(engine().begin("cudaEventSynchronize"));
  GOSSAMER_BEGIN(engine().forbid_in_capture());
  engine().count(&Counts::synchronisations);
  engine().wait_event(*event->state);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  GOSSAMER_BEGIN(engine().begin("cudaEventQuery"));
  GOSSAMER_BEGIN(engine().forbid_in_capture());
  return engine().done(*event->state) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  GOSSAMER_BEGIN(engine().begin("cudaEventElapsedTime"));
  if (!begin->timed || !end->timed || begin->state->asked == 0 || end->state->asked == 0)
    return remember(cudaErrorInvalidResourceHandle);
  if (!engine().done(*begin->state) || !engine().done(*end->state)) return cudaErrorNotReady;
  *milliseconds =
      std::chrono::duration<float, std::milli>(end->state->when - begin->state->when).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  GOSSAMER_BEGIN(begin_on_stream("cudaStreamBeginCapture", stream));
  return engine().begin_capture(stream, mode);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  Items items;
  const cudaError_t begun = begin_on_stream("cudaStreamEndCapture", stream);
  const cudaError_t ended =
      engine().end_capture(stream, items);  // also where an error is asked for
  GOSSAMER_BEGIN(begun);
  GOSSAMER_BEGIN(ended);
  *graph = new CUgraph_st{std::move(items)};
  ++graphs;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  GOSSAMER_BEGIN(begin_on_stream("cudaStreamIsCapturing", stream));
  *status = engine().captures(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  GOSSAMER_BEGIN(engine().begin("cudaGraphInstantiate"));
  *executable = new CUgraphExec_st{std::make_shared<const Items>(graph->items)};
  ++graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t stream) {
  return begin_on_stream("cudaGraphUpload", stream);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  GOSSAMER_BEGIN(begin_on_stream("cudaGraphLaunch", stream));
  if (engine().captures(stream))
    return remember(cudaErrorStreamCaptureUnsupported);  // on a GPU it is a child graph
  engine().count(&Counts::graph_launches);
  return engine().ask(stream,
                      {.work = [items = executable->items, gpus = reach(engine().gpu_of(stream))] {
                        const Arena::Open open(gpus);
                        for (const Item& item : *items) item.work();
                      }});
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  GOSSAMER_BEGIN_FREEING(engine().begin("cudaGraphDestroy"));
  --graphs;
  delete graph;
  return engine().lost();
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  GOSSAMER_BEGIN_FREEING(engine().begin("cudaGraphExecDestroy"));
  --graphs;
  delete executable;  // its running work ends before it is destroyed
  return engine().lost();
}

namespace gossamer::emulation {

Holdings holdings() {
  std::size_t bytes = 0;
  for (int gpu = 0; gpu < kMostGpus; ++gpu) bytes += arena().used(gpu);
  return {bytes, pinned_blocks(), engine().streams(), events, graphs};
}

}  // namespace gossamer::emulation
