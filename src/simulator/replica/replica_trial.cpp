#include "simulator/replica/replica_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/hash.hpp"
#include "base/philox.hpp"
#include "peer/replica/step_agreement.hpp"

namespace gossamer::simulator {
namespace {

using peer::StepAgreement;
using Answer = StepAgreement::Answer;

constexpr int kRounds = 40;
constexpr std::uint64_t kStepsOfRound = 3;
constexpr int kNone = -1;

/// A worker and the network of its part. Its round: it trains in it, and then mixes, once all that
/// take part in the round have trained it.
struct Worker {
  Worker(int part, int parts, bool joins_network)
      : agreement(part, parts), joins(joins_network), round(joins_network ? kNone : 0) {}

  StepAgreement agreement;
  bool joins;  ///< its network ran before it began
  bool has_begun = false;
  int round;                              ///< kNone: it waits for the rows of its donor
  int first = 0;                          ///< the first round in which it takes part
  int donor = kNone;                      ///< the replica that it has asked
  bool mixes = false;                     ///< it has trained
  bool is_late = false;                   ///< all that have rows have ended, and so does it
  std::map<std::uint64_t, bool> trained;  ///< by step that it has decided on: whether it trains
};

struct Replica {
  std::vector<Worker> workers;
  std::map<std::pair<int, int>, std::deque<StepAgreement::Message>> messages;  ///< by from and to
  bool returned = false;  ///< it was started again
};

class ReplicaTrial {
 public:
  explicit ReplicaTrial(std::uint64_t seed)
      : random_(seed, 0, Purpose::scenario, 4), parts_(2 + drawn(3)), slow_(drawn(2 * parts_)) {
    replicas_.resize(static_cast<std::size_t>(2 + drawn(3)));
    for (Replica& replica : replicas_) start(replica, 0);
    // Replica 0 may have been lost when some networks had begun, and others waited for it.
    if (drawn(2) == 0) start(replicas_[0], 6);
    restarts_ = drawn(4);
  }

  ReplicaTrialReport run() {
    while (!ended()) {
      if (restarts_ > 0 && drawn(300) == 0) restart();
      if (happens()) continue;
      violate("nothing can happen any more");
      for (std::size_t r = 0; r < replicas_.size(); ++r)
        for (const Worker& worker : replicas_[r].workers)
          violate(fmt::format("worker {}.{} {} round {}", r, &worker - replicas_[r].workers.data(),
                              worker.mixes ? "mixes" : "trains", worker.round));
      break;
    }
    for (const Replica& replica : replicas_) compare(replica);
    report_.hash = hash64(std::as_bytes(std::span(course_)));
    return std::move(report_);
  }

 private:
  int drawn(int below) {
    return static_cast<int>(random_.below(static_cast<std::uint32_t>(below)));
  }
  void violate(std::string sentence) {
    if (report_.violations.size() < 8) report_.violations.push_back(std::move(sentence));
  }

  /// `of_8`: how likely it is that the network of a part runs already.
  void start(Replica& replica, int of_8) {
    replica = {};
    for (int part = 0; part < parts_; ++part)
      replica.workers.emplace_back(part, parts_, drawn(8) < of_8);
    replica.returned = of_8 > 0;
  }

  bool ended() const {
    return std::ranges::all_of(replicas_, [](const Replica& replica) {
      return std::ranges::all_of(replica.workers,
                                 [](const Worker& worker) { return worker.round >= kRounds; });
    });
  }

  /// A replica is lost, and its workers are started again. Another one goes on that has rows of all
  /// parts.
  void restart() {
    const auto lost = static_cast<std::size_t>(drawn(static_cast<int>(replicas_.size())));
    bool others = false;
    for (std::size_t r = 0; r < replicas_.size(); ++r)
      others =
          others || (r != lost && std::ranges::all_of(replicas_[r].workers, [](const Worker& w) {
                       return w.round != kNone && w.round < kRounds / 2;
                     }));
    if (!others) return;
    --restarts_;
    compare(replicas_[lost]);
    start(replicas_[lost], 8);
    for (Replica& replica : replicas_)
      for (Worker& worker : replica.workers)
        if (worker.donor == static_cast<int>(lost)) worker.donor = kNone;
  }

  /// One of the things that can happen does. Those of a slow part come last, most of the time.
  bool happens() {
    const int count = static_cast<int>(replicas_.size());
    const bool slow_first = drawn(20) == 0;
    for (const bool of_slow : {slow_first, !slow_first}) {
      const int begin = drawn(count * parts_);
      for (int k = 0; k < count * parts_; ++k) {
        const int place = (begin + k) % (count * parts_), r = place / parts_, part = place % parts_;
        if ((part == slow_) != of_slow) continue;
        const bool first_delivers = drawn(2) == 0;
        for (const bool delivers : {first_delivers, !first_delivers})
          if (delivers ? deliver(replica(r), part) : advance(r, part)) return true;
      }
    }
    // A worker that waits may have sent something first.
    return std::ranges::any_of(replicas_, [](const Replica& each) {
      return std::ranges::any_of(each.messages,
                                 [](const auto& stream) { return !stream.second.empty(); });
    });
  }

