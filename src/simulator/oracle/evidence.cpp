// The oracle's evidence, put in order: which link each life had when, what its rounds mixed, and of
// whom.
#include <algorithm>

#include "gpu/cpu_device.hpp"
#include "simulator/oracle/judge.hpp"

namespace gossamer::gossip::sim {

void Judge::read_links() {
  for (int a = 0; a < n_; ++a)
    for (const int j : parts_.algorithm->partners(a, *parts_.schedule))
      terms_[{a, j}] = {{.other = j, .from_start = true, .entered = 0}};
  for (const LinkRecord& link : trace_.links) {
    changed_.try_emplace(link.life, link.round);
    std::vector<Term>& terms = terms_[{link.life, peer_of(link.other)}];
    if (link.back) {
      terms.push_back(
          {.other = link.other, .opening = link.opening, .back = link.round, .back_at = link.at});
      any_back_ = true;
    } else {
      terms.back().lost = link.round;
      terms.back().lost_at = link.at;
    }
  }
}

void Judge::read_records() {
  for (int t = 0; t < std::max(parts_.schedule->period(), 1); ++t)
    symmetric_ = symmetric_ && w(static_cast<Round>(t)).symmetric();
  for (int a = 0; a < lives(); ++a)
    for (const RoundRecord& record : life(a).rounds) {
      records_[{a, record.round}] = &record;
      RoundForm form = form_of(scenario_, record);
      for (const std::string& wrong : form.wrong)
        hold(false, "replay", "in round {}, peer {} {}", record.round, peer_of(a), wrong);
      for (MixForm& mix : form.mixes) {
        if (!record.end.empty()) read_used(a, record, mix.channel);
        else mix.out.clear();  // what was used for it was not logged
        if (scenario_.codec != "none") mix.said = read_by_others(mix.in, peer_of(a), record.round);
        mixes_[{a, record.round, mix.channel}] = std::move(mix);
      }
      if (shared() && !record.end.empty()) read_used(a, record, *shared());
    }
}

/// What the codec leaves of a row. Its values are floats: no algorithm that is simulated with a
/// codec does arithmetic on them before they are sent.
Row Judge::read_by_others(const Row& in, int peer, Round t) const {
  if (in.empty()) return {};
  gpu::CpuDevice device(1);
  const FloatRow row(in.begin(), in.end());
  FloatRow message(parts_.codec->words(row.size())), read(row.size());
  const EncodeRequest encode{row.data(), row.size(), message.data(), peer, t};
  parts_.codec->encode(device, std::span(&encode, 1));
  const DecodeRequest decode{message.data(), read.data(), read.size(), peer, t};
  parts_.codec->decode(device, std::span(&decode, 1));
  return {read.begin(), read.end()};
}

/// Of everybody whom a hears in a round: what was used of the row.
void Judge::read_used(int a, const RoundRecord& record, Channel channel) {
  for (const topology::Neighbour& j : w(record.round).in_neighbours(peer_of(a))) {
    const Term* term = term_at(a, j.peer, record.round);
    used_[{a, record.round, channel, j.peer}] = {record.round, width(channel),
                                                 term == nullptr ? -1 : term->other};
  }
  for (const Deviation& deviation : record.deviations) {
    if (deviation.channel != channel) continue;
    const auto found = used_.find({a, record.round, channel, deviation.from});
    hold(found != used_.end() && deviation.round == record.round, "log",
         "peer {} logged in round {} that peer {} deviated in round {}, whom it does not hear",
         peer_of(a), record.round, deviation.from, deviation.round);
    if (found == used_.end()) continue;
    hold(found->second.round == record.round && found->second.values == width(channel), "log",
         "peer {} logged twice in round {} what peer {} gave", peer_of(a), record.round,
         deviation.from);
    found->second.round = deviation.missing ? record.round : deviation.used_round;
    found->second.values = deviation.missing ? deviation.values : width(channel);
  }
}

/// From when on links counted that were there again.
void Judge::read_entries() {
  for (const auto& [key, used] : used_) {
    const auto& [a, t, channel, j] = key;
    Term* term = term_at(a, j, t);
    if (used.values == 0 || term == nullptr || !term->holds(t)) continue;
    term->used = true;
    term->entered = std::min(term->entered, t);
    if (const Term* other = other_end(a, *term))
      const_cast<Term*>(other)->entered = std::min(other->entered, t);
  }
}

/// The link from life a to peer j that round t is of: the last one that was there before it.
Term* Judge::term_at(int a, int j, Round t) {
  const auto found = terms_.find({a, j});
  if (found == terms_.end()) return nullptr;
  Term* last = nullptr;
  for (Term& term : found->second)
    if (term.from_start || term.back < t) last = &term;
  return last;
}

const Term* Judge::other_end(int a, const Term& term) const {
  const auto found = terms_.find({term.other, peer_of(a)});
  if (found == terms_.end()) return nullptr;
  for (const Term& theirs : found->second)
    if (theirs.other == a && theirs.opening == term.opening) return &theirs;
  return nullptr;
}

/// What is there between two lives in the end, as a has it; null where either end has lost it.
const Term* Judge::link_between(int a, int b) const {
  const auto found = terms_.find({a, peer_of(b)});
  if (found == terms_.end() || found->second.empty()) return nullptr;
  const Term& term = found->second.back();
  if (term.other != b || term.lost != kNever) return nullptr;
  const Term* other = other_end(a, term);
  return other != nullptr && other->lost == kNever ? &term : nullptr;
}

Round Judge::round_at(int a, Time when) const {
  Round round = 0;
  for (const RoundRecord& record : life(a).rounds)
    if (record.began <= when) round = record.round;
  return round;
}

}  // namespace gossamer::gossip::sim
