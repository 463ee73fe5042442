#include "peer/watch/run_view.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "base/id_list.hpp"
#include "peer/log/log_records.hpp"
#include "peer/log/metrics.hpp"
#include "peer/log/recorder.hpp"
#include "peer/watch/record_fields.hpp"
#include "peer/watch/run_header.hpp"

namespace gossamer::peer {

RunView::RunView(RunViewOptions options)
    : options_(std::move(options)),
      predicted_(std::make_shared<const Json>(options_.predicted)),
      events_(options_.order(), rounds_) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  version_ = began_ = static_cast<std::uint64_t>(std::max<std::int64_t>(1, microseconds));
}

void RunView::reset() {
  const std::lock_guard lock(mutex_);
  began_ = rounds_changed_ = ++version_;
  run_ = nullptr;
  honest_.clear(), nodes_.clear();
  present_.round = 0;
  rounds_ = {};
  links_ = {};
  events_ = EventHistory(options_.order(), rounds_);
  running_.clear();
}

Status RunView::begin(const Json& header) {
  const std::lock_guard lock(mutex_);
  const auto hosted = header.at("hosted").get<std::vector<int>>();
  const auto is_begun = [this](int node) { return nodes_[static_cast<std::size_t>(node)].begun; };
  if (run_ != nullptr)
    for (const char* field : {"run_id", "peers", "servers"})
      if (run_->at(field) != header.at(field)) return data_error("is the log of another run");
  if (run_ != nullptr && std::ranges::any_of(hosted, is_begun))
    return data_error("is the log of a process of which there is another log");
  ++version_;
  if (run_ == nullptr) {
    run_ = std::make_shared<const Json>(checked_header(header));
    // A client that has asked before has nothing of this run.
    began_ = rounds_changed_ = version_;
    peers_ = header.at("peers").get<int>();
    links_.set_edges(neighbours_of(*run_, peers_));
    honest_ = honest_of(*run_, peers_);
    present_.participants = participants_of(*run_, peers_);
    nodes_.resize(static_cast<std::size_t>(peers_ + header.at("servers").get<int>()));
    rounds_ = RoundHistory(peers_, logged_multiple_of(*run_));
  }
  running_.insert(hosted.begin(), hosted.end());
  for (const int node : hosted) nodes_[static_cast<std::size_t>(node)].begun = true;
  update_absences(present_.round);
  for (NodeFigures& node : nodes_) node.changed = version_;
  return {};
}

void RunView::add(const Json& record, const std::vector<int>& hosted) {
  const std::lock_guard lock(mutex_);
  if (run_ == nullptr) return;
  ++version_;
  const std::string type = record_type(record);
  if (type == "round" || type == "server") {
    const int node = record[type == "round" ? "peer" : "server"].get<int>();
    const std::uint64_t sent = add_node(record, node);
    if (type == "round" && node < peers_) add_to_round(record, node);
    rounds_.add_sent(count(record, "round"), sent, version_);
  } else if (type == "network") {
    add_network(record);
  } else if (type == "membership") {
    add_membership(record);
  } else if (type == "end") {
    add_end(record, hosted);
  }
}

std::uint64_t RunView::add_node(const Json& record, int node) {
  NodeFigures& figures = nodes_.at(static_cast<std::size_t>(node));
  figures.changed = version_;
  const std::uint64_t sent = take_record(record, figures);
  if (figures.round > present_.round) update_absences(figures.round);
  const bool trained = figures.trains();
  if (figures.state != NodeStatus::joined && figures.state != NodeStatus::lost &&
      figures.state != NodeStatus::absent)
    figures.state = NodeStatus::training;
  if (!trained && node < peers_ && links_.any_lost())
    for (const int peer : links_.neighbours(node)) update_state(peer);
  return sent;
}

RoundHistory::Round* RunView::kept_round(std::uint64_t round) {
  const std::uint64_t changes = rounds_.changes();
  RoundHistory::Round* kept = rounds_.at(round);
  if (rounds_.changes() != changes) rounds_changed_ = version_;
  return kept;
}

