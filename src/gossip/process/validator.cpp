#include "gossip/process/validator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/magnitude.hpp"
#include "gossip/process/protocol_error.hpp"

namespace gossamer::gossip {
namespace {

std::string beyond(const std::string& what, float largest) {
  return fmt::format("{} of its row is not finite, or beyond algorithm.largest_value = {:g}", what,
                     largest);
}

Error diverged(int peer, Round t, Channel channel, const std::string& violation,
               const char* consequence) {
  return {ErrorKind::diverged, fmt::format("peer {} diverged: in round {}, {} (channel {}), and {}",
                                           peer, t, violation, channel, consequence)};
}
constexpr const char* kNotSent = "it was not sent";

}  // namespace

Validator::Validator(const ExchangeOptions& options, Compute& compute, const std::set<int>& hosted,
                     FaultReporter& faults)
    : options_(options), compute_(compute), hosted_(hosted), faults_(faults) {}

Validator::~Validator() {
  if (wrong_row_) compute_.device().finish();  // a check may still write the word
}

// Rows for a joining peer are never coded.
bool Validator::is_coded(Channel channel) const {
  return is_lossy(options_) && channel < options_.channels.size();
}

std::optional<std::string> Validator::violation(const ChunkHeader& header,
                                                std::span<const float> values) const {
  const float largest = options_.largest_value;
  const bool coded = is_coded(header.channel);
  const std::size_t at =
      coded ? options_.codec->first_beyond({values, header.offset, header.total}, largest)
            : first_beyond(values, largest);
  if (at == values.size()) return std::nullopt;
  return beyond(
      fmt::format("{} {}", coded ? "a value encoded in word" : "value", header.offset + at),
      largest);
}

Status Validator::validate_incoming(const ChunkHeader& header,
                                    std::span<const float> values) const {
  const auto violation = this->violation(header, values);
  return violation ? Status(protocol_error(header, *violation)) : Status();
}

Status Validator::validate_outgoing_chunk(const ChunkHeader& header,
                                          std::span<const float> values) const {
  // A wrong value may be hidden in the rows that it was mixed into.
  GOSSAMER_TRY_STATUS(checks_passed());
  const auto violation = this->violation(header, values);
  return violation
             ? Status(diverged(header.from, header.round, header.channel, *violation, kNotSent))
             : Status();
}

bool Validator::validate_outgoing(int peer, Round t, Channel channel,
                                  std::span<const float> message, std::span<const int> to) {
  if (!compute_.device().host_accessible())
    return is_coded(channel) || enqueue_check(peer, t, channel, message, to);
  const Status valid =
      validate_outgoing_chunk({peer, peer, t, channel, 0, message.size()}, message);
  if (!valid.ok()) faults_.fault(valid.error());
  return valid.ok();
}

bool Validator::validate_before_coding(int peer, Round t, Channel channel,
                                       std::span<const float> row, std::span<const int> to) {
  if (!compute_.device().host_accessible()) return enqueue_check(peer, t, channel, row, to);
  const std::size_t at = first_beyond(row, options_.largest_value);
  if (at < row.size())
    faults_.fault(diverged(peer, t, channel,
                           beyond(fmt::format("value {}", at), options_.largest_value), kNotSent));
  return at == row.size();
}

/// Round, channel and peer as the digits of a number, plus 1. The device keeps the tag of the first
/// wrong row, so it names the peer that diverged, not the peers that mixed its row since.
std::uint64_t Validator::tag_of(int peer, Round t, Channel channel) const {
  return (t * channel_count() + channel) * peer_count() + static_cast<std::uint64_t>(peer) + 1;
}

bool Validator::enqueue_check(int peer, Round t, Channel channel, std::span<const float> row,
                              std::span<const int> to) {
  if (std::ranges::none_of(to, [&](int receiver) { return hosted_.contains(receiver); }))
    return true;
  if (!wrong_row_) wrong_row_.emplace(compute_.device());
  compute_.check_range({row.data(), row.size(), options_.largest_value, wrong_row_->word(),
                        tag_of(peer, t, channel)});
  const Status found = checks_passed();
  if (!found.ok()) faults_.fault(found.error());
  return found.ok();
}

Status Validator::checks_passed() const {
  const std::uint64_t tag = wrong_row_ ? wrong_row_->tag() : 0;
  if (tag == 0) return {};
  const std::uint64_t message = (tag - 1) / peer_count();
  return diverged(static_cast<int>((tag - 1) % peer_count()), message / channel_count(),
                  static_cast<Channel>(message % channel_count()),
                  beyond("a value", options_.largest_value), "the run ends");
}

Status Validator::flush_checks() const {
  compute_.run_checks();
  compute_.device().finish();
  return checks_passed();
}

}  // namespace gossamer::gossip
