#include "gossip/exchange/starting_rows.hpp"

#include <utility>

#include "gossip/process/protocol_error.hpp"

namespace gossamer::gossip {

Status StartingRows::deliver(Chunk chunk) {
  const ChunkHeader header = chunk.header;
  if (header.channel == options_.requested_channel())
    return header.from == donor_ ? messenger_.deliver(std::move(chunk)) : Status();
  if (!is_donor || !is_donor(header.from, header.round))
    return protocol_error(header, "rows that it does not give this peer");
  GOSSAMER_TRY_STATUS(messenger_.deliver(std::move(chunk)));
  messenger_.drop_before(header.from, options_.given_channel(), first_);
  return {};
}

void StartingRows::request_from(std::optional<int> donor) {
  if (donor_ == donor) return;
  if (donor_) messenger_.inbox(*donor_, options_.requested_channel()).close();
  donor_ = donor;
  if (donor_) messenger_.inbox(*donor_, options_.requested_channel()).reopen();
}

void StartingRows::drop_before(Round first) {
  first_ = first;
  messenger_.drop_before(options_.given_channel(), first);
}

}  // namespace gossamer::gossip