void RunView::add_to_round(const Json& record, int node) {
  RoundHistory::Round* kept = kept_round(count(record, "round"));
  if (kept == nullptr) return;
  RoundFigures& figures = kept->figures;
  figures.changed = version_;
  const auto index = static_cast<std::size_t>(node);
  const NodeFigures& newest = nodes_[index];
  kept->peers.train_loss[index] = static_cast<float>(newest.train_loss);
  kept->peers.test_loss[index] = static_cast<float>(newest.test_loss);
  kept->peers.test_accuracy[index] = static_cast<float>(newest.test_accuracy);
  figures.seconds = std::max(figures.seconds, events_.time(newest.clock, newest.seconds));
  if (!std::ranges::binary_search(honest_, node)) return;
  ++figures.nodes;
  figures.train_loss.add(newest.train_loss);
  figures.test_loss.add(newest.test_loss);
  figures.test_accuracy.add(newest.test_accuracy);
  // The records of one process alone say nothing of the mean over all peers.
  if (const auto sketch = record.find("sketch"); (!options_.served_by || options_.hears_others) &&
                                                 sketch != record.end() && sketch->is_string())
    add_sketch(*kept, sketch->get_ref<const std::string&>(), node);
}

void RunView::set_traffic(int peer, const Json& sent) {
  const std::lock_guard lock(mutex_);
  if (run_ == nullptr) return;
  if (peer < peers_) links_.set_sent(peer, sent, ++version_);
}

int RunView::due_in(std::uint64_t round) const {
  const auto& served = options_.served_by;
  return static_cast<int>(std::ranges::count_if(honest_, [&](int peer) {
    const bool has_records =
        options_.hears_others || !served || std::ranges::binary_search(*served, peer);
    return has_records && present_.participants.counts_after(peer, round);
  }));
}

void RunView::add_sketch(RoundHistory::Round& kept, const std::string& text, int peer) {
  const std::vector<double> values = decode_sketch(text);
  const auto counts = [this, round = kept.figures.round](int each) {
    return present_.participants.counts_after(each, round);
  };
  const bool is_late = !std::isnan(kept.figures.consensus_distance);  // of a peer that was lost
  if (values.empty() || is_late || !counts(peer)) return;
  if (kept.sketches.empty()) kept.due = static_cast<std::size_t>(due_in(kept.figures.round));
  rounds_.add_sketch(kept, peer, values);
  const auto may_never_come = [&](int each) {
    const NodeStatus state = nodes_[static_cast<std::size_t>(each)].state;
    return (state == NodeStatus::lost || state == NodeStatus::stopped) && counts(each) &&
           !kept.sketches.contains(each);
  };
  const bool all_train = !links_.any_lost() && !events_.has_end();
  const auto gone = all_train ? 0 : std::ranges::count_if(honest_, may_never_come);
  if (kept.sketches.size() + static_cast<std::size_t>(gone) < kept.due) return;
  const ConsensusDistance estimate = rounds_.take_estimate(kept, honest_);
  kept.figures.consensus_distance = estimate.all;
  set_distances(kept, estimate.by_peer);
}

void RunView::set_distances(RoundHistory::Round& kept, const std::vector<double>& distances) {
  for (std::size_t k = 0; k < honest_.size() && k < distances.size(); ++k) {
    const auto peer = static_cast<std::size_t>(honest_[k]);
    kept.peers.distance[peer] = static_cast<float>(distances[k]);
    // Its newest record may be of a later round, which is not whole yet.
    if (kept.figures.round < nodes_[peer].distance_round) continue;
    nodes_[peer].distance_round = kept.figures.round;
    nodes_[peer].distance = distances[k];
    nodes_[peer].changed = version_;
  }
}

void RunView::add_network(const Json& record) {
  RoundHistory::Round* kept = kept_round(count(record, "round"));
  if (kept == nullptr) return;
  RoundFigures& figures = kept->figures;
  figures.changed = version_;
  figures.consensus_distance = number(record, "consensus_distance");
  figures.averaged_loss = number(record, "averaged_loss");
  figures.averaged_accuracy = number(record, "averaged_accuracy");
  figures.distance_to_optimum = number(record, "distance_to_optimum");
  std::vector<double> distances;
  if (const auto found = record.find("distances_from_mean"); found != record.end())
    for (const Json& distance : *found)
      distances.push_back(distance.is_number() ? distance.get<double>() : kNotKnown);
  set_distances(*kept, distances);
}

