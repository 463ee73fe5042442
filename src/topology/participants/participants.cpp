#include "topology/participants/participants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "base/check.hpp"
#include "base/id_list.hpp"
#include "base/printable.hpp"

namespace gossamer::topology {
namespace {

bool contains(const std::vector<int>& ids, int id) { return std::ranges::binary_search(ids, id); }

/// "100: 0-15", or "0-15" from round 0 on.
Result<ParticipantChange> change_of(const std::string& text, const std::string& origin) {
  const std::size_t colon = text.find(':');
  ParticipantChange read;
  if (colon != std::string::npos) {
    const auto [end, failure] = std::from_chars(text.data(), text.data() + colon, read.first);
    if (failure != std::errc() || end != text.data() + colon)
      return invalid_error(
          fmt::format("{}: '{}' does not begin with the number of a round; use the form 100: 0-15",
                      origin, excerpt(text)));
  }
  const std::size_t begin = colon == std::string::npos ? 0 : text.find_first_not_of(' ', colon + 1);
  if (begin == std::string::npos)
    return invalid_error(fmt::format("{}: '{}' names no peer", origin, excerpt(text)));
  GOSSAMER_TRY(read.peers, parse_ids(std::string_view(text).substr(begin), origin));
  return read;
}

/// Whether `next` may follow `last`.
Status check_change(const ParticipantChange& last, const ParticipantChange& next,
                    const std::string& origin) {
  if (next.first <= last.first)
    return invalid_error(fmt::format("{}: round {} follows round {}; the rounds ascend", origin,
                                     next.first, last.first));
  if (next.peers == last.peers)
    return invalid_error(
        fmt::format("{}: from round {} on the same peers take part as before: "
                    "leave it out",
                    origin, next.first));
  std::vector<int> stay;
  std::ranges::set_intersection(last.peers, next.peers, std::back_inserter(stay));
  if (!stay.empty()) return {};
  return invalid_error(
      fmt::format("{}: no peer takes part both before round {} and from then on, so none has "
                  "parameters to give to those that join; let one stay",
                  origin, next.first));
}

}  // namespace

Participants::Participants(int peers) : peers_(peers), changes_{{0, first_ids(peers)}} {}

Result<Participants> Participants::parse(const std::vector<std::string>& texts, int peers,
                                         const std::string& origin) {
  if (texts.empty()) return Participants(peers);
  std::vector<ParticipantChange> changes;
  for (const std::string& text : texts) {
    GOSSAMER_TRY(ParticipantChange next, change_of(text, origin));
    if (next.peers.back() >= peers)
      return invalid_error(
          fmt::format("{}: '{}' names peer {}, and run.peers = {}: ids are 0 to {}", origin,
                      excerpt(text), next.peers.back(), peers, peers - 1));
    if (changes.empty() && next.first != 0)
      return invalid_error(fmt::format(
          "{}: the first entry says which peers take part from round 0 on, without a round (0-3)",
          origin));
    if (!changes.empty()) GOSSAMER_TRY_STATUS(check_change(changes.back(), next, origin));
    changes.push_back(std::move(next));
  }
  return Participants(peers, std::move(changes));
}

Result<Participants> Participants::parse_open(const std::vector<std::string>& texts, int peers,
                                              const std::string& origin) {
  GOSSAMER_TRY(Participants participants, parse(texts, peers, origin));
  if (participants.changes_.size() > 1)
    return invalid_error(
        fmt::format("{}: peers of an open run join and leave whenever they want; give only those "
                    "that it begins with",
                    origin));
  participants.open_ = true;
  return participants;
}

void Participants::set_changes(const std::vector<ParticipantChange>& changes) {
  GOSSAMER_CHECK(open_, "changes are set of a run that is not open");
  changes_.resize(1);
  changes_.insert(changes_.end(), changes.begin(), changes.end());
  ++revision_;
}

std::size_t Participants::index_at(Round t) const {
  const auto after = std::ranges::upper_bound(changes_, t, {}, &ParticipantChange::first);
  return static_cast<std::size_t>(after - changes_.begin()) - 1;
}

bool Participants::are_all() const {
  return !open_ && changes_.size() == 1 &&
         static_cast<int>(changes_.front().peers.size()) == peers_;
}

bool Participants::takes_part(int peer, Round t) const {
  return peer >= peers_ || are_all() || contains(at(t).peers, peer);
}

std::vector<int> Participants::counted_after(std::vector<int> peers, Round t) const {
  std::erase_if(peers, [&](int peer) { return !counts_after(peer, t); });
  return peers;
}

std::optional<Round> Participants::next_round(int peer, Round t) const {
  if (takes_part(peer, t)) return t;
  for (std::size_t k = index_at(t) + 1; k < changes_.size(); ++k)
    if (contains(changes_[k].peers, peer)) return changes_[k].first;
  return std::nullopt;
}

std::optional<Round> Participants::end_of(int peer) const {
  if (peer >= peers_ || contains(changes_.back().peers, peer)) return std::nullopt;
  for (std::size_t k = changes_.size() - 1; k > 0; --k)
    if (contains(changes_[k - 1].peers, peer)) return changes_[k].first;
  return 0;
}

Round Participants::missed(int peer, Round t) const {
  Round missed = 0;
  for (std::size_t k = 0; k < changes_.size() && changes_[k].first < t; ++k) {
    if (contains(changes_[k].peers, peer)) continue;
    const Round end = k + 1 < changes_.size() ? std::min(changes_[k + 1].first, t) : t;
    missed += end - changes_[k].first;
  }
  return missed;
}

std::vector<std::string> Participants::texts() const {
  std::vector<std::string> texts;
  if (are_all()) return texts;
  for (const ParticipantChange& each : changes_)
    texts.push_back(each.first == 0 ? ids_text(each.peers)
                                    : fmt::format("{}: {}", each.first, ids_text(each.peers)));
  return texts;
}

}  // namespace gossamer::topology
