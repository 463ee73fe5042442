// Acknowledgement state without sockets: counts, when an acknowledgement is due, and resumption.
#include "net/session/ack_state.hpp"
#include "net/session/send_queue.hpp"
#include "tests/net/test_util.hpp"

using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

/// A data frame whose payload is `values` values, at `offset` of a message of `total`.
FrameHeader chunk(std::uint64_t values, std::uint64_t offset, std::uint64_t total) {
  FrameHeader header = data_header(0, 1, total, offset);
  header.payload_bytes = static_cast<std::uint32_t>(values * sizeof(float));
  return header;
}

constexpr std::uint64_t kSmallValues = SendQueue::kSmallBytes / sizeof(float);

}  // namespace

TEST_CASE("small messages are acknowledged with other frames, or by the next tick") {
  AckState acks;
  CHECK(acks.up_to_date());
  CHECK_FALSE(acks.make_due());
  acks.on_received(chunk(kSmallValues / 2, 0, kSmallValues / 2));
  acks.on_received(frame_header(0, 1, RunningFrame{}));
  CHECK_FALSE(acks.due());
  CHECK_FALSE(acks.worth_sending());
  acks.on_received(chunk(kSmallValues, 0, kSmallValues));
  CHECK(acks.worth_sending());
  CHECK_FALSE(acks.due());
  CHECK_FALSE(acks.up_to_date());
  CHECK(acks.make_due());
  CHECK(acks.due());
  CHECK(acks.take(7, 0) == AckFrame{3, 7});
  CHECK_FALSE(acks.due());
  CHECK_FALSE(acks.worth_sending());
  CHECK(acks.up_to_date());
}

TEST_CASE("a message that its sender keeps leased is acknowledged when it is whole") {
  AckState acks;
  acks.on_received(chunk(kSmallValues, 0, kSmallValues + 1));
  CHECK_FALSE(acks.due());
  acks.on_received(chunk(1, kSmallValues, kSmallValues + 1));
  CHECK(acks.due());
}

TEST_CASE("a long message is acknowledged every 2 MiB") {
  AckState acks;
  constexpr std::uint64_t kValues = AckState::kDueBytes / sizeof(float) / 2;
  acks.on_received(chunk(kValues, 0, 9 * kValues));
  CHECK_FALSE(acks.due());
  acks.on_received(chunk(kValues, kValues, 9 * kValues));
  CHECK(acks.due());
  CHECK(acks.take(0, 0).received == 2);
  acks.on_received(chunk(kValues, 2 * kValues, 9 * kValues));
  CHECK_FALSE(acks.due());
}

TEST_CASE("a goodbye is acknowledged at once") {
  AckState acks;
  acks.on_received(frame_header(0, 1, GoodbyeFrame{}));
  CHECK(acks.due());
}

TEST_CASE("an acknowledgement that was sent over a broken connection counts as not sent") {
  AckState acks;
  acks.on_received(frame_header(0, 1, RunningFrame{}));
  CHECK(acks.take(0, 0).received == 1);
  CHECK(acks.up_to_date());
  acks.on_detach();
  CHECK_FALSE(acks.up_to_date());
  CHECK(acks.received() == 1);
}

TEST_CASE("a resumed connection begins with an acknowledgement in each direction") {
  AckState acks;
  CHECK_FALSE(acks.resuming());
  acks.on_resume();
  CHECK(acks.due());  // also if no frame was received
  CHECK(acks.resuming());
  acks.defer({5, 6});
  CHECK(acks.resuming());
  CHECK(acks.take_deferred() == AckFrame{5, 6});
  CHECK_FALSE(acks.take_deferred().has_value());
  CHECK(acks.finish_resuming());
  CHECK_FALSE(acks.finish_resuming());

  acks.on_resume();
  acks.defer({5, 6});
  acks.on_detach();
  CHECK_FALSE(acks.resuming());
  CHECK_FALSE(acks.take_deferred().has_value());
}

TEST_CASE("a release is acknowledged with the next frame, or by the next tick") {
  AckState acks;
  acks.on_received(frame_header(0, 1, LentFrame{{0, 0, 0, 2 * kSmallValues}}));
  acks.on_received(frame_header(0, 1, LentFrame{{0, 0, kSmallValues, 2 * kSmallValues}}));
  CHECK_FALSE(acks.due());  // the sender keeps what it lent all the same
  CHECK_FALSE(acks.worth_sending());
  CHECK(acks.take(0, 0) == AckFrame{2, 0, 0});
  CHECK(acks.up_to_date());
  acks.on_released();
  CHECK_FALSE(acks.due());
  CHECK(acks.worth_sending());
  CHECK_FALSE(acks.up_to_date());
  CHECK(acks.make_due());
  CHECK(acks.take(0, 2) == AckFrame{2, 0, 2});
  CHECK_FALSE(acks.worth_sending());
  CHECK(acks.up_to_date());
}