  Replica& replica(int r) { return replicas_[static_cast<std::size_t>(r)]; }
  Worker& worker(int r, int part) { return replica(r).workers[static_cast<std::size_t>(part)]; }

  void send(Replica& replica, int part) {
    for (const auto& [to, message] :
         replica.workers[static_cast<std::size_t>(part)].agreement.take_messages())
      replica.messages[{part, to}].push_back(message);
  }

  /// A message for the worker of `part`. One that has ended takes none.
  bool deliver(Replica& replica, int part) {
    const int begin = drawn(parts_);
    for (int k = 0; k < parts_; ++k) {
      const int from = (begin + k) % parts_;
      auto& stream = replica.messages[{from, part}];
      if (stream.empty()) continue;
      const auto values = StepAgreement::values_of(stream.front());
      stream.pop_front();
      const auto message = StepAgreement::message_of(values);
      StepAgreement& agreement = replica.workers[static_cast<std::size_t>(part)].agreement;
      const Status taken = message.ok() ? agreement.receive(from, *message) : message.error();
      if (!taken.ok()) violate(taken.error().message);
      send(replica, part);
      return true;
    }
    return false;
  }

  bool advance(int r, int part) {
    Worker& own = worker(r, part);
    if (own.round >= kRounds) return false;
    if (!own.has_begun) {
      own.has_begun = true;
      own.agreement.begin(own.joins);
      send(replica(r), part);
      return true;
    }
    if (own.round == kNone) return ask(own, r, part);
    return own.mixes ? mix(own, r, part) : train(own, r, part);
  }

  /// Asks a replica that has rows. If all of them have ended, it came too late.
  bool ask(Worker& own, int r, int part) {
    if (own.donor != kNone) return false;
    const int count = static_cast<int>(replicas_.size()), begin = drawn(count);
    bool all_ended = true;
    for (int k = 0; k < count; ++k) {
      const int other = (begin + k) % count;
      const Worker& donor = worker(other, part);
      if (other == r || donor.round == kNone) continue;
      if (donor.round >= kRounds - 1) continue;
      all_ended = false;
      own.donor = other;
      return true;
    }
    for (int other = 0; other < count; ++other)
      all_ended = all_ended && (other == r || worker(other, part).round != kNone);
    if (!all_ended) return false;
    own.round = kRounds, own.is_late = true;
    return true;
  }

  bool train(Worker& own, int r, int part) {
    const auto step = static_cast<std::uint64_t>(own.round) * kStepsOfRound;
    const Answer answer = own.agreement.about(step, kStepsOfRound);
    send(replica(r), part);
    if (answer == Answer::wait) return false;
    own.trained[step] = answer == Answer::train;
    if (answer == Answer::train)
      for (const Worker& other : replica(r).workers)
        if (other.round < own.round) return false;  // for its outputs and gradients
    own.mixes = true;
    return true;
  }

  bool mix(Worker& own, int r, int part) {
    for (int other = 0; other < static_cast<int>(replicas_.size()); ++other) {
      const Worker& partner = worker(other, part);
      const bool takes_part =
          partner.round != kNone && !partner.is_late && partner.first <= own.round;
      if (takes_part &&
          (partner.round < own.round || (partner.round == own.round && !partner.mixes)))
        return false;
    }
    own.mixes = false;
    ++own.round;
    for (int other = 0; other < static_cast<int>(replicas_.size()); ++other) {
      Worker& joining = worker(other, part);
      if (joining.donor != r || joining.round != kNone) continue;
      joining.donor = kNone;
      if (own.round < kRounds) joining.round = joining.first = own.round + 1;
    }
    return true;
  }

  /// What the workers of a replica decided, as far as they have.
  void compare(const Replica& replica) {
    bool trains = false;
    for (const Worker& one : replica.workers) {
      bool trained = false;
      for (const auto& [step, train] : one.trained) {
        if (trained && !train) violate(fmt::format("a worker leaves step {} out again", step));
        trained = trained || train;
        course_.push_back(step * 2 + (train ? 1 : 0));
        for (const Worker& other : replica.workers) {
          const auto found = other.trained.find(step);
          if (&other == &one || found == other.trained.end()) continue;
          ++report_.decisions;
          if (found->second != train)
            violate(
                fmt::format("step {} is trained by one worker of a replica, and left out by "
                            "another one",
                            step));
        }
      }
      trains = trains || trained;
    }
    report_.returns += replica.returned && trains ? 1 : 0;
  }

  RandomStream random_;
  int parts_, slow_;  ///< a part of which everything is slow; from parts_ on: none
  int restarts_ = 0;
  std::vector<Replica> replicas_;
  std::vector<std::uint64_t> course_;
  ReplicaTrialReport report_;
};

}  // namespace

ReplicaTrialReport try_replicas(std::uint64_t seed) { return ReplicaTrial(seed).run(); }

}  // namespace gossamer::simulator
