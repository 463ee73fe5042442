// bf16, int8 and signs: a block of threads works on one chunk of one request.
#include "gpu/cuda/kernels/codecs.hpp"

#include <limits>

#include "gpu/cuda/kernels/launch_chunks.hpp"
#include "gpu/cuda/kernels/memory_spaces.hpp"
#include "gpu/cuda/kernels/vector.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kCodecThreads = 256;
constexpr int kQuads = 4;  // per thread
constexpr std::size_t kCodecChunk = std::size_t{kCodecThreads} * 4 * kQuads;

__device__ __forceinline__ std::uint16_t coded_bf16(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  const bool nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  const std::uint32_t rounded =
      bits + 0x7FFFU + ((bits >> 16) & 1U);  // a carry out of the mantissa raises the exponent
  return static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40U : rounded >> 16);
}
__device__ __forceinline__ float decoded_bf16(std::uint16_t coded) {
  return __uint_as_float(static_cast<std::uint32_t>(coded) << 16);
}

__device__ __forceinline__ float decoded_int8(float scale, int coded) {
  return times(scale, static_cast<float>(coded));
}

constexpr float kMost = std::numeric_limits<float>::max(),
                kInfinity = std::numeric_limits<float>::infinity();
__device__ __forceinline__ float quiet_nan() { return __uint_as_float(0x7FC00000U); }

__device__ __forceinline__ void put(float* at, bool add, float value) {
  *at = add ? plus(*at, value) : value;
}
__device__ __forceinline__ void put_quad(float* at, bool add, float a, float b, float c, float d) {
  auto* quad = reinterpret_cast<float4*>(at);
  const float4 before = add ? *quad : make_float4(0, 0, 0, 0);
  *quad =
      add ? make_float4(plus(before.x, a), plus(before.y, b), plus(before.z, c), plus(before.w, d))
          : make_float4(a, b, c, d);
}

