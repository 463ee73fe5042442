// The adversary: the hostile peers of a process, and what they know together. In a run without
// attack there is none.
//
// Honest peers send as ever. A hostile peer sends its true row to the other hostile peers, and a
// message of the attack to each honest neighbour. If the attack reads honest rows, the messages of
// round t are made when every peer has begun its mix of round t: a copy of each row is kept until
// then. No honest peer waits for a hostile one before it has sent its own row, so the messages are
// always made, and they depend on the rows of round t but not on the order in which peers begin.
//
// Memory: per peer a row in host memory, for each round that only a part of the peers has begun;
// per hostile peer a row, and a copy for each message on its way, in device memory.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "gossip/attack.hpp"
#include "gossip/messaging/messenger.hpp"
#include "gossip/process/process_context.hpp"
#include "gpu/device_rows.hpp"

namespace gossamer::gossip {

/// Of algorithms with one mixed row. Thread: the scheduler's.
class Adversary {
 public:
  /// `plan` is that of the options; all outlive the adversary. `hosted`: the peers of this process;
  /// all peers, if the attack reads honest rows.
  Adversary(const ProcessContext& process, const AttackPlan& plan, const std::set<int>& hosted);

  /// A peer of this process sends its row of a mix to the out-neighbours `to` of round t: in place
  /// of Messenger::send(), with its arguments. The messenger outlives the round.
  void send(Messenger& messenger, std::span<const int> to, Round t, Channel channel,
            std::span<const float> values, LeaseSource& owner);

 private:
  /// A hostile peer that has begun a round, and its honest receivers.
  struct Sender {
    Messenger* messenger;
    std::vector<int> to;
    Channel channel;
  };
  /// What is known of a round.
  struct Known {
    std::vector<std::vector<float>> rows;  ///< by peer
    int peers = 0;                         ///< how many of them have begun the round
    std::map<int, Sender> senders;         ///< the hostile peers, by id
  };
  /// A hostile peer.
  struct Attacker {
    std::unique_ptr<Attack> attack;
    gpu::DeviceRows<float> message;  ///< the one that is about to be sent
  };

  /// Strengths of messages that were searched, by receiver: all hostile peers send it the same.
  using Strengths = std::map<int, double>;

  /// The messages of a hostile peer. `rows` may be empty; `searched` is of the round.
  void attack(int peer, const Sender& sender, Round t, std::span<const float> own,
              std::span<const std::vector<float>> rows, Strengths& searched);
  double strength_of(const Attack& attack, const AttackView& view, int receiver,
                     Strengths& searched) const;
  std::vector<float> on_host(std::span<const float> values) const;

  const ProcessContext& process_;
  const AttackPlan& plan_;
  std::map<int, Attacker> attackers_;  ///< the hostile peers of this process
  std::map<Round, Known> rounds_;      ///< that a part of the peers has begun
};

}  // namespace gossamer::gossip
