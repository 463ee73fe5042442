#include "gossip/engine/participation.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gossamer::gossip {

Participation::Participation(Exchange& exchange, const Algorithm& algorithm, Node& node,
                             const Donors& donors)
    : exchange_(exchange), algorithm_(algorithm), node_(node), donors_(donors) {
  starting_rows().is_donor = [this](int from, Round t) {
    return donors_.gives(from, node_.id(), t);
  };
}

Round Participation::next_round(Round t, Round end) const {
  return std::min(participants().next_round(node_.id(), t).value_or(end), end);
}

std::uint64_t Participation::steps_of_round() const {
  return local_steps_of_round(algorithm_, [this] { return node_.batches_per_epoch(node_.id()); });
}

task<Participation::Wait> Participation::await_rows(Round t, Membership* membership,
                                                    std::function<bool()> stops) {
  Endpoint& endpoint = node_.endpoint();
  // Rounds between that one and t are left out.
  const Donors::Joining joining = *donors_.last(node_.id(), t);
  starting_rows().drop_before(joining.round);
  if (membership != nullptr) membership->set_wait(joining.round);
  const auto given_by = [&] { return starting_rows().given_by(joining.donor); };
  const auto has_rows = [&] { return given_by() == joining.round; };
  const auto donor_is_missed = [&] {
    if (membership == nullptr) return false;
    if (given_by().value_or(joining.round) > joining.round) return true;
    return !endpoint.view().is_present(joining.donor, joining.round) &&
           (interrupted_ || membership->wait().others_have_begun());
  };
  waits_ = true;
  while (!stops() && !has_rows() && !donor_is_missed()) co_await endpoint.messenger().wait_event();
  waits_ = false;
  if (stops()) co_return Wait::stopped;
  if (!has_rows()) co_return Wait::donor_lost;
  const bool taken = co_await take_rows(joining);
  if (!taken) co_return Wait::donor_lost;
  endpoint.begin_at(t);
  if (membership != nullptr) membership->set_wait(std::nullopt);
  pass(t);
  co_return Wait::taken;
}

/// Returns false if the donor is lost before all rows have arrived.
task<bool> Participation::take_rows(const Donors::Joining& joining) {
  const bool whole = co_await node_.receive_state(
      joining.donor, exchange_.options().given_channel(), joining.round);
  if (!whole) co_return false;
  node_.set_steps_done(joining.round * steps_of_round());
  co_await node_.reinitialise_rows();
  co_await node_.reset_optimizer();
  co_return true;
}

std::optional<Round> Participation::enter(Round t) {
  const Round last = entered_ > 0 ? entered_ - 1 : 0;
  entered_ = t + 1;
  // All peers follow one schedule of step sizes, with rounds left out or without. Servers take
  // the rates of the peers' steps.
  if (node_.id() < exchange_.schedule().peers()) node_.set_rate_step(t * steps_of_round());
  if (participants().index_at(last) == participants().index_at(t)) return std::nullopt;
  return last;
}

task<bool> Participation::begin_change(Round last, Round t, Membership* membership) {
  pass(t);
  give_rows(last + 1, t);
  if (membership != nullptr) membership->wait().announce(t);
  if (!node_.conserves_sums()) co_return false;
  co_await node_.reinitialise_sums();
  co_return true;
}

void Participation::give_up() {
  const Error why{ErrorKind::lost_peer,
                  fmt::format("peer {} ends before it has rows, and gives none", node_.id())};
  FaultReporter& faults = exchange_.faults();
  for (const int partner : algorithm_.partners(node_.id(), exchange_.schedule()))
    faults.reset_link(node_.id(), partner, why);
}

void Participation::give_rows_before(Round end) {
  if (entered_ > 0 && entered_ < end) give_rows(entered_, end - 1);
}

/// To the peers that join with the changes in rounds first … last.
void Participation::give_rows(Round first, Round last) {
  for (const auto [round, receiver] : donors_.receivers(node_.id(), first, last))
    if (node_.endpoint().view().is_present(receiver, last))
      node_.send_state(receiver, exchange_.options().given_channel(), round);
}

}  // namespace gossamer::gossip