__device__ __forceinline__ bool is_aligned(const void* pointer, unsigned bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

/// Calls, for this block's chunk, quad(i) for each four values if `vectors` and the chunk is whole,
/// and single(i) for each value otherwise.
template <class Quad, class Single>
__device__ __forceinline__ void for_chunk(std::size_t begin, std::size_t length, bool vectors,
                                          Quad quad, Single single) {
  if (vectors && length - begin >= kCodecChunk) {
#pragma unroll
    for (int k = 0; k < kQuads; ++k)
      quad(begin + (std::size_t{threadIdx.x} + k * kCodecThreads) * 4);
    return;
  }
  const std::size_t end = min(length, begin + kCodecChunk);
  for (std::size_t i = begin + threadIdx.x; i < end; i += kCodecThreads) single(i);
}

__global__ void __launch_bounds__(kCodecThreads)
    encode_bf16_kernel(const EncodeBf16Request* requests, unsigned count) {
  const EncodeBf16Request r = requests[blockIdx.x % count];
  const std::size_t begin = blockIdx.x / count * kCodecChunk;
  if (begin >= r.length) return;
  for_chunk(
      begin, r.length, is_aligned(r.values, 16) && is_aligned(r.coded, 8),
      [&](std::size_t i) {
        const float4 v = *reinterpret_cast<const float4*>(r.values + i);
        *reinterpret_cast<ushort4*>(r.coded + i) =
            make_ushort4(coded_bf16(v.x), coded_bf16(v.y), coded_bf16(v.z), coded_bf16(v.w));
      },
      [&](std::size_t i) { r.coded[i] = coded_bf16(r.values[i]); });
}

__global__ void __launch_bounds__(kCodecThreads)
    decode_bf16_kernel(const DecodeBf16Request* requests, unsigned count) {
  const DecodeBf16Request r = requests[blockIdx.x % count];
  const std::size_t begin = blockIdx.x / count * kCodecChunk;
  if (begin >= r.length) return;
  for_chunk(
      begin, r.length, is_aligned(r.values, 16) && is_aligned(r.coded, 8),
      [&](std::size_t i) {
        const ushort4 c = *reinterpret_cast<const ushort4*>(r.coded + i);
        put_quad(r.values + i, r.add, decoded_bf16(c.x), decoded_bf16(c.y), decoded_bf16(c.z),
                 decoded_bf16(c.w));
      },
      [&](std::size_t i) { put(r.values + i, r.add, decoded_bf16(r.coded[i])); });
}

/// A block of threads encodes several blocks of the format: kTeam threads each, kInt8Own values a
/// thread.
constexpr int kInt8Own = 4;
constexpr int kTeam = static_cast<int>(kInt8Block) / kInt8Own;
constexpr std::size_t kInt8Chunk = std::size_t{kCodecThreads} * kInt8Own;

__global__ void __launch_bounds__(kCodecThreads)
    encode_int8_kernel(const EncodeInt8Request* requests, unsigned count) {
  GOSSAMER_SHARED(float, largest, [kCodecThreads]);
  const EncodeInt8Request r = requests[blockIdx.x % count];
  const std::size_t begin = blockIdx.x / count * kInt8Chunk;
  if (begin >= r.length) return;
  const int thread = static_cast<int>(threadIdx.x), member = thread % kTeam;
  const std::size_t first = begin + std::size_t{threadIdx.x} * kInt8Own;
  float values[kInt8Own] = {}, most = 0;
  if (first + kInt8Own <= r.length && is_aligned(r.values, 16)) {
    const float4 v = *reinterpret_cast<const float4*>(r.values + first);
    values[0] = v.x, values[1] = v.y, values[2] = v.z, values[3] = v.w;
  } else {
    for (int i = 0; i < kInt8Own; ++i)
      if (first + i < r.length) values[i] = r.values[first + i];
  }
  for (int i = 0; i < kInt8Own; ++i)
    most = fmaxf(most, fabsf(values[i]) <= kMost ? fabsf(values[i]) : kInfinity);
  largest[thread] = most;
  __syncthreads();
  for (int half = kTeam / 2; half > 0; half /= 2) {
    if (member < half) largest[thread] = fmaxf(largest[thread], largest[thread + half]);
    __syncthreads();
  }
  const float scale =
      largest[thread - member] <= kMost ? __fdiv_rn(largest[thread - member], 127.0F) : quiet_nan();
  if (first >= r.length) return;
  if (member == 0) r.scales[first / kInt8Block] = scale;
  std::int8_t coded[kInt8Own];
  for (int i = 0; i < kInt8Own; ++i) {
    // A denormal scale has lost bits, so the quotient may exceed 127.
    const float quotient = scale > 0 ? rintf(__fdiv_rn(values[i], scale)) : 0.0F;
    coded[i] = static_cast<std::int8_t>(fminf(fmaxf(quotient, -127.0F), 127.0F));
  }
  if (first + kInt8Own <= r.length && is_aligned(r.coded, 4)) {
    *reinterpret_cast<char4*>(r.coded + first) = make_char4(coded[0], coded[1], coded[2], coded[3]);
  } else {
    for (int i = 0; i < kInt8Own; ++i)
      if (first + i < r.length) r.coded[first + i] = coded[i];
  }
}

__global__ void __launch_bounds__(kCodecThreads)
    decode_int8_kernel(const DecodeInt8Request* requests, unsigned count) {
  const DecodeInt8Request r = requests[blockIdx.x % count];
  const std::size_t begin = blockIdx.x / count * kCodecChunk;
  if (begin >= r.length) return;
  for_chunk(
      begin, r.length, is_aligned(r.values, 16) && is_aligned(r.coded, 4),
      [&](std::size_t i) {
        const char4 c = *reinterpret_cast<const char4*>(r.coded + i);
        const float scale = r.scales[i / kInt8Block];
        put_quad(r.values + i, r.add, decoded_int8(scale, c.x), decoded_int8(scale, c.y),
                 decoded_int8(scale, c.z), decoded_int8(scale, c.w));
      },
      [&](std::size_t i) {
        put(r.values + i, r.add, decoded_int8(r.scales[i / kInt8Block], r.coded[i]));
      });
}

/// A block of threads encodes one block of the format, kInt8Own values a thread.
static_assert(kSignBlock == std::size_t{kCodecThreads} * kInt8Own);
constexpr int kTeamOfWord = 32 / kInt8Own;

__global__ void __launch_bounds__(kCodecThreads)
    encode_signs_kernel(const EncodeSignsRequest* requests, unsigned count) {
  GOSSAMER_SHARED(double, shared, [kCodecThreads]);
  GOSSAMER_SHARED(unsigned, nibbles, [kCodecThreads]);
  const EncodeSignsRequest r = requests[blockIdx.x % count];
  const std::size_t block = blockIdx.x / count, begin = block * kSignBlock;
  if (begin >= r.length) return;
  const std::size_t first = begin + std::size_t{threadIdx.x} * kInt8Own;
  double sizes[kInt8Own] = {};
  unsigned nibble = 0;
  for (int i = 0; i < kInt8Own; ++i)
    if (first + i < r.length) {
      const float value = r.values[first + i];
      sizes[i] = static_cast<double>(fabsf(value));
      nibble |= (value < 0 ? 1U : 0U) << i;
    }
  nibbles[threadIdx.x] = nibble;
  const double sum =
      block_sum<kCodecThreads>((sizes[0] + sizes[1]) + (sizes[2] + sizes[3]), shared);
  const std::size_t values = min(kSignBlock, r.length - begin);
  if (threadIdx.x == 0)
    r.scales[block] = static_cast<float>(__ddiv_rn(sum, static_cast<double>(values)));
  if (threadIdx.x * std::size_t{32} >= values) return;
  unsigned bits = 0;
  for (int i = 0; i < kTeamOfWord; ++i)
    bits |= nibbles[threadIdx.x * kTeamOfWord + i] << (i * kInt8Own);
  r.bits[begin / 32 + threadIdx.x] = bits;
}

__global__ void __launch_bounds__(kCodecThreads)
    decode_signs_kernel(const DecodeSignsRequest* requests, unsigned count) {
  const DecodeSignsRequest r = requests[blockIdx.x % count];
  const std::size_t begin = blockIdx.x / count * kSignBlock,
                    end = min(r.length, begin + kSignBlock);
  for (std::size_t i = begin + threadIdx.x; i < end; i += kCodecThreads) {
    const float scale = r.scales[i / kSignBlock];
    put(r.values + i, r.add, (r.bits[i / 32] >> (i % 32) & 1U) != 0 ? -scale : scale);
  }
}

}  // namespace

void enqueue(StreamContext& context, std::span<const EncodeBf16Request> requests) {
  launch_chunks(context, encode_bf16_kernel, requests, kCodecChunk, kCodecThreads);
}
void enqueue(StreamContext& context, std::span<const DecodeBf16Request> requests) {
  launch_chunks(context, decode_bf16_kernel, requests, kCodecChunk, kCodecThreads);
}
void enqueue(StreamContext& context, std::span<const EncodeInt8Request> requests) {
  launch_chunks(context, encode_int8_kernel, requests, kInt8Chunk, kCodecThreads);
}
void enqueue(StreamContext& context, std::span<const DecodeInt8Request> requests) {
  launch_chunks(context, decode_int8_kernel, requests, kCodecChunk, kCodecThreads);
}
void enqueue(StreamContext& context, std::span<const EncodeSignsRequest> requests) {
  launch_chunks(context, encode_signs_kernel, requests, kSignBlock, kCodecThreads);
}
void enqueue(StreamContext& context, std::span<const DecodeSignsRequest> requests) {
  launch_chunks(context, decode_signs_kernel, requests, kSignBlock, kCodecThreads);
}

}  // namespace gossamer::gpu::cuda
