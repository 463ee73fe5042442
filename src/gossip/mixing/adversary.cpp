#include "gossip/mixing/adversary.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "gossip/mixing/line_search.hpp"

namespace gossamer::gossip {

Adversary::Adversary(const ProcessContext& process, const AttackPlan& plan,
                     const std::set<int>& hosted)
    : process_(process), plan_(plan) {
  GOSSAMER_CHECK(!plan.reads_honest_rows ||
                     hosted.size() == static_cast<std::size_t>(process.schedule.peers()),
                 "the attack reads rows of peers of other processes");
  for (const int peer : hosted)
    if (plan.is_hostile(peer)) attackers_[peer].attack = plan.make();
}

void Adversary::send(Messenger& messenger, std::span<const int> to, Round t, Channel channel,
                     std::span<const float> values, LeaseSource& owner) {
  const int peer = messenger.peer();
  const bool hostile = plan_.is_hostile(peer);
  Sender sender{&messenger, {}, channel};
  if (!hostile || t < plan_.from) {
    messenger.send(to, t, channel, values, owner);
  } else {
    std::vector<int> accomplices;
    for (const int receiver : to)
      (plan_.is_hostile(receiver) ? accomplices : sender.to).push_back(receiver);
    messenger.send(accomplices, t, channel, values, owner);
  }
  Strengths searched;
  if (!plan_.reads_honest_rows) {
    if (hostile) attack(peer, sender, t, on_host(values), {}, searched);
    return;
  }
  Known& known = rounds_[t];
  known.rows.resize(static_cast<std::size_t>(process_.schedule.peers()));
  known.rows[static_cast<std::size_t>(peer)] = on_host(values);
  if (hostile) known.senders.emplace(peer, std::move(sender));
  if (++known.peers < process_.schedule.peers()) return;
  const Known complete = std::move(known);
  rounds_.erase(t);
  for (const auto& [from, begun] : complete.senders)
    attack(from, begun, t, complete.rows[static_cast<std::size_t>(from)], complete.rows, searched);
}

double Adversary::strength_of(const Attack& attack, const AttackView& view, int receiver,
                              Strengths& searched) const {
  if (!plan_.line_search) return plan_.strength;
  const auto [found, is_new] = searched.try_emplace(receiver);
  if (is_new) found->second = most_harmful_strength(attack, view, receiver, process_.options.rule);
  return found->second;
}

void Adversary::attack(int peer, const Sender& sender, Round t, std::span<const float> own,
                       std::span<const std::vector<float>> rows, Strengths& searched) {
  Attacker& attacker = attackers_.at(peer);
  const auto w = process_.schedule.at(t);
  const AttackView view{t, peer, own, *w, plan_.hostile, rows};
  attacker.attack->observe(view);
  if (attacker.message.length() != own.size())
    attacker.message = gpu::DeviceRows<float>::on_gpu(process_.device(),
                                                      process_.options.gpu_of(peer), 1, own.size());
  const auto largest = static_cast<double>(process_.options.largest_value);
  for (const int receiver : sender.to) {
    // A message beyond the bound would lose a link, or end the run, before it does harm.
    std::vector<float> message;
    const double strength = strength_of(*attacker.attack, view, receiver, searched);
    for (const double value : attacker.attack->message(view, receiver, strength))
      message.push_back(static_cast<float>(std::clamp(value, -largest, largest)));
    const std::span<float> row = attacker.message.row(0);
    process_.device().upload(row.data(), message.data(), row.size_bytes());
    sender.messenger->send_copy(receiver, t, sender.channel, row);
  }
}

std::vector<float> Adversary::on_host(std::span<const float> values) const {
  std::vector<float> copy(values.size());
  process_.device().download(copy.data(), values.data(), values.size_bytes());
  return copy;
}

}  // namespace gossamer::gossip
