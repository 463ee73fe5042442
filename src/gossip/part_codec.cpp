#include "gossip/part_codec.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace gossamer::gossip {
namespace {

/// Requests for a part, which begins at `value` of scratch memory and at `word` of messages.
template <class Request>
std::vector<Request> requests_of_part(std::span<const Request> requests, const RowPart& part,
                                      std::size_t value, std::size_t word) {
  return device_requests(requests, [&](Request request) {
    request.values = request.scratch + value;
    request.length = part.values();
    request.message += word;
    return request;
  });
}

gpu::CopyRequest<float> from_row(float* scratch, const float* row, std::size_t values) {
  return {row, scratch, values};
}
gpu::CopyRequest<float> to_row(const float* scratch, float* row, std::size_t values) {
  return {scratch, row, values};
}

}  // namespace

PartCodec::PartCodec(std::unique_ptr<Codec> codec, std::vector<RowPart> parts)
    : codec_(std::move(codec)), parts_(std::move(parts)) {
  GOSSAMER_CHECK(!parts_.empty(), "a row has one part at least");
  std::size_t values = 0;
  for (const RowPart& part : parts_) values += part.values();
  GOSSAMER_CHECK(values == parts_.front().length(), "each value of a row is in one part");
}

void PartCodec::for_each_part(auto&& code) const {
  std::size_t value = 0, word = 0;
  for (const RowPart& part : parts_) {
    code(part, value, word);
    value += part.values();
    word += codec_->words(part.values());
  }
}

std::size_t PartCodec::words(std::size_t length) const {
  GOSSAMER_CHECK(length == parts_.front().length(), "a row that is not the model's");
  std::size_t words = 0;
  for (const RowPart& part : parts_) words += codec_->words(part.values());
  return words;
}

// Part by part: the runs of one are of like lengths, so that none of a batch waits for a longer
// one.
template <class Request>
void PartCodec::copy_rows(gpu::Device& device, std::span<const Request> requests, auto copy) const {
  std::vector<gpu::CopyRequest<float>> copies;
  for_each_part([&](const RowPart& part, std::size_t value, std::size_t) {
    copies.clear();
    for (const Request& request : requests)
      for (const RowPart::Run& run : part.runs())
        copies.push_back(
            copy(request.scratch + value + run.own, request.values + run.whole, run.values));
    device.execute(copies);
  });
}

void PartCodec::encode(gpu::Device& device, std::span<const EncodeRequest> requests) const {
  copy_rows(device, requests, from_row);
  for_each_part([&](const RowPart& part, std::size_t value, std::size_t word) {
    codec_->encode(device, requests_of_part(requests, part, value, word));
  });
}

// What a message is added to is copied too, and the sums are copied back: what is added to each
// value, and in which order, is the codec's affair.
void PartCodec::decode(gpu::Device& device, std::span<const DecodeRequest> requests) const {
  copy_rows(device, requests, from_row);
  for_each_part([&](const RowPart& part, std::size_t value, std::size_t word) {
    codec_->decode(device, requests_of_part(requests, part, value, word));
  });
  copy_rows(device, requests, to_row);
}

std::size_t PartCodec::first_beyond(const MessagePart& received, float largest) const {
  const std::size_t end = received.first + received.words.size();
  std::size_t found = received.words.size();
  for_each_part([&](const RowPart& part, std::size_t, std::size_t word) {
    const std::size_t total = codec_->words(part.values());
    const std::size_t from = std::max(word, received.first), to = std::min(word + total, end);
    if (from >= to || found < received.words.size()) return;
    const MessagePart own{received.words.subspan(from - received.first, to - from), from - word,
                          total};
    const std::size_t at = codec_->first_beyond(own, largest);
    if (at < own.words.size()) found = from - received.first + at;
  });
  return found;
}

}  // namespace gossamer::gossip
