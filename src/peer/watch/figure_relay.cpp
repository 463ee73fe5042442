#include "peer/watch/figure_relay.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "peer/log/log_records.hpp"

namespace gossamer::peer {
namespace {

constexpr gossip::Time kTurn = std::chrono::seconds(1);

FigureExchangeOptions exchange_options(const Setup& setup, const FigureRelay::Parts& parts) {
  FigureExchangeOptions options;
  options.nodes = setup.nodes();
  options.rounds = setup.config.run.rounds;
  options.hosted = parts.hosted;
  options.log_every = logged_multiple(setup.config.log);
  options.wishes = parts.view != nullptr;
  if (parts.view != nullptr)
    options.on_record = [view = parts.view](int node, const Json& record) {
      view->add(record, {node});
    };
  return options;
}

std::uint64_t microseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(
      0, std::chrono::duration_cast<std::chrono::microseconds>(now).count()));
}

}  // namespace

bool shares_figures(const Setup& setup) {
  const std::string& share = setup.config.net.share_figures;
  const auto& spec = setup.workload->spec();
  return share == "on" ||
         (share == "auto" && !spec.privacy && setup.workload->own_shards().empty());
}

FigureRelay::FigureRelay(const Setup& setup, Parts parts) : parts_(std::move(parts)) {
  if (parts_.shares) {
    FigureExchangeOptions options = exchange_options(setup, parts_);
    options.on_suspects = [this](int node, const std::set<int>& suspects) {
      if (std::exchange(suspects_elsewhere_[node], suspects) != suspects) shows_suspects_ = true;
    };
    exchange_.emplace(std::move(options));
    parts_.recorder.on_record = [this](const Json& record) { take(record); };
  }
  timer_ = parts_.scheduler.after(kTurn, [this] { turn(); });
}

FigureRelay::~FigureRelay() {
  parts_.scheduler.cancel(timer_);
  parts_.recorder.on_record = [](const Json&) {};
}

void FigureRelay::take(const Json& record) {
  const std::string type = record_type(record);
  if (type == "round" || type == "server") return add(record);
  if (type == "membership" && record.at("event") == "joined")
    joined_.insert(record.at("peer").get<int>());
  if (parts_.view == nullptr) return;
  // The last records of the nodes precede the one of the end.
  if (type == "end") exchange_->close_batches(microseconds());
  parts_.view->add(record, parts_.hosted);
}

void FigureRelay::add(const Json& record) {
  if (!exchange_->is_wished()) return newest_.clear();
  Json shared = record;
  const auto peer = shared.find("peer");
  if (peer == shared.end()) return exchange_->add(std::move(shared));
  const int node = peer->get<int>();
  if (Json sent = parts_.traffic.sent_by(node); !sent.is_null())
    shared["sent_to"] = std::move(sent);
  if (joined_.contains(node)) shared["joined"] = true;
  if (const auto suspects = suspects_.find(node); suspects != suspects_.end())
    shared["suspects"] = suspects->second;
  newest_[node] = shared;
  exchange_->add(std::move(shared));
}

/// A node that waits for a neighbour writes no records: its last one goes out again.
void FigureRelay::find_suspects() {
  std::map<int, std::set<int>> suspects;
  for (const net::LinkReport& link : parts_.network.links())
    if (link.carries && link.suspected) suspects[link.here].insert(link.there);
  if (suspects == suspects_) return;
  shows_suspects_ = true;
  suspects_.swap(suspects);
  for (auto& [node, record] : newest_) {
    const std::set<int>& before = suspects[node];
    const std::set<int> now = suspects_.contains(node) ? suspects_.at(node) : std::set<int>();
    if (now == before) continue;
    record["suspects"] = now;
    exchange_->add(record);
  }
}

void FigureRelay::turn() {
  timer_ = parts_.scheduler.after(kTurn, [this] { turn(); });
  find_suspects();
  if (exchange_) send();
  if (parts_.view != nullptr) show_links();
}

void FigureRelay::show_links() {
  const auto show = [](auto& before, auto now, auto set) {
    for (const auto& [node, neighbour] : now)
      if (!before.contains({node, neighbour})) set(node, neighbour, true);
    for (const auto& [node, neighbour] : before)
      if (!now.contains({node, neighbour})) set(node, neighbour, false);
    before = std::move(now);
  };
  show(lost_, parts_.lost_elsewhere(), [this](int node, int neighbour, bool lost) {
    parts_.view->set_other_link(node, neighbour, lost);
  });
  if (!std::exchange(shows_suspects_, false)) return;
  std::set<std::pair<int, int>> suspected;  // a link once: either end may suspect the other
  for (const auto* some : {&suspects_, &suspects_elsewhere_})
    for (const auto& [node, neighbours] : *some)
      for (const int neighbour : neighbours) suspected.insert(std::minmax(node, neighbour));
  show(suspected_, std::move(suspected), [this](int node, int neighbour, bool suspects) {
    parts_.view->set_suspected(node, neighbour, suspects);
  });
}

void FigureRelay::send() {
  exchange_->begin_turn(parts_.scheduler.now(), microseconds());
  for (const auto& [here, there] : parts_.links)
    parts_.network.send_figures(here, there, [&, link = std::pair(here, there)] {
      return exchange_->next(link, parts_.scheduler.now());
    });
}

Status FigureRelay::receive(int here, int there, const net::Figures& figures) {
  if (!exchange_) return {};
  return exchange_->receive({here, there}, figures, parts_.scheduler.now());
}

}  // namespace gossamer::peer
