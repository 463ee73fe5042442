#include "gossip/exchange/row_watch.hpp"

#include <fmt/format.h>

#include <set>

#include "gossip/process/protocol_error.hpp"

namespace gossamer::gossip {

RowWatch::RowWatch(const ProcessContext& process, Messenger& messenger)
    : process_(process), messenger_(messenger) {
  if (const Time limit = process.options.row_limit; limit > Time(0)) deadline_.emplace(limit);
}

void RowWatch::on_tick(Time counted, Round round, std::optional<int> donor) {
  if (!deadline_) return;
  const int peer = messenger_.peer();
  const RowDeadline::Finding finding = deadline_->advance(counted, round, awaited_peers(donor));
  for (const int late : finding.overdue)
    if (!process_.faults.is_hosted(late))
      process_.faults.overdue(
          peer, late,
          {ErrorKind::lost_peer,
           fmt::format("peer {} is overdue: round {} of peer {} has waited for its rows for more "
                       "than {:.3g} s (net.row_timeout), although its process answers",
                       late, round, peer, seconds(deadline_->limit()))});
  if (finding.chain == 0) return;
  for (const auto& [to, link] : process_.links.links_of(peer)) {
    ChunkHeader header = control_header(peer, to, ControlMessage::waiting, round);
    header.chain = finding.chain;
    messenger_.send_control(header);
  }
}

Status RowWatch::on_waiting(const ChunkHeader& header, std::optional<int> donor) {
  if (!deadline_) return {};
  // A peer that joins has no round yet, and its donor's rows are of no round.
  const Round round = header.from == donor ? 0 : header.round;
  const Status status = deadline_->on_waiting(header.from, round, header.chain);
  return status.ok() ? status : protocol_error(header, status.error().message);
}

/// The peers that keep this one from going on, ascending.
std::vector<int> RowWatch::awaited_peers(std::optional<int> donor) const {
  const std::vector<int> senders = messenger_.awaited_peers();
  std::set<int> peers(senders.begin(), senders.end());
  if (donor) peers.insert(*donor);
  for (const auto& [to, link] : process_.links.links_of(messenger_.peer()))
    if (link->delays_writer()) peers.insert(to);
  return {peers.begin(), peers.end()};
}

}  // namespace gossamer::gossip
