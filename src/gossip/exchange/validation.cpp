// The exchange's half that judges values: what is not finite, or beyond the bound, neither leaves a
// peer nor enters one.
//
// A peer looks at a message before the first chunk of it goes out, and ends its run instead. What
// comes from another process is looked at chunk by chunk as it comes, when its bytes have just been
// read and nothing of it has been mixed: it is refused, which costs its sender the link. Between
// peers of one process the first look is enough. Both take host memory. On a GPU, what goes to the
// network and comes from it is judged where it is staged (peer/runtime/staging.hpp). What goes to
// peers of this process the GPU looks at itself, and no round waits for what it finds: the run
// ends some rounds later, and before anything that others made of it is recorded, kept in a
// checkpoint or sent to another process.
#include <fmt/format.h>

#include "base/magnitude.hpp"
#include "gossip/exchange/exchange.hpp"

namespace gossamer::gossip {
namespace {

std::string beyond(const std::string& what, float largest) {
  return fmt::format("{} of its row is not finite, or beyond algorithm.largest_value = {:g}", what,
                     largest);
}

Error diverged(int peer, Round t, Channel channel, const std::string& objection,
               const char* consequence) {
  return {ErrorKind::diverged, fmt::format("peer {} diverged: in round {}, {} (channel {}), and {}",
                                           peer, t, objection, channel, consequence)};
}
constexpr const char* kNotSent = "it was not sent";

}  // namespace

// Rows that are handed over are never coded.
bool Exchange::is_coded(Channel channel) const {
  return options_.codec != nullptr && options_.codec->fidelity() != Fidelity::exact &&
         channel < options_.channels;
}

std::optional<std::string> Exchange::objection(const ChunkHeader& head,
                                               std::span<const float> values) const {
  const float largest = options_.largest_value;
  const bool coded = is_coded(head.channel);
  const std::size_t at =
      coded ? options_.codec->first_beyond({values, head.offset, head.total}, largest)
            : first_beyond(values, largest);
  if (at == values.size()) return std::nullopt;
  return beyond(fmt::format("{} {}", coded ? "what is coded in word" : "value", head.offset + at),
                largest);
}

Status Exchange::validate_incoming(const ChunkHeader& head, std::span<const float> values) const {
  const auto objection = this->objection(head, values);
  return objection ? Status(protocol_error(head, *objection)) : Status();
}

Status Exchange::validate_outgoing_chunk(const ChunkHeader& head,
                                         std::span<const float> values) const {
  GOSSAMER_TRY_STATUS(
      checks_passed());  // what is wrong with a row may be hidden in those that it was mixed into
  const auto objection = this->objection(head, values);
  return objection ? Status(diverged(head.from, head.round, head.channel, *objection, kNotSent))
                   : Status();
}

bool Exchange::validate_outgoing(int peer, Round t, Channel channel, std::span<const float> message,
                                 std::span<const int> to) {
  if (!compute_.device().host_accessible())
    return is_coded(channel) || enqueue_check(peer, t, channel, message, to);
  const Status judged =
      validate_outgoing_chunk({peer, peer, t, channel, 0, message.size()}, message);
  if (!judged.ok()) fault(judged.error());
  return judged.ok();
}

bool Exchange::validate_before_coding(int peer, Round t, Channel channel,
                                      std::span<const float> row, std::span<const int> to) {
  if (!compute_.device().host_accessible()) return enqueue_check(peer, t, channel, row, to);
  const std::size_t at = first_beyond(row, options_.largest_value);
  if (at < row.size())
    fault(diverged(peer, t, channel, beyond(fmt::format("value {}", at), options_.largest_value),
                   kNotSent));
  return at == row.size();
}

// Tags count peers, channels and rounds like digits of a number, and from 1 on. The first row that
// is wrong keeps the word, so its peer is named, not those who have mixed it since.
bool Exchange::enqueue_check(int peer, Round t, Channel channel, std::span<const float> row,
                             std::span<const int> to) {
  if (std::ranges::none_of(to, [&](int receiver) { return endpoints_.contains(receiver); }))
    return true;
  if (!wrong_row_) wrong_row_.emplace(compute_.device());
  const auto peers = static_cast<std::uint64_t>(endpoints_.rbegin()->first) + 1;
  const std::uint64_t tag = (t * (options_.channels + std::uint64_t{1}) + channel) * peers +
                            static_cast<std::uint64_t>(peer) + 1;
  compute_.check_range({row.data(), row.size(), options_.largest_value, wrong_row_->word(), tag});
  const Status found = checks_passed();
  if (!found.ok()) fault(found.error());
  return found.ok();
}

Status Exchange::checks_passed() const {
  const std::uint64_t tag = wrong_row_ ? wrong_row_->tag() : 0;
  if (tag == 0) return {};
  const auto peers = static_cast<std::uint64_t>(endpoints_.rbegin()->first) + 1;
  const std::uint64_t message = (tag - 1) / peers, channels = options_.channels + std::uint64_t{1};
  return diverged(static_cast<int>((tag - 1) % peers), message / channels,
                  static_cast<Channel>(message % channels),
                  beyond("a value", options_.largest_value), "the run ends");
}

Status Endpoint::flush_checks() const {
  exchange_.compute().run_checks();
  exchange_.compute().device().finish();
  GOSSAMER_TRY_STATUS(exchange_.checks_passed());
  return coded_rows_read();
}

}  // namespace gossamer::gossip
