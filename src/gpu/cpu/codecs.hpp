// Encoding, selecting and decoding on the CPU, one request at a time, on the calling thread.
// gpu/codec_requests.hpp has the formats.
#pragma once

#include "gpu/codec_requests.hpp"

namespace gossamer::gpu {

void run(const EncodeBf16Request& request);
void run(const DecodeBf16Request& request);
void run(const EncodeInt8Request& request);
void run(const DecodeInt8Request& request);
void run(const EncodeSignsRequest& request);
void run(const DecodeSignsRequest& request);
void run(const TopKRequest& request);
void run(const ScatterAddRequest& request);
void run(const SampleRequest& request);
void run(const AddSampledRequest& request);

}  // namespace gossamer::gpu
