// Which runs and requests `gossamer leak` can attack.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peer/leak/leak.hpp"
#include "theory/reconstruction.hpp"

namespace gossamer::peer {
namespace {

constexpr int kMostIterations = 1'000'000;

Status check_run(const Config& config) {
  const auto refuse = [](const std::string& key, const std::string& value,
                         const std::string& remedy) {
    return invalid_error(fmt::format(
        "{} = '{}': gossamer leak attacks D-PSGD and CHOCO-SGD with SGD, in which a row "
        "is a known mix of rows and one step; {}",
        key, value, remedy));
  };
  struct Choice {
    const char* key;
    std::string value;
    const char* wanted;
  };
  if (const auto order = config.algorithm.values.find("order");
      order != config.algorithm.values.end() && std::get<std::string>(order->second) != "atc")
    return refuse("algorithm.order", std::get<std::string>(order->second), "set it to 'atc'");
  const Choice choices[] = {
      {"algorithm.policy", config.exchange.policy, "sync"},
      {"mixing.rule", config.mixing.kind, "mean"},
      {"attack.kind", config.attack.kind, "none"},
      {"optimizer.kind", std::get<std::string>(config.resolved.at("optimizer").at("kind")), "sgd"}};
  for (const auto& [key, value, wanted] : choices)
    if (value != wanted) return refuse(key, value, fmt::format("set it to '{}'", wanted));
  if (const double decay = config.optimizer.rule.weight_decay; decay != 0)
    return refuse("optimizer.weight_decay", fmt::format("{:g}", decay), "set it to 0");
  if (!config.run.participants.empty())
    return refuse("run.participants", fmt::format("{}", fmt::join(config.run.participants, "; ")),
                  "leave it out");
  if (config.shards.augments())
    return invalid_error(
        "data.crop and data.flip: gossamer leak looks for the samples of a batch as they are; set "
        "data.crop = 0 and data.flip = false");
  if (config.model.kind == kExternalModel)
    return refuse("model.kind", config.model.kind, "choose a model of `gossamer list`");
  return {};
}

Status check_inversion(const Config& config, const LeakRequest& request) {
  if (!request.trains)
    return invalid_error("--invert: with --predict nothing is run; leave out one of them");
  if (request.inversion < 0 || request.inversion > kMostIterations)
    return invalid_error(
        fmt::format("--invert {}: give a number of iterations from 0 to {}, such as 1000",
                    request.inversion, kMostIterations));
  if (const auto steps = std::get<std::int64_t>(config.algorithm.values.at("local_steps"));
      steps != 1)
    return invalid_error(
        fmt::format("algorithm.local_steps = {}: --invert looks for the samples of one gradient; "
                    "set it to 1",
                    steps));
  if (config.shards.batch == 0)
    return invalid_error(
        "data.batch = 0: --invert looks for the samples of a batch, and not of a whole shard; set "
        "it to a number of samples, such as 4");
  return {};
}

}  // namespace

Status check_leak(const Config& config, const LeakRequest& request) {
  if (config.algorithm.kind != "dpsgd" && config.algorithm.kind != "choco")
    return invalid_error(
        fmt::format("algorithm.kind = '{}': gossamer leak attacks D-PSGD and CHOCO-SGD; set it to "
                    "'dpsgd' or 'choco'",
                    config.algorithm.kind));
  GOSSAMER_TRY_STATUS(check_run(config));
  const auto n = static_cast<std::size_t>(config.run.peers);
  if (n < 2) return invalid_error("run.peers = 1: a peer alone receives no rows; give 2 or more");
  if (request.rounds < 1 || request.rounds > config.run.rounds)
    return invalid_error(fmt::format("--rounds {}: give a number from 1 to run.rounds = {}",
                                     request.rounds, config.run.rounds));
  if (n > theory::kMostUpdates)
    return invalid_error(
        fmt::format("run.peers = {}: at most {} peers can be attacked", n, theory::kMostUpdates));
  if (n * request.rounds > theory::kMostUpdates)
    return invalid_error(fmt::format(
        "--rounds {}: {} peers have {} updates in these rounds, and {} at most can be attacked; "
        "observe {} rounds or fewer",
        request.rounds, n, n * request.rounds, theory::kMostUpdates, theory::kMostUpdates / n));
  if (!(request.similarity >= 0 && request.similarity < 1))
    return invalid_error("--similarity: give a number of at least 0 and below 1");
  if (request.inversion != 0) GOSSAMER_TRY_STATUS(check_inversion(config, request));
  for (const std::vector<int>& group : request.observers) {
    for (const int peer : group)
      if (peer < 0 || static_cast<std::size_t>(peer) >= n)
        return invalid_error(
            fmt::format("--observers: there is no peer {}; ids are 0 to {}", peer, n - 1));
    if (group.size() == n)
      return invalid_error("--observers: these are all peers, so that no peer is left to attack");
  }
  return {};
}

}  // namespace gossamer::peer
