#include "simulator/world/resumption.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "peer/runtime/start_round_agreement.hpp"
#include "simulator/world/process.hpp"
#include "simulator/world/world.hpp"

namespace gossamer::simulator {
namespace {

using States = std::map<Round, std::vector<SavedState>>;
using Agreement = peer::StartRoundAgreement::Outcome;

/// The rounds from which a process can resume: round 0 too, unless checkpoints were removed.
std::vector<Round> rounds_of(const States& states, Round every) {
  std::vector<Round> rounds;
  if (states.empty() || states.begin()->first == every) rounds.push_back(0);
  for (const auto& [round, saved] : states) rounds.push_back(round);
  return rounds;
}

/// What all processes agree on. An error says where they do not.
Result<Agreement> agreed(const World& world, const std::vector<States>& states) {
  const Scenario& scenario = world.scenario();
  std::vector<peer::StartRoundAgreement> views;
  std::vector<std::string> contributions;
  for (const auto& process : world.processes()) {
    const auto& own = states[static_cast<std::size_t>(process->number())];
    views.emplace_back(process->peers(), scenario.peers,
                       rounds_of(own, static_cast<Round>(scenario.checkpoint_every)),
                       [&world, peers = process->peers()](Round round) {
                         return world.protocol().participants().counted_after(peers, round).empty();
                       });
  }
  // Twice: a process adds itself to rounds of others, of which it needs no state.
  for (int step = 0; step < 2; ++step) {
    contributions.clear();
    for (const peer::StartRoundAgreement& view : views)
      contributions.push_back(view.contribution());
    for (peer::StartRoundAgreement& view : views)
      for (const std::string& contribution : contributions)
        GOSSAMER_TRY_STATUS(view.merge(contribution));
  }
  std::optional<Agreement> common;
  for (peer::StartRoundAgreement& view : views) {
    GOSSAMER_TRY(Agreement outcome, view.outcome(true));
    if (common && (common->round != outcome.round || common->without != outcome.without))
      return Error{ErrorKind::internal, "processes resume from rounds that differ"};
    common = std::move(outcome);
  }
  return *common;
}

}  // namespace

std::optional<Resumption> complete(World& world) {
  std::vector<States> states;
  for (const auto& process : world.processes()) {
    states.emplace_back();
    if (process->saves_states())
      states.back() = world.disks().load(process->number(), process->peers(), world.recorder());
    world.recorder().trace().logs.push_back(world.disks().log(process->number()).records());
  }
  if (!world.control().has_stopped()) return std::nullopt;
  const auto outcome = agreed(world, states);
  if (!outcome.ok()) {
    world.recorder().trace().errors.push_back(outcome.error().message);
    return std::nullopt;
  }
  Resumption resumption{world.recorder().trace().end + *world.control().stop_pause(),
                        outcome->round,
                        outcome->without,
                        {},
                        {}};
  for (const States& each : states)
    for (const auto& [round, saved] : each) {
      if (round == outcome->round) std::ranges::copy(saved, std::back_inserter(resumption.states));
      else std::ranges::copy(saved, std::back_inserter(resumption.kept));
    }
  return resumption;
}

}  // namespace gossamer::simulator
