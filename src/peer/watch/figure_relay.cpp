#include "peer/watch/figure_relay.hpp"

#include <algorithm>
#include <chrono>

#include "peer/log/log_records.hpp"

namespace gossamer::peer {
namespace {

constexpr gossip::Time kTurn = std::chrono::seconds(1);

FigureExchangeOptions exchange_options(const Setup& setup, const FigureRelay::Parts& parts) {
  FigureExchangeOptions options;
  options.nodes = setup.nodes();
  options.rounds = setup.config.run.rounds;
  options.hosted = parts.hosted;
  options.log_every = std::max<std::uint64_t>(1, setup.config.log.every);
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
    exchange_.emplace(exchange_options(setup, parts_));
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
  if (parts_.view == nullptr) return;
  // The last records of the nodes precede the one of the end.
  if (type == "end") exchange_->close_batches(microseconds());
  parts_.view->add(record, parts_.hosted);
}

void FigureRelay::add(const Json& record) {
  if (!exchange_->is_wished()) return;
  Json shared = record;
  if (const auto peer = shared.find("peer"); peer != shared.end())
    if (Json sent = parts_.traffic.sent_by(peer->get<int>()); !sent.is_null())
      shared["sent_to"] = std::move(sent);
  exchange_->add(std::move(shared));
}

void FigureRelay::turn() {
  timer_ = parts_.scheduler.after(kTurn, [this] { turn(); });
  if (exchange_) send();
  if (parts_.view != nullptr) show_links();
}

void FigureRelay::show_links() {
  std::set<std::pair<int, int>> suspected;
  for (const net::LinkReport& link : parts_.network.links())
    if (link.carries && link.suspected) suspected.emplace(link.here, link.there);
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
