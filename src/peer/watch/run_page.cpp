#include "peer/watch/run_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <span>
#include <utility>

#include "peer/log/log_records.hpp"
#include "peer/prediction/prediction.hpp"
#include "peer/watch/view_json.hpp"

namespace gossamer::peer {

// Generated from the folder peer/watch/page: the name of each file and its bytes.
std::vector<std::pair<std::string_view, std::span<const unsigned char>>> page_files();

namespace {

constexpr const char* kJson = "application/json";
constexpr int kMostPredictedPeers = 1024;  // a prediction for more takes seconds

const char* type_of(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "text/javascript; charset=utf-8";
}

/// The file of the page at a path; nothing if there is none.
std::optional<WebAnswer> file_answer(std::string_view path) {
  const std::string_view wanted =
      path == "/" ? "index.html" : path.substr(std::min<std::size_t>(1, path.size()));
  for (const auto& [name, bytes] : page_files())
    if (path.starts_with('/') && name == wanted)
      return WebAnswer{200, type_of(name), std::string(bytes.begin(), bytes.end())};
  return {};
}

WebAnswer failure(int status, const std::string& why) {
  return {status, kJson, text_of(Json{{"error", why}}) + "\n"};
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

/// The value of after in "after=3"; 0 if there is none.
std::optional<std::uint64_t> version_in(std::string_view query) {
  if (query.empty()) return 0;
  constexpr std::string_view name = "after=";
  return query.starts_with(name) ? whole_number(query.substr(name.size())) : std::nullopt;
}

WebAnswer state_answer(const RunView& view, std::string_view query) {
  const auto version = version_in(query);
  if (!version) return failure(400, "after: not a version");
  return {200, kJson, state_json(view.after(*version))};
}

WebAnswer round_answer(const RunView& view, std::string_view text) {
  const auto round = whole_number(text);
  if (!round) return failure(400, "not a round");
  const auto figures = view.round(*round);
  if (!figures) return failure(404, fmt::format("round {} is not kept", *round));
  return {200, kJson, round_json(*round, *figures)};
}

/// A process that answers is healthy; what it says of the run is for people.
WebAnswer health_answer(const RunView& view) {
  const ViewSnapshot snapshot = view.after(0);
  std::uint64_t round = 0;
  bool trains = false;
  for (const auto& [unused, figures] : snapshot.nodes) {
    round = std::max(round, figures.round);
    trains = trains || figures.recorded;
  }
  const std::string status = !snapshot.end.is_null() ? snapshot.end["reason"].get<std::string>()
                             : !trains               ? "starting"
                                                     : "training";
  return {200, kJson, text_of(Json{{"status", status}, {"round", round}}) + "\n"};
}

}  // namespace

WebAnswer answer_of(const RunView& view, std::string_view path) {
  const std::size_t mark = path.find('?');
  const std::string_view query = mark == path.npos ? "" : path.substr(mark + 1);
  path = path.substr(0, mark);
  if (auto file = file_answer(path)) return std::move(*file);
  if (path == "/state") return state_answer(view, query);
  if (path == "/metrics")
    return {200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(view.after(0))};
  if (path == "/health") return health_answer(view);
  constexpr std::string_view rounds = "/rounds/";
  if (path.starts_with(rounds)) return round_answer(view, path.substr(rounds.size()));
  return failure(404, "there is /, /state, /rounds/R, /metrics and /health");
}

Status RunPage::serve(const std::string& option, const std::string& address) {
  const auto parsed = net::parse_address(address);
  if (!parsed.ok()) return invalid_error(fmt::format("{}: {}", option, parsed.error().message));
  GOSSAMER_TRY(server_, WebServer::start(
                            option, *parsed,
                            [this](std::string_view path) { return answer_of(view_, path); }));
  return {};
}

Json predicted_curve(const Setup& setup) {
  if (setup.config.run.peers > kMostPredictedPeers || !check_predictable(setup.config).ok())
    return {};
  const Prediction prediction = predict(setup, kDecay);
  if (prediction.consensus_distance.empty()) return {};
  Json curve;
  curve["rounds"] = prediction.rounds;
  for (const auto& [name, values] :
       {std::pair("consensus_distance", &prediction.consensus_distance),
        std::pair("distance_to_optimum", &prediction.distance_to_optimum)}) {
    curve[name] = Json::array();
    for (const double value : *values) curve[name].push_back(finite_or_null(value));
  }
  curve["note"] = prediction.sampled ? "as theory predicts it, estimated from samples"
                                     : "as theory predicts it";
  return curve;
}

Result<std::unique_ptr<RunPage>> open_page(const Setup& setup, Recorder& recorder,
                                           const std::vector<int>& hosted, bool hears_others,
                                           const LinkTraffic& traffic,
                                           const std::function<void(const std::string&)>& message) {
  const std::string& address = setup.config.net.http;
  if (address.empty()) return std::unique_ptr<RunPage>();
  RunViewOptions view;
  if (static_cast<int>(hosted.size()) < setup.nodes()) {
    view.served_by = hosted;
    view.hears_others = hears_others;
  }
  view.predicted = predicted_curve(setup);
  auto page = std::make_unique<RunPage>(std::move(view));
  if (const Status begun = page->view().begin(recorder.header()); !begun.ok()) return begun.error();
  if (const Status served = page->serve("net.http", address); !served.ok()) {
    recorder.discard();
    return served.error();
  }
  // What links carry is shown once a second, as records may come by the thousand.
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> shown(static_cast<std::size_t>(setup.nodes()));
  recorder.on_record = [&view = page->view(), &traffic, hosted,
                        shown = std::move(shown)](const Json& record) mutable {
    view.add(record, hosted);
    if (record_type(record) != "round") return;
    const int peer = record["peer"].get<int>();
    Clock::time_point& last = shown[static_cast<std::size_t>(peer)];
    const Clock::time_point now = Clock::now();
    if (last != Clock::time_point() && now - last < std::chrono::seconds(1)) return;
    last = now;
    view.set_traffic(peer, traffic.sent_by(peer));
  };
  message(fmt::format("the page of this run is at {}{}", page->url(),
                      page->is_local() ? "" : ", and open to other machines"));
  return page;
}

}  // namespace gossamer::peer
