#include "simulator/world/process.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/check.hpp"

namespace gossamer::simulator {

Process::Process(World& world, int number)
    : world_(world),
      number_(number),
      plan_(plan_of(world.scenario(), number)),
      hooks_(world, *this) {}

Process::~Process() = default;

void Process::start() {
  GOSSAMER_CHECK(!runtime_, "a process is started that has not ended");
  paused_ = closes_ = interrupted_ = false;
  runtime_ = std::make_unique<Runtime>(world_, plan_, lead_, hooks_);
  if (plan_.saves_states) world_.disks().storage().start(number_, plan_.hosted);
  const auto& resumption = world_.recorder().trace().resumption;
  if (world_.recorder().incarnation(plan_.hosted.front()).joins) {
    const auto found = world_.disks().load(number_, plan_.hosted, world_.recorder());
    runtime_->join(found.empty() ? std::vector<SavedState>() : found.rbegin()->second);
  } else if (resumption) {
    std::vector<int> absent;
    std::ranges::set_difference(
        plan_.hosted,
        world_.protocol().participants().counted_after(plan_.hosted, resumption->round),
        std::back_inserter(absent));
    world_.disks().resume_at(number_, plan_.hosted, absent, resumption->round);
    runtime_->resume(*resumption);
  } else {
    runtime_->start();
  }
  ready_ = true;
}

bool Process::interrupt() {
  // Peers that take no part yet are not waited for.
  const topology::Participants& participants = world_.protocol().participants();
  const Round first = world_.recorder().trace().first_round();
  bool any_began = false, all_began = true;
  for (const int peer : plan_.hosted) {
    const Incarnation& incarnation = world_.recorder().incarnation(peer);
    const bool began = !incarnation.rounds.empty();
    any_began = any_began || (began && !incarnation.finished);
    all_began =
        all_began && (began || !(incarnation.joins || participants.takes_part(peer, first)));
  }
  interrupted_ = any_began && all_began;
  return interrupted_;
}

void Process::after_round() {
  if (interrupted_) runtime_->group().interrupt();
}

bool Process::done() const {
  return std::ranges::all_of(
      plan_.hosted, [this](int peer) { return world_.recorder().incarnation(peer).finished; });
}

void Process::run_ready() {
  if (!ready_ || paused_ || !runtime_) return;
  ready_ = false;
  runtime_->scheduler().run();
  for (const int peer : plan_.hosted) {
    Incarnation& record = world_.recorder().incarnation(peer);
    record.most_waiting_bytes =
        std::max(record.most_waiting_bytes,
                 runtime_->group().exchange().endpoint(peer).messenger().unread_bytes());
  }
}

Time Process::next_timer() const {
  return runtime_ && !paused_ ? runtime_->scheduler().next() : Time::max();
}

void Process::fire() {
  runtime_->scheduler().fire();
  ready_ = true;
}

Status Process::deliver(Chunk chunk) {
  ready_ = true;
  return runtime_->group().exchange().deliver(std::move(chunk));
}

PeerEngine& Process::engine(int peer) {
  ready_ = true;
  return runtime_->group().engine(peer);
}

void Process::on_link_lost(int peer, int other, const std::string& why) {
  if (world_.tolerates_loss()) return engine(peer).membership().on_link_lost(other, why);
  if (!done()) world_.control().give_up(*this);
}

Round Process::round_of(int peer) const {
  return runtime_->group().exchange().endpoint(peer).round();
}

}  // namespace gossamer::simulator
