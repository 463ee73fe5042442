// A codec that encodes each part of a row by itself: what the workers of a cut model send, each of
// which has one part, where one process holds them all.
#pragma once

#include <memory>
#include <vector>

#include "gossip/codec.hpp"
#include "gossip/row_slice.hpp"

namespace gossamer::gossip {

/// A message is those of the parts, one behind the other. A row is decoded to the bits to which its
/// parts are, each as a row of its own with the same sender and round. All rows have the length of
/// the model's. Thread: the scheduler's.
class PartCodec final : public Codec {
 public:
  /// `parts`: one at least; of model rows of the same length, each value of which one part has.
  PartCodec(std::unique_ptr<Codec> codec, std::vector<RowPart> parts);

  Fidelity fidelity() const override { return codec_->fidelity(); }
  std::size_t words(std::size_t length) const override;
  std::size_t scratch(std::size_t length) const override { return length; }
  void encode(gpu::Device& device, std::span<const EncodeRequest> requests) const override;
  void decode(gpu::Device& device, std::span<const DecodeRequest> requests) const override;
  std::size_t first_beyond(const MessagePart& part, float largest) const override;
  const char* refusal() const override { return codec_->refusal(); }

 private:
  /// Calls code(part, first value in scratch memory, first word in the message) for each part.
  void for_each_part(auto&& code) const;
  /// Executes copy(in scratch memory, in the row, values) for each run of the requests' rows.
  template <class Request>
  void copy_rows(gpu::Device& device, std::span<const Request> requests, auto copy) const;

  std::unique_ptr<Codec> codec_;
  std::vector<RowPart> parts_;
};

}  // namespace gossamer::gossip
