// int8 in blocks of 256 values: one scale a block, max |x| / 127, and one byte a value. The
// message: all scales, then all bytes. A value is off by half its block's scale at most.
#include "gossip/codec.hpp"

namespace gossamer::gossip::codecs::int8 {
namespace {

class Int8 final : public Codec {
 public:
  Fidelity fidelity() const override { return Fidelity::rounded; }
  std::size_t words(std::size_t length) const override {
    return gpu::int8_blocks(length) + (length + 3) / 4;
  }
  // d values in b blocks are b + ⌈d / 4⌉ words: above 65 (b − 1) of them, and 65 b at most.
  std::size_t first_beyond(const MessagePart& part, float largest) const override {
    constexpr std::size_t block_words = 1 + gpu::kInt8Block / 4;
    return first_number_beyond(part, (part.total + block_words - 1) / block_words,
                               largest / 128);  // of bytes −128 … 127
  }
  void encode(gpu::Device& device, std::span<const EncodeRequest> requests) const override {
    device.execute(device_requests(requests, [](const EncodeRequest& r) {
      float* coded = r.message + gpu::int8_blocks(r.length);
      return gpu::EncodeInt8Request{r.values, reinterpret_cast<std::int8_t*>(coded), r.message,
                                    r.length};
    }));
  }
  void decode(gpu::Device& device, std::span<const DecodeRequest> requests) const override {
    device.execute(device_requests(requests, [](const DecodeRequest& r) {
      const float* coded = r.message + gpu::int8_blocks(r.length);
      return gpu::DecodeInt8Request{reinterpret_cast<const std::int8_t*>(coded), r.message,
                                    r.values, r.length, r.combine == Combine::add};
    }));
  }
};

}  // namespace

CodecKind descriptor() {
  return {.name = "int8",
          .summary = "one byte a value, and a scale for each block of 256 values",
          .source = "Dettmers 2016 (blocks: Dettmers et al. 2022)",
          .parameters = {},
          .make = make_plain_codec<Int8>};
}

}  // namespace gossamer::gossip::codecs::int8