void RunView::add_membership(const Json& record) {
  const int peer = record["peer"].get<int>();
  const auto event = record["event"].get<std::string>();
  NodeFigures& figures = nodes_.at(static_cast<std::size_t>(peer));
  if (event == "joined") {
    const double seconds = number(record, "seconds");
    if (!figures.recorded || seconds < figures.seconds)
      figures.clock = events_.add_clock(count(record, "round"), seconds);
    figures.state = NodeStatus::joined;
    figures.changed = version_;
  }
  events_.add(record, figures.clock, version_);
  if (event == "participants") set_participants(record);
  if (!event.starts_with("link_") || !record["neighbour"].is_number()) return;
  const auto neighbour = count(record, "neighbour");
  if (neighbour >= static_cast<std::uint64_t>(peers_) || peer >= peers_) return;
  if (event == "link_routed")
    return links_.set_route(peer, static_cast<int>(neighbour), record["route"].get<std::string>(),
                            record["relay"].is_null() ? -1 : record["relay"].get<int>(), version_);
  const bool lost = event == "link_lost";
  links_.add_change(count(record, "round"), peer, static_cast<int>(neighbour), lost);
  set_link(peer, static_cast<int>(neighbour), lost,
           record["cause"].is_string() ? record["cause"].get<std::string>() : "");
}

/// Of an open run. Each process says so of the rounds that its peer does.
void RunView::set_participants(const Json& record) {
  const auto ids = parse_ids(record["participants"].get<std::string>(), "participants");
  if (!present_.participants.is_open() || !ids.ok() || ids->back() >= peers_) return;
  const std::uint64_t first = count(record, "round");
  // Clients draw the graph anew, and learn which peers are due. Most records say again what another
  // process has recorded.
  if (present_.participants.at(first).peers != *ids) began_ = version_;
  add_change(present_.participants, {first, *ids});
  update_absences(std::max(present_.round, first));
  if (present_.participants.changes().back().first > first || !run_->contains("topology")) return;
  Json run = *run_;
  run["topology"] = record["topology"];
  run = checked_header(std::move(run));
  if (run == *run_) return;
  run_ = std::make_shared<const Json>(std::move(run));
  links_.set_edges(neighbours_of(*run_, peers_));
  began_ = rounds_changed_ = version_;
}

/// `round`: the newest of all nodes.
void RunView::update_absences(std::uint64_t round) {
  present_.round = round;
  if (present_.participants.are_all()) return;
  const std::vector<int>& present = present_.participants.at(round).peers;
  for (int peer = 0; peer < peers_; ++peer) {
    NodeFigures& figures = nodes_[static_cast<std::size_t>(peer)];
    const bool absent = !std::ranges::binary_search(present, peer);
    const bool ended =
        figures.state == NodeStatus::finished || figures.state == NodeStatus::stopped;
    if (ended || absent == (figures.state == NodeStatus::absent)) continue;
    figures.state = absent ? NodeStatus::absent : NodeStatus::unknown;
    figures.changed = version_;
  }
}

void RunView::set_other_link(int end, int neighbour, bool lost) {
  const std::lock_guard lock(mutex_);
  if (run_ == nullptr || std::max(end, neighbour) >= peers_) return;
  ++version_;
  set_link(end, neighbour, lost, "");
}

/// As far as the edges are known; where they are not, it is one if an end is here.
bool RunView::is_link(int a, int b) const {
  const auto is_here = [here = options_.served_by](int each) {
    return here && std::ranges::binary_search(*here, each);
  };
  return std::max(a, b) < peers_ && (present_.participants.is_open() || links_.is_neighbour(a, b) ||
                                     (!links_.knows_edges() && (is_here(a) || is_here(b))));
}

// The losses of links come another way (set_other_link).
void RunView::add_report(int node, const NodeReport& before, const NodeReport& report) {
  const std::lock_guard lock(mutex_);
  if (run_ == nullptr || node >= static_cast<int>(nodes_.size())) return;
  ++version_;
  NodeFigures& figures = nodes_[static_cast<std::size_t>(node)];
  if (report.joined && figures.state == NodeStatus::training)
    figures.state = NodeStatus::joined, figures.changed = version_;
  if (node < peers_) links_.set_sent(node, report.sent_to, version_);
  const auto set_route = [&](int neighbour, const NodeReport::Route& route) {
    // Any pair of peers is a link of an open run: only those of the graph are kept.
    if (is_link(node, neighbour) && links_.may_be_edge({node, neighbour}))
      links_.set_route(node, neighbour, route.way, route.relay, version_);
  };
  for (const auto& [neighbour, unused] : before.routes)
    if (!report.routes.contains(neighbour)) set_route(neighbour, {"direct", -1});
  for (const auto& [neighbour, route] : report.routes) set_route(neighbour, route);
  // The last of its events is that with the number last_event.
  const std::uint64_t missed = report.last_event - std::min(before.last_event, report.last_event);
  const auto shown = std::min<std::uint64_t>(missed, report.events.size());
  for (auto event = report.events.end() - static_cast<std::ptrdiff_t>(shown);
       event != report.events.end(); ++event)
    events_.add(*event, figures.clock, version_);
}

