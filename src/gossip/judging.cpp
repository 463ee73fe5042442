// The exchange's half that judges values: what is not finite, or beyond the bound, neither leaves a peer nor enters one.
//
// A peer looks at a message before the first chunk of it goes out, and ends its run instead. What comes from another process is
// looked at chunk by chunk as it comes, when its bytes have just been read and nothing of it has been mixed: it is refused, which
// costs its sender the link. Between peers of one process the first look is enough. Both take host memory: on a card, rows
// are judged where they are staged (peer/staging.hpp), on their way between the card and the network.
#include <fmt/format.h>

#include "base/magnitude.hpp"
#include "gossip/exchange.hpp"

namespace gossamer::gossip {
namespace {

std::string beyond(const char* what, std::uint64_t place, float largest) {
  return fmt::format("{} {} of its row is not finite, or beyond algorithm.largest_value = {:g}", what, place, largest);
}

Error diverged(int peer, Round t, Channel channel, const std::string& objection) {
  return {ErrorKind::diverged,
          fmt::format("peer {} diverged: in round {}, {} (channel {}), and it was not sent", peer, t, objection, channel)};
}

}  // namespace

std::optional<std::string> Exchange::objection(const ChunkHead& head, std::span<const float> values) const {
  const float largest = options_.largest_value;
  // Rows that are handed over are never coded.
  const bool coded = options_.codec != nullptr && options_.codec->fidelity() != Fidelity::exact && head.channel < options_.channels;
  const std::size_t at =
      coded ? options_.codec->first_beyond({values, head.offset, head.total}, largest) : first_beyond(values, largest);
  if (at == values.size()) return std::nullopt;
  return beyond(coded ? "what is coded in word" : "value", head.offset + at, largest);
}

Status Exchange::judge_arrival(const ChunkHead& head, std::span<const float> values) const {
  const auto objection = this->objection(head, values);
  return objection ? Status(protocol_error(head, *objection)) : Status();
}

Status Exchange::judge_departure(const ChunkHead& head, std::span<const float> values) const {
  const auto objection = this->objection(head, values);
  return objection ? Status(diverged(head.from, head.round, head.channel, *objection)) : Status();
}

bool Exchange::may_leave(int peer, Round t, Channel channel, std::span<const float> message) {
  if (!compute_.device().host_accessible()) return true;
  const Status judged = judge_departure({peer, peer, t, channel, 0, message.size()}, message);
  if (!judged.ok()) fault(judged.error());
  return judged.ok();
}

bool Exchange::may_be_coded(int peer, Round t, Channel channel, std::span<const float> row) {
  if (!compute_.device().host_accessible()) return true;
  const std::size_t at = first_beyond(row, options_.largest_value);
  if (at < row.size()) fault(diverged(peer, t, channel, beyond("value", at, options_.largest_value)));
  return at == row.size();
}

}  // namespace gossamer::gossip
