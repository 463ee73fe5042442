// From which local step on a replica trains that joins networks which run already.
//
// The workers of such a replica join the networks of their parts one by one, each in a round of its
// own. A worker that waited for the others would have its neighbours wait too, and their other
// workers with them, and one of these may be the one that has rows for a worker which has not
// joined yet. So a worker leaves local steps out, and its part is only mixed, up to a step on which
// all agree:
//
//   each worker: begun ──▶ all             whether it joins; if none does, all train at once
//   each worker: reached(k) ──▶ worker 0   it has joined, and leaves step k out
//   worker 0: propose(t) ──▶ all           later than all k, by a margin that doubles
//   each worker: accept(t) ──▶ worker 0    it will not leave t out, and waits in it for an answer;
//            or: refuse(k) ──▶ worker 0    it has left out k ≥ t: worker 0 proposes again
//   worker 0: agree(t) ──▶ all             all have accepted
//
// Messages are received at any time, so a wait in t for the answer is short. Then the wait is for
// workers that have not reached t, and nothing before t depends on this replica's step t.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace gossamer::peer {

/// One worker's side. Local steps are counted as the run counts them: those before round r are the
/// same for all workers. Not thread-safe.
class StepAgreement {
 public:
  StepAgreement(int part, int workers);

  /// The rounds of this worker's network begin. `joins`: they had begun before. Once.
  void begin(bool joins);

  enum class Answer {
    wait,  ///< ask again when a message has been received
    leave_out,
    train
  };
  /// What to do with the next `steps` local steps, of which `step` is the first. They ascend.
  Answer about(std::uint64_t step, std::uint64_t steps);
  /// Whether the replica has one model between those calls: leave_out before it trains.
  Answer about_evaluation() const;

  enum class Kind { begun, reached, propose, accept, refuse, agree };
  struct Message {
    Kind kind = Kind::begun;
    std::uint64_t number = 0;  ///< a step; of begun: 1 if the worker joins
    friend bool operator==(const Message&, const Message&) = default;
  };
  /// Errors (lost_peer): what the worker of part `from` cannot have sent.
  Status receive(int from, const Message& message);
  /// What is to be sent to which parts, in order.
  std::vector<std::pair<int, Message>> take_messages();
  bool has_messages() const { return !messages_.empty(); }

  /// A message as values that travel unchanged.
  static constexpr std::size_t kValues = 5;
  static std::array<float, kValues> values_of(const Message& message);
  /// Errors (lost_peer).
  static Result<Message> message_of(std::span<const float> values);

 private:
  bool all_begun() const;
  bool anyone_joins() const;
  void send(int to, Kind kind, std::uint64_t number);
  void send_all(Kind kind, std::uint64_t number);
  void propose();
  /// Of worker 0: the worker of part `from` has left out `step`.
  Status on_reached(int from, std::uint64_t step);
  Status on_answer(int from, const Message& message);

  int part_;
  std::vector<std::optional<bool>> joins_;  ///< by part
  std::optional<std::uint64_t> left_out_;   ///< the last step that was
  std::optional<std::uint64_t> accepted_, agreed_;
  bool trains_ = false;
  std::vector<std::pair<int, Message>> messages_;
  // Of worker 0:
  std::vector<std::optional<std::uint64_t>> reached_;  ///< by part, a step that it left out
  std::optional<std::uint64_t> proposed_;
  std::vector<bool> answered_;  ///< by part
  bool refused_ = false;
  std::uint64_t steps_ = 1, margin_ = 2;  ///< of a round; in rounds
};

}  // namespace gossamer::peer