// The suspicion may be that of another process, and name any nodes.
void RunView::set_suspected(int node, int neighbour, bool suspected) {
  const std::lock_guard lock(mutex_);
  if (run_ == nullptr || std::max(node, neighbour) >= peers_) return;
  if (!suspected || is_link(node, neighbour))
    links_.set_suspected(node, neighbour, suspected, ++version_);
}

void RunView::set_process(const ProcessFigures& figures) {
  const std::lock_guard lock(mutex_);
  process_ = figures;
}

void RunView::set_link(int from, int to, bool lost, const std::string& cause) {
  links_.set_lost(from, to, lost, cause, version_);
  update_state(to);
}

/// Whether the peer is lost depends on the neighbours that train.
void RunView::update_state(int node) {
  const auto index = static_cast<std::size_t>(node);
  NodeFigures& figures = nodes_[index];
  if (figures.state == NodeStatus::finished || figures.state == NodeStatus::stopped ||
      figures.state == NodeStatus::absent)
    return;
  int witnesses = 0, losses = 0;
  for (const int peer : links_.neighbours(node))
    if (nodes_[static_cast<std::size_t>(peer)].trains())
      ++witnesses, losses += links_.has_lost(peer, node) ? 1 : 0;
  const bool is_lost = witnesses > 0 && losses == witnesses;
  if (is_lost == (figures.state == NodeStatus::lost)) return;
  const bool served = running_.contains(node);
  figures.state = is_lost ? NodeStatus::lost : served ? NodeStatus::training : NodeStatus::unknown;
  figures.changed = version_;
}

void RunView::add_end(const Json& record, const std::vector<int>& hosted) {
  const auto reason = record["reason"].get<std::string>();
  for (const int node : hosted) {
    NodeFigures& figures = nodes_.at(static_cast<std::size_t>(node));
    // A process finishes the run also after the last round of a peer of its own.
    const bool is_absent = figures.state == NodeStatus::absent && reason == "finished";
    figures.state = is_absent || reason == kLeft ? NodeStatus::absent
                    : reason == "finished"       ? NodeStatus::finished
                                                 : NodeStatus::stopped;
    figures.changed = version_;
    running_.erase(node);
  }
  const int lowest = hosted.front();
  events_.add_end(record, lowest, nodes_[static_cast<std::size_t>(lowest)].clock, version_);
}

ViewSnapshot RunView::after(std::uint64_t version) const {
  const std::lock_guard lock(mutex_);
  if (version > version_ || version < began_) version = 0;
  ViewSnapshot snapshot;
  snapshot.version = version_;
  snapshot.served_by = options_.served_by;
  snapshot.hears_others = options_.hears_others;
  snapshot.process = process_;
  if (version == 0) snapshot.run = run_, snapshot.predicted = predicted_;
  const auto is_new = [version](const auto& figures) { return figures.changed > version; };
  for (std::size_t node = 0; node < nodes_.size(); ++node)
    if (is_new(nodes_[node])) snapshot.nodes.emplace_back(static_cast<int>(node), nodes_[node]);
  std::uint64_t sent = 0;  // up to a round
  for (const auto& [unused, kept] : rounds_.kept()) {
    sent += kept.sent;
    if (!is_new(kept.figures)) continue;
    snapshot.rounds.push_back(kept.figures);
    snapshot.rounds.back().due = due_in(kept.figures.round);
    snapshot.rounds.back().bytes_sent = sent;
  }
  // In an open run every peer has a link to every other one, and few of them are on the graph.
  for (const auto& [link, figures] : links_.figures())
    if (is_new(figures) && links_.may_be_edge(link)) snapshot.links.emplace_back(link, figures);
  for (EventLine& event : events_.newest())
    if (is_new(event)) snapshot.events.push_back(std::move(event));
  if (running_.empty()) snapshot.end = events_.end();
  if (rounds_changed_ > version || version == 0) {
    snapshot.kept_rounds.emplace();
    for (const auto& [round, unused] : rounds_.kept()) snapshot.kept_rounds->push_back(round);
  }
  return snapshot;
}

std::optional<ReplayedRound> RunView::round(std::uint64_t round) const {
  const std::lock_guard lock(mutex_);
  const auto found = rounds_.kept().find(round);
  if (found == rounds_.kept().end()) return {};
  return ReplayedRound{found->second.peers, links_.lost_in(round)};
}

}  // namespace gossamer::peer
