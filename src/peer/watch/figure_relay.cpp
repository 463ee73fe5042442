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
    options.on_report = [this](int node, NodeReport report) {
      take_report(node, std::move(report));
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
  if (type == "round" || type == "server") return exchange_->add(record);
  if (type == "membership") add_event(record.at("peer").get<int>(), record);
  if (parts_.view == nullptr) return;
  // The last records of the nodes precede the one of the end.
  if (type == "end") exchange_->close_batches(microseconds());
  parts_.view->add(record, parts_.hosted);
}

/// Other participants are an event of every process of the network, and each shows its own.
void FigureRelay::add_event(int node, const Json& record) {
  const Json& event = record.at("event");
  if (event == "joined") joined_.insert(node);
  if (event == "participants") return;
  Events& events = events_[node];
  events.last = events.last == 0 ? microseconds() : events.last + 1;
  events.kept.emplace_back(parts_.scheduler.now(), record);
  if (events.kept.size() > NodeReport::kMostEvents) events.kept.pop_front();
}

void FigureRelay::turn() {
  timer_ = parts_.scheduler.after(kTurn, [this] { turn(); });
  if (parts_.view == nullptr && !(exchange_ && exchange_->is_wished())) return;
  report();
  if (exchange_) {
    exchange_->begin_turn(parts_.scheduler.now(), microseconds());
    for (const auto& [here, there] : parts_.links)
      parts_.network.send_figures(here, there, [&, link = std::pair(here, there)] {
        return exchange_->next(link, parts_.scheduler.now());
      });
  }
  if (parts_.view == nullptr) return;
  show_links();
  parts_.view->set_process({parts_.network.refused(), parts_.scheduler.timer_delays()});
}

/// What there is to say of the nodes of this process now.
void FigureRelay::report() {
  for (const int node : parts_.hosted) {
    NodeReport& report = reports_[node] = {};
    report.joined = joined_.contains(node);
    report.sent_to = parts_.traffic.sent_by(node);
    const auto found = events_.find(node);
    if (found == events_.end()) continue;
    auto& [last, kept] = found->second;
    while (!kept.empty() && parts_.scheduler.now() - kept.front().first >= kEventLife)
      kept.pop_front();
    report.last_event = last;
    for (const auto& [unused, record] : kept) report.events.push_back(record);
  }
  for (const net::LinkReport& link : parts_.network.links()) {
    NodeReport& report = reports_[link.here];
    if (link.carries && link.suspected) report.suspects.insert(link.there);
    if (link.carries && !link.route.is_direct())
      report.routes[link.there] = {net::name_of(link.route.way), link.route.relay};
  }
  for (const int node : parts_.hosted) {
    if (exchange_) exchange_->report(node, reports_[node]);
    if (parts_.view != nullptr) parts_.view->set_traffic(node, reports_[node].sent_to);
  }
}

/// Of a node of another process.
void FigureRelay::take_report(int node, NodeReport report) {
  NodeReport& before = reports_[node];
  parts_.view->add_report(node, before, report);
  before = std::move(report);
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
  std::set<std::pair<int, int>> suspected;  // a link once: either end may suspect the other
  for (const auto& [node, report] : reports_)
    for (const int neighbour : report.suspects) suspected.insert(std::minmax(node, neighbour));
  show(suspected_, std::move(suspected), [this](int node, int neighbour, bool suspects) {
    parts_.view->set_suspected(node, neighbour, suspects);
  });
}

Status FigureRelay::receive(int here, int there, const net::Figures& figures) {
  if (!exchange_) return {};
  return exchange_->receive({here, there}, figures, parts_.scheduler.now());
}

}  // namespace gossamer::peer
