// What `gossamer leak` writes and prints: pairs of a group and a peer, and means over those of
// equal distance.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "peer/leak/leak.hpp"

namespace gossamer::peer {
namespace {

class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  bool known() const { return count_ > 0; }
  double value() const { return sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  std::size_t count_ = 0;
};

/// A column of the table: its name, what it means, and its value for a pair, if it has one.
struct Column {
  const char* name;
  const char* meaning;
  std::optional<double> (*value)(const LeakedPeer&);
};

template <class Member>
std::optional<double> of(const std::optional<SampleOutcome>& outcome, Member member) {
  return outcome ? std::optional<double>((*outcome).*member) : std::nullopt;
}

constexpr Column kColumns[] = {
    {"share",
     "predicted part of an update's variance that the rows explain, in the round with the largest",
     [](const LeakedPeer& peer) { return std::optional(peer.share); }},
    {"explained", "the part of that update that the estimate explained: 1 - (error / update)^2",
     [](const LeakedPeer& peer) { return peer.explained; }},
    {"psnr", "dB, median over the samples of a round, of what was nearest to each in the estimates",
     [](const LeakedPeer& peer) { return of(peer.samples, &SampleOutcome::psnr); }},
    {"control", "psnr with as many test samples in place of what was in the estimates",
     [](const LeakedPeer& peer) { return of(peer.control, &SampleOutcome::psnr); }},
    {"recognised", "part of the samples with 20 dB or more",
     [](const LeakedPeer& peer) { return of(peer.samples, &SampleOutcome::recognised); }},
    {"by control", "the same with test samples",
     [](const LeakedPeer& peer) { return of(peer.control, &SampleOutcome::recognised); }},
    {"inverted", "psnr with what the inversion of the first update gave",
     [](const LeakedPeer& peer) { return of(peer.inverted, &SampleOutcome::psnr); }},
    {"by inverting", "part of the samples with 20 dB or more in it",
     [](const LeakedPeer& peer) { return of(peer.inverted, &SampleOutcome::recognised); }},
    {"label", "part of the pairs in which the label of the one sample was right",
     [](const LeakedPeer& peer) {
       const auto& samples = peer.samples ? peer.samples : peer.inverted;
       return samples && samples->label ? std::optional(*samples->label ? 1.0 : 0.0) : std::nullopt;
     }},
    {"membership", "how often a sample that was trained on has a smaller loss than a test sample",
     [](const LeakedPeer& peer) { return peer.membership; }},
};
constexpr std::size_t kCount = std::size(kColumns);

struct Means {
  int pairs = 0;
  std::array<Mean, kCount> columns;
};

std::map<int, Means> by_distance(const Leak& leak) {
  std::map<int, Means> means;
  for (const ObserverLeak& group : leak.groups)
    for (const LeakedPeer& peer : group.peers) {
      Means& here = means[peer.distance];
      ++here.pairs;
      for (std::size_t c = 0; c < kCount; ++c)
        if (const auto value = kColumns[c].value(peer)) here.columns[c].add(*value);
    }
  return means;
}

std::string key_of(const Column& column) {
  std::string key = column.name;
  std::ranges::replace(key, ' ', '_');
  return key;
}

Json json_of(const LeakedPeer& peer) {
  Json json{{"peer", peer.peer}, {"distance", peer.distance}, {"round", peer.round}};
  for (const Column& column : kColumns)
    if (const auto value = column.value(peer)) json[key_of(column)] = *value;
  if (peer.samples) json["rounds"] = peer.samples->rounds;
  return json;
}

}  // namespace

Json leak_json(const LeakRequest& request, const Leak& leak) {
  Json json{{"predicted", !request.trains},
            {"rounds", request.rounds},
            {"similarity", request.similarity},
            {"by_distance", Json::array()}};
  for (const auto& [distance, means] : by_distance(leak)) {
    Json line{{"distance", distance}, {"pairs", means.pairs}};
    for (std::size_t c = 0; c < kCount; ++c)
      if (means.columns[c].known()) line[key_of(kColumns[c])] = means.columns[c].value();
    json["by_distance"].push_back(std::move(line));
  }
  json["groups"] = Json::array();
  for (const ObserverLeak& group : leak.groups) {
    Json peers = Json::array();
    for (const LeakedPeer& peer : group.peers) peers.push_back(json_of(peer));
    json["groups"].push_back({{"observers", group.observers}, {"peers", std::move(peers)}});
  }
  json["shown"] = Json::array();
  for (const ShownSample& shown : leak.shown)
    json["shown"].push_back({{"observers", shown.observers},
                             {"peer", shown.peer},
                             {"sample", shown.recovered.sample},
                             {"psnr", shown.recovered.psnr}});
  return json;
}

std::string leak_text(const LeakRequest& request, const Leak& leak) {
  const std::map<int, Means> all = by_distance(leak);
  std::string text = fmt::format(
      "what peers {} of others from the rows of {} round{}, means over pairs\n\n{:<10}{:>7}",
      request.trains ? "learn" : "could learn", request.rounds, request.rounds == 1 ? "" : "s",
      "distance", "pairs");
  std::array<bool, kCount> shown{};
  for (const auto& [distance, means] : all)
    for (std::size_t c = 0; c < kCount; ++c) shown[c] = shown[c] || means.columns[c].known();
  for (std::size_t c = 0; c < kCount; ++c)
    if (shown[c]) text += fmt::format("{:>13}", kColumns[c].name);
  for (const auto& [distance, means] : all) {
    text +=
        fmt::format("\n{:<10}{:>7}", distance < 0 ? "none" : std::to_string(distance), means.pairs);
    for (std::size_t c = 0; c < kCount; ++c) {
      if (!shown[c]) continue;
      const Mean& mean = means.columns[c];
      text += mean.known() ? fmt::format("{:>13.3f}", mean.value()) : fmt::format("{:>13}", "-");
    }
  }
  text += fmt::format("\n\n{:<13}hops from a peer to its observers\n", "distance");
  for (std::size_t c = 0; c < kCount; ++c)
    if (shown[c]) text += fmt::format("{:<13}{}\n", kColumns[c].name, kColumns[c].meaning);
  if (request.trains && !leak.reads_samples)
    text +=
        "\nThe first layer of the model is not dense with a bias, so no samples were read off"
        " (--invert looks for them by optimisation).\n";
  return text;
}

}  // namespace gossamer::peer
