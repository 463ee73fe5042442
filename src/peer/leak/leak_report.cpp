// What `gossamer leak` writes and prints: pairs of a group and a peer, and means over those of
// equal distance.
#include <fmt/format.h>

#include <map>

#include "base/id_list.hpp"
#include "peer/leak/leak.hpp"

namespace gossamer::peer {
namespace {

/// PSNR from which on the leak counts a pair's samples as recognisable, dB.
constexpr double kRecognisable = 20;

class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  void add(const std::optional<double>& value) {
    if (value) add(*value);
  }
  bool known() const { return count_ > 0; }
  double value() const { return sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  std::size_t count_ = 0;
};

/// Means over pairs.
struct Means {
  int pairs = 0;
  Mean share, determined, cosine, psnr, control, recognisable, label, membership;

  void add(const LeakedUpdate& update) {
    ++pairs;
    share.add(update.share);
    determined.add(update.share > 0.99 ? 1.0 : 0.0);
    cosine.add(update.cosine);
    psnr.add(update.psnr);
    control.add(update.control);
    if (update.psnr) recognisable.add(*update.psnr >= kRecognisable ? 1.0 : 0.0);
    membership.add(update.membership);
    if (update.label) label.add(*update.label ? 1.0 : 0.0);
  }
};

std::map<int, Means> by_distance(const Leak& leak) {
  std::map<int, Means> means;
  for (const ObserverLeak& observer : leak.observers)
    for (const LeakedUpdate& update : observer.updates) means[update.distance].add(update);
  return means;
}

/// In the order of the table's columns.
std::vector<std::pair<std::string, const Mean*>> columns(const Means& means) {
  return {{"share", &means.share},     {"determined", &means.determined},
          {"cosine", &means.cosine},   {"psnr", &means.psnr},
          {"control", &means.control}, {"recognisable", &means.recognisable},
          {"label", &means.label},     {"membership", &means.membership}};
}

Json json_of(const LeakedUpdate& update) {
  Json json{{"peer", update.peer},
            {"distance", update.distance},
            {"round", update.round},
            {"share", update.share}};
  if (update.cosine) json["cosine"] = *update.cosine;
  if (update.psnr) json["psnr"] = *update.psnr;
  if (update.control) json["control"] = *update.control;
  if (update.label) json["label"] = *update.label;
  if (update.membership) json["membership"] = *update.membership;
  return json;
}

}  // namespace

Json leak_json(const LeakRequest& request, const Leak& leak) {
  Json json{{"rounds", request.rounds}, {"by_distance", Json::array()}};
  for (const auto& [distance, means] : by_distance(leak)) {
    Json line{{"distance", distance}, {"pairs", means.pairs}};
    for (const auto& [name, mean] : columns(means))
      if (mean->known()) line[name] = mean->value();
    json["by_distance"].push_back(std::move(line));
  }
  json["observers"] = Json::array();
  for (const ObserverLeak& observer : leak.observers) {
    Json updates = Json::array();
    for (const LeakedUpdate& update : observer.updates) updates.push_back(json_of(update));
    json["observers"].push_back({{"peers", observer.peers},
                                 {"similarity", observer.similarity},
                                 {"updates", std::move(updates)}});
  }
  json["shown"] = Json::array();
  for (const ShownSample& shown : leak.shown)
    json["shown"].push_back({{"observers", shown.observers},
                             {"peer", shown.peer},
                             {"sample", shown.sample},
                             {"psnr", shown.psnr}});
  return json;
}

std::string leak_text(const LeakRequest& request, const Leak& leak) {
  const std::map<int, Means> all = by_distance(leak);
  std::string text =
      fmt::format("what peers learn of others from the rows of {} rounds, means over pairs\n\n",
                  request.rounds);
  std::vector<std::string> names;
  if (!all.empty())
    for (const auto& [name, mean] : columns(all.begin()->second)) names.push_back(name);
  std::vector<bool> shown(names.size());
  for (const auto& [distance, means] : all)
    for (std::size_t c = 0; c < names.size(); ++c)
      shown[c] = shown[c] || columns(means)[c].second->known();
  text += fmt::format("{:<10}{:>7}", "distance", "pairs");
  for (std::size_t c = 0; c < names.size(); ++c)
    if (shown[c]) text += fmt::format("{:>14}", names[c]);
  for (const auto& [distance, means] : all) {
    text +=
        fmt::format("\n{:<10}{:>7}", distance < 0 ? "none" : std::to_string(distance), means.pairs);
    for (std::size_t c = 0; c < names.size(); ++c) {
      if (!shown[c]) continue;
      const Mean& mean = *columns(means)[c].second;
      text += mean.known() ? fmt::format("{:>14.3f}", mean.value()) : fmt::format("{:>14}", "-");
    }
  }
  text +=
      "\n\ndistance      hops from a peer to those who observe it\n"
      "share         part of the variance of the peer's update that the rows explain, in the round "
      "of which they explain most\n"
      "determined    part of the pairs with a share above 0.99\n";
  const auto explain = [&](std::size_t column, const char* words) {
    if (shown[column]) text += words;
  };
  if (shown.empty()) return text;
  explain(2, "cosine        of the estimate and the update\n");
  explain(3,
          "psnr          of the batch's samples and what is nearest to each in the estimate, dB\n");
  explain(4,
          "control       the same of as many test samples in place of what was in the estimate\n");
  explain(5, "recognisable  part of the pairs with a psnr of 20 dB or more\n");
  explain(6, "label         part of the pairs in which the label of the one sample was right\n");
  explain(7,
          "membership    how often a sample of the peer has a smaller loss in its last row than a "
          "test sample\n");
  return text;
}

}  // namespace gossamer::peer
