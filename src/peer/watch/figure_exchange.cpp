#include "peer/watch/figure_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "peer/log/log_records.hpp"

namespace gossamer::peer {
namespace {

/// What precedes the text of an entry. Little-endian, as all supported machines are.
struct EntryHeader {
  std::uint32_t node = 0, bytes = 0;
  std::uint64_t version = 0;
};
static_assert(sizeof(EntryHeader) == 16);

Error bad(std::string what) { return {ErrorKind::lost_peer, std::move(what)}; }

/// Takes the header and the text of the first entry off `entries`.
Result<std::pair<EntryHeader, std::string_view>> split_entry(std::string_view& entries, int nodes) {
  EntryHeader header;
  if (entries.size() < sizeof header) return bad("it sent figures that end within an entry");
  std::memcpy(&header, entries.data(), sizeof header);
  entries.remove_prefix(sizeof header);
  if (header.node >= static_cast<std::uint32_t>(nodes))
    return bad(fmt::format("it sent figures of node {} of {}", header.node, nodes));
  if (header.bytes > FigureExchange::entry_limit(nodes))
    return bad(fmt::format("it sent figures of {} bytes of one node, where {} are the limit",
                           header.bytes, FigureExchange::entry_limit(nodes)));
  if (header.bytes > entries.size()) return bad("it sent figures that end within an entry");
  const std::string_view text = entries.substr(0, header.bytes);
  entries.remove_prefix(header.bytes);
  return std::pair(header, text);
}

std::uint64_t round_of(const Json& record) { return record.at("round").get<std::uint64_t>(); }

int node_of(const Json& record) {
  return record.at(record_type(record) == "server" ? "server" : "peer").get<int>();
}

}  // namespace

FigureExchange::FigureExchange(FigureExchangeOptions options)
    : options_(std::move(options)), wished_(options_.wishes) {}

std::size_t FigureExchange::entry_limit(int nodes) {
  constexpr std::size_t most = 16384, most_of_all = std::size_t{64} << 20;
  static_assert(sizeof(EntryHeader) + most <= net::kMaxFiguresBytes);
  return std::min(most, most_of_all / static_cast<std::size_t>(nodes));
}

std::size_t FigureExchange::kept_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [unused, entry] : entries_) bytes += entry.text.size();
  return bytes;
}

// Wishes. A wish has a number, which its asker raises in each turn: a wish that only travels on, in
// a circle say, ends.

std::optional<std::pair<int, FigureExchange::Wish>> FigureExchange::newest_wish(
    gossip::Time now) const {
  std::optional<std::pair<int, Wish>> newest;
  for (const auto& [asker, wish] : wishes_)
    if (now - wish.heard < kWishLife && (!newest || wish.heard > newest->second.heard))
      newest.emplace(asker, wish);
  return newest;
}

// Records of hosted nodes. All processes choose rounds of which the number, in units of log.every,
// has the largest powers of 2 as factors, so they choose the same ones: a page shows means over
// peers.

void FigureExchange::add(Json record) {
  if (!wished_) return;
  Batch& batch = batches_[node_of(record)];
  if (!batch.records.empty() && (!is_chosen(batch, batch.records.back()) ||
                                 round_of(batch.records.back()) == round_of(record)))
    batch.records.pop_back();
  batch.records.push_back(std::move(record));
  if (batch.records.size() <= kMostRecords) return;
  // The newest record stays in any case.
  while (batch.records.size() > kMostRecords / 2 + 1) {
    batch.stride *= 2;
    const auto last = std::prev(batch.records.end());
    const auto left_out = std::remove_if(batch.records.begin(), last,
                                         [&](const Json& one) { return !is_chosen(batch, one); });
    batch.records.erase(left_out, last);
  }
}

void FigureExchange::report(int node, const NodeReport& report) {
  if (!wished_) return;
  Batch& batch = batches_[node];
  NodeReport news = report, known = std::exchange(batch.report, report);
  // What has been sent changes all the time, and goes out with the next record.
  news.sent_to = known.sent_to = {};
  batch.reports = batch.reports || news != known;
}

bool FigureExchange::is_chosen(const Batch& batch, const Json& record) const {
  return round_of(record) / options_.log_every % batch.stride == 0;
}

/// The batch becomes the entry of the node. Sketches are large: only the record of the roundest
/// number keeps it.
void FigureExchange::close(int node, Batch& batch, std::uint64_t clock) {
  const auto roundness = [this](const Json& record) {
    return std::countr_zero(round_of(record) / options_.log_every);
  };
  // The entry replaces that with the newest record, which may not be everywhere yet.
  if (batch.records.empty() && !batch.newest.is_null()) batch.records.push_back(batch.newest);
  const auto roundest = std::ranges::max_element(batch.records, {}, roundness);
  for (auto record = batch.records.begin(); record != batch.records.end(); ++record) {
    if (options_.wishes) show(node, *record);
    if (record != roundest) record->erase("sketch");
  }
  if (!batch.records.empty()) {
    batch.newest = batch.records.back();
    batch.newest.erase("sketch");
  }
  if (auto text = entry_text(std::move(batch.records), record_of(batch.report))) {
    Entry& entry = entries_[node];
    entry = {std::max(entry.version + 1, clock), *std::move(text)};
  } else {
    entries_.erase(node);
  }
  batch.records.clear();
  batch.stride = 1, batch.reports = false;
}

