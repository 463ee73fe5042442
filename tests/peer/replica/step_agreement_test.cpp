// From which step on a replica trains, and lies about it. Whole networks:
// tests/simulator/replica_trial_test.cpp.
#include "peer/replica/step_agreement.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include "tests/text_test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;

namespace {

using Kind = StepAgreement::Kind;
using Answer = StepAgreement::Answer;
using Message = StepAgreement::Message;

}  // namespace

TEST_CASE("where none joins, all train at once, and nothing is agreed") {
  StepAgreement first(0, 2), second(1, 2);
  first.begin(false);
  CHECK(first.about(12, 3) == Answer::wait);
  CHECK(first.about_evaluation() == Answer::wait);
  CHECK(first.take_messages() == std::vector<std::pair<int, Message>>{{1, {Kind::begun, 0}}});
  CHECK_FALSE(first.has_messages());
  second.begin(false);
  REQUIRE(first.receive(1, second.take_messages().front().second).ok());
  CHECK(first.about_evaluation() == Answer::train);
  CHECK(first.about(12, 3) == Answer::train);
  CHECK(first.take_messages().empty());
}

TEST_CASE("a step that a worker has left out is refused, and the next one lies further ahead") {
  StepAgreement first(0, 2), second(1, 2);
  first.begin(true);
  second.begin(true);
  const auto pass_on = [&] {
    for (const auto& [to, message] : first.take_messages())
      REQUIRE(second.receive(0, message).ok());
    for (const auto& [to, message] : second.take_messages())
      REQUIRE(first.receive(1, message).ok());
  };
  pass_on();
  CHECK(first.about_evaluation() == Answer::leave_out);
  CHECK(second.about(30, 10) == Answer::leave_out);
  CHECK(first.about(20, 10) == Answer::leave_out);
  pass_on();  // worker 0 proposes 30 + 2 · 10
  CHECK(second.about(40, 10) == Answer::leave_out);
  CHECK(second.about(50, 10) == Answer::leave_out);
  CHECK(first.about(50, 10) == Answer::wait);
  pass_on();  // refused: 50 + 4 · 10
  pass_on();
  CHECK(first.about(50, 10) == Answer::leave_out);
  CHECK(first.about(80, 10) == Answer::leave_out);
  CHECK(second.about(80, 10) == Answer::leave_out);
  pass_on();
  CHECK(first.about_evaluation() == Answer::leave_out);
  CHECK(first.about(90, 10) == Answer::train);
  CHECK(second.about(90, 10) == Answer::train);
  CHECK(first.about_evaluation() == Answer::train);
}

TEST_CASE("what a worker cannot have sent is refused by name") {
  const auto refuses = [](StepAgreement& agreement, int from, Kind kind, std::uint64_t number,
                          const char* why) {
    const Status taken = agreement.receive(from, {kind, number});
    REQUIRE_FALSE(taken.ok());
    CHECK(taken.error().kind == ErrorKind::lost_peer);
    CHECK(contains(taken.error().message, why));
  };
  StepAgreement worker(1, 3);
  worker.begin(true);
  refuses(worker, 2, Kind::begun, 2,
          "worker 2 of this replica sent what it cannot have meant: its");
  REQUIRE(worker.receive(2, {Kind::begun, 1}).ok());
  refuses(worker, 2, Kind::begun, 1, "its begin");
  refuses(worker, 2, Kind::propose, 9, "a step for all");
  refuses(worker, 2, Kind::accept, 9, "what is for worker 0");
  refuses(worker, 0, Kind::agree, 9, "a step that not all have accepted");
  refuses(worker, 0, Kind::propose, std::uint64_t{1} << 60, "a step beyond any run");
  REQUIRE(worker.receive(0, {Kind::propose, 9}).ok());
  refuses(worker, 0, Kind::agree, 10, "a step that not all have accepted");
  REQUIRE(worker.receive(0, {Kind::agree, 9}).ok());
  refuses(worker, 0, Kind::propose, 20, "a step for all");

  StepAgreement proposer(0, 2);
  proposer.begin(true);
  REQUIRE(proposer.receive(1, {Kind::begun, 1}).ok());
  refuses(proposer, 1, Kind::refuse, 7, "an answer without a question");
  REQUIRE(proposer.receive(1, {Kind::reached, 7}).ok());
  refuses(proposer, 1, Kind::reached, 8, "its first step, for the second time");
  CHECK(proposer.about(4, 1) == Answer::leave_out);  // proposes 9
  refuses(proposer, 1, Kind::accept, 10, "an answer without a question");
  refuses(proposer, 1, Kind::refuse, 8, "an answer without a question");
  REQUIRE(proposer.receive(1, {Kind::accept, 9}).ok());
  refuses(proposer, 1, Kind::accept, 9, "an answer without a question");
}

TEST_CASE("values that are no message are refused") {
  const auto read = [](std::vector<float> values) {
    return StepAgreement::message_of(values).ok();
  };
  CHECK(read({5, 65535, 65535, 65535, 65535}));
  CHECK_FALSE(read({}));
  CHECK_FALSE(read({0, 0, 0, 0}));
  CHECK_FALSE(read({6, 0, 0, 0, 0}));
  CHECK_FALSE(read({-1, 0, 0, 0, 0}));
  CHECK_FALSE(read({0, 0.5F, 0, 0, 0}));
  CHECK_FALSE(read({0, 65536, 0, 0, 0}));
  CHECK_FALSE(read({0, 0, 0, NAN, 0}));
}
