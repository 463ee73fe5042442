#include "gossip/messaging/inbox.hpp"

#include <fmt/format.h>

#include <utility>

#include "gossip/process/protocol_error.hpp"

namespace gossamer::gossip {

Status Inbox::push(Chunk chunk) {
  if (refused_) return {};
  const ChunkHeader& header = chunk.header;
  const std::uint64_t values = chunk.values.size();
  if (values == 0 || header.total < values || header.offset > header.total - values)
    return protocol_error(header, fmt::format("values {} to {} of a message of {}", header.offset,
                                              header.offset + values, header.total));
  if (header.offset != next_offset_)
    return protocol_error(
        header, fmt::format("a chunk at value {} where {} was due", header.offset, next_offset_));
  if (header.offset > 0 && (header.total != total_ || header.round != round_))
    return protocol_error(header, "a chunk of another message in the middle of one");
  if (begun_ && header.round < round_)
    return protocol_error(header, fmt::format("round {} has been sent already", round_));
  begun_ = true;
  round_ = header.round;
  total_ = header.total;
  next_offset_ = header.offset + values == header.total ? 0 : header.offset + values;
  chunks.push_back(std::move(chunk));
  if (consumer != nullptr) consumer->arrived();
  return {};
}

void Inbox::close() {
  closed_ = true;
  std::deque<Chunk> dropped;
  dropped.swap(chunks);
  if (consumer != nullptr) consumer->arrived();
}

void Inbox::refuse() {
  refused_ = true;
  chunks.clear();
}

void Inbox::reopen() {
  closed_ = begun_ = refused_ = false;
  next_offset_ = total_ = round_ = 0;
}

}  // namespace gossamer::gossip