/// What is too long goes without sketches, then without events, then without older records; nothing
/// if even that is too long.
std::optional<std::string> FigureExchange::entry_text(std::vector<Json> records,
                                                      Json report) const {
  const std::size_t limit = entry_limit(options_.nodes);
  const auto text = [&] {
    Json list = records;
    list.push_back(report);
    return text_of(list);
  };
  std::string all = text();
  if (all.size() > limit) {
    for (Json& record : records) record.erase("sketch");
    all = text();
  }
  if (all.size() > limit) {
    report.erase("events");
    all = text();
  }
  while (all.size() > limit && records.size() > 1) {
    records.erase(records.begin());
    all = text();
  }
  return all.size() > limit ? std::nullopt : std::optional(std::move(all));
}

void FigureExchange::begin_turn(gossip::Time now, std::uint64_t clock) {
  if (options_.wishes) {
    Wish& own = wishes_[options_.hosted.front()];
    own = {std::max(own.number + 1, clock), now};
  }
  wished_ = newest_wish(now).has_value();
  if (!wished_) {
    entries_.clear(), batches_.clear(), links_.clear();
    return;
  }
  // So many turns that what is known can be sent meanwhile over each link.
  const std::uint64_t pause = std::bit_ceil(kept_bytes() / net::kMaxFiguresBytes + 1);
  if (++turns_ % pause == 0) close_batches(clock);
}

void FigureExchange::close_batches(std::uint64_t clock) {
  for (auto& [node, batch] : batches_)
    if (!batch.records.empty() || batch.reports) close(node, batch, clock);
}

// Sending.

std::optional<net::Figures> FigureExchange::next(Link link, gossip::Time now) {
  const auto wish = newest_wish(now);
  if (!wish) return {};
  LinkState& state = links_[link];
  const auto& [asker, asked] = *wish;
  std::string entries = entries_for(state);
  std::uint64_t& known = state.wishes[asker];
  if (entries.empty() && known >= asked.number) return {};
  known = std::max(known, asked.number);
  return net::Figures{{static_cast<std::uint32_t>(asker), asked.number}, std::move(entries)};
}

/// The entries that are news to the other end, from the one on that was sent last, as many as fit.
std::string FigureExchange::entries_for(LinkState& link) const {
  std::string entries;
  auto next = entries_.upper_bound(link.last_sent);
  for (std::size_t k = 0; k < entries_.size(); ++k, ++next) {
    if (next == entries_.end()) next = entries_.begin();
    const auto& [node, entry] = *next;
    Version& known = link.versions[node];
    if (known >= entry.version) continue;
    if (entries.size() + sizeof(EntryHeader) + entry.text.size() > net::kMaxFiguresBytes) break;
    const EntryHeader header{static_cast<std::uint32_t>(node),
                             static_cast<std::uint32_t>(entry.text.size()), entry.version};
    entries.append(reinterpret_cast<const char*>(&header), sizeof header);
    entries += entry.text;
    known = entry.version;
    link.last_sent = node;
  }
  return entries;
}

// Receiving.

Status FigureExchange::receive(Link link, const net::Figures& figures, gossip::Time now) {
  const auto& [frame, entries] = figures;
  if (frame.asker >= static_cast<std::uint32_t>(options_.nodes))
    return bad(fmt::format("it sent a wish of node {} of {}", frame.asker, options_.nodes));
  LinkState& state = links_[link];
  hear(state, frame, now);
  for (std::string_view rest = entries; !rest.empty();) {
    GOSSAMER_TRY(const auto entry, split_entry(rest, options_.nodes));
    take(state, static_cast<int>(entry.first.node), entry.first.version, std::string(entry.second));
  }
  return {};
}

void FigureExchange::hear(LinkState& link, const net::FiguresFrame& frame, gossip::Time now) {
  const int asker = static_cast<int>(frame.asker);
  std::uint64_t& known = link.wishes[asker];
  known = std::max(known, frame.wish);
  if (std::ranges::binary_search(options_.hosted, asker)) return;
  const auto before = wishes_.find(asker);
  if (before != wishes_.end() && frame.wish <= before->second.number) return;
  wishes_[asker] = {frame.wish, now};
  wished_ = true;
}

void FigureExchange::take(LinkState& link, int node, Version version, std::string text) {
  Version& known = link.versions[node];
  known = std::max(known, version);
  if (!wished_ || std::ranges::binary_search(options_.hosted, node)) return;
  Entry& entry = entries_[node];
  if (version <= entry.version) return;
  if (options_.wishes) show(node, text);
  entry = {version, std::move(text)};
}

/// The sender may only have forwarded the text, so what is no record of the node is left out. Of
/// the node, each round is shown once.
void FigureExchange::show(int node, const std::string& text) {
  constexpr JsonLimits limits{.depth = 8, .values = 8192, .object_fields = 64};
  if (!check_json_limits(text, limits).ok()) return;
  const auto list = parse_json(text);
  if (!list.ok() || !list->is_array() || list->size() > kMostRecords + 1) return;
  for (const Json& record : *list) {
    const std::string type = record_type(record);
    if (type == "node") return options_.on_report(node, report_of(record, node, options_.nodes));
    if ((type != "round" && type != "server") || check_record(record, {node}, 0)) return;
    if (round_of(record) <= options_.rounds) show(node, record);
  }
}

void FigureExchange::show(int node, const Json& record) {
  const std::uint64_t round = round_of(record);
  const auto shown = shown_.find(node);
  if (shown != shown_.end() && round <= shown->second) return;
  shown_[node] = round;
  options_.on_record(node, record);
}

}  // namespace gossamer::peer
