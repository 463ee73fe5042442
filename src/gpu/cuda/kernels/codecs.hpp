// Encoding, selecting and decoding on a GPU (gpu/codec_requests.hpp). Each call enqueues its
// kernels for all requests and does not wait.
#pragma once

#include <span>

#include "gpu/codec_requests.hpp"
#include "gpu/cuda/stream_context.hpp"

namespace gossamer::gpu::cuda {

void enqueue(StreamContext& context, std::span<const EncodeBf16Request> requests);
void enqueue(StreamContext& context, std::span<const DecodeBf16Request> requests);
void enqueue(StreamContext& context, std::span<const EncodeInt8Request> requests);
void enqueue(StreamContext& context, std::span<const DecodeInt8Request> requests);
void enqueue(StreamContext& context, std::span<const EncodeSignsRequest> requests);
void enqueue(StreamContext& context, std::span<const DecodeSignsRequest> requests);
void enqueue(StreamContext& context, std::span<const TopKRequest> requests);
void enqueue(StreamContext& context, std::span<const ScatterAddRequest> requests);
void enqueue(StreamContext& context, std::span<const SampleRequest> requests);
void enqueue(StreamContext& context, std::span<const AddSampledRequest> requests);

}  // namespace gossamer::gpu::cuda
