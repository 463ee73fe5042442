#include "net/session/frame_transport.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/check.hpp"

namespace gossamer::net {

using namespace std::chrono_literals;

namespace {

// The longest time that the owner of a row waits to write while the row is kept for an
// acknowledgement alone.
constexpr gossip::Time kWatchLeases = 2ms;

FrameHeader make_header(const SessionOptions& options, const FrameBody& body) {
  return {options.incoming.run, options.local(), options.remote(), 0, body};
}

}  // namespace

FrameTransport::FrameTransport(gossip::Scheduler& scheduler, const SessionOptions& options,
                               SocketTraffic& traffic, FailureDetector& detector,
                               TransportUser& user)
    : scheduler_(scheduler),
      options_(options),
      traffic_(traffic),
      detector_(detector),
      user_(user),
      lending_(*options.lending),
      // A lease has ended, and with it perhaps the wait for a buffer. The owner of the lease may be
      // in the middle of a change, so reading goes on from the scheduler's loop.
      pool_(
          static_cast<std::size_t>(options.window),
          [this] {
            if (attached() && !reading_ && !handling_frames_) read_later_.call_after(0ns);
          },
          options.chunk_memory),
      reader_(options.incoming, pool_),
      read_later_(scheduler, [this] { read(); }),
      queue_(*options.hashes, lending_.lent()),
      last_write_(scheduler.now()),
      lease_check_(scheduler, [this] {
        if (queue_.copy_for_writers()) watch_leases();
      }) {
  reader_.hold_data(options.hold_data);
  lending_.set_hooks([this] { acks_.on_released(); },
                     [this] {
                       if (acks_.worth_sending() && acks_.make_due()) write();
                     });
}

FrameTransport::~FrameTransport() {
  GOSSAMER_CHECK(!handling_frames_, "a session is destroyed while it handles a frame");
  close();
}

// Connections.

void FrameTransport::attach(std::unique_ptr<Socket> socket, bool resumes) {
  GOSSAMER_CHECK(mode_ != Mode::closed && !handling_frames_,
                 "a connection for a session that is closed or handles a frame");
  if (attached()) detach();
  socket_ = std::move(socket);
  socket_->set_user(this);
  last_write_ = scheduler_.now();
  detector_.on_attach(scheduler_.now());
  if (resumes) {
    // The hello of the other end may have come before this end knew that the connection is gone.
    if (!queue_.is_interrupted()) queue_.interrupt();
    acks_.on_resume();
  }
  read();
  write();
}

void FrameTransport::detach() {
  socket_.reset();
  reading_ = false;
  reader_.restart();
  queue_.interrupt();
  write_error_.clear();
  acks_.on_detach();
}

void FrameTransport::disconnect() {
  detach();
  if (mode_ == Mode::open) watch_leases();
}

void FrameTransport::close() {
  if (std::exchange(mode_, Mode::closed) == Mode::closed) return;
  read_later_.cancel();
  lease_check_.cancel();
  lending_.close();
  socket_.reset();
  queue_.drop();
}

void FrameTransport::abandon() {
  mode_ = Mode::abandoned;
  queue_.drop();
}

void FrameTransport::close_with(const Error* reason) {
  mode_ = Mode::closing;
  reader_.drop_data();
  // A frame that the system has a part of must go out whole, or the bytes behind it cannot be read.
  // The frames that a write under way may read stay too.
  queue_.drop(true);
  if (reason != nullptr)
    send(AbortFrame{reason->kind}, {}, reason->message.substr(0, kMaxAbortBytes));
  else if (!queue_.writing()) socket_->finish_sending();
  read();
}

// Sending.

void FrameTransport::send(const FrameBody& body, gossip::Chunk chunk, std::string text) {
  if (abandoned()) return;
  FrameHeader header = make_header(options_, body);
  header.payload_bytes = static_cast<std::uint32_t>(
      header.data() != nullptr ? chunk.values.size_bytes() : text.size());
  queue_.push(header, std::move(chunk), std::move(text));
  write();
  if (queue_.is_interrupted()) watch_leases();
}

/// Writes what is queued, with an acknowledgement before it if one is due or worthwhile.
void FrameTransport::write() {
  if (!writable() || queue_.writing()) return;
  if (mode_ != Mode::closing && (acks_.due() || (acks_.worth_sending() && !queue_.empty())))
    queue_.push_first(
        make_header(options_, acks_.take(queue_.pushed(), lending_.released(acks_.received()))));
  if (const auto areas = queue_.gather(); !areas.empty()) socket_->write(areas);
}

void FrameTransport::write_done(const Transfer& transfer) {
  if (transfer.error) {
    write_error_ = reason(transfer);
    queue_.interrupt();
    if (mode_ != Mode::open) return queue_.drop();
    watch_leases();
    // Bytes that the other end sent before it was gone may lie unread: reading goes on while
    // another connection is made.
    return options_.reconnect(0ns);
  }
  last_write_ = scheduler_.now();
  traffic_.bytes_sent += transfer.bytes;
  queue_.written(transfer.bytes);
  if (queue_.between_frames())
    if (const auto ack = acks_.take_deferred()) on_ack(*ack);
  write();
  watch_leases();
  if (mode_ == Mode::closing && attached() && !queue_.writing()) socket_->finish_sending();
}

/// Runs as long as something is leased that waits only for an acknowledgement.
void FrameTransport::watch_leases() {
  if (mode_ != Mode::closed && queue_.has_leases()) lease_check_.call_after(kWatchLeases);
}

void FrameTransport::tick(gossip::Time now, bool heartbeats) {
  if (!attached() || queue_.writing()) return;
  if (!acks_.make_due() && heartbeats && now - last_write_ >= options_.heartbeat)
    queue_.push_first(make_header(options_, HeartbeatFrame{}));
  write();
}

// Receiving.

void FrameTransport::read() {
  if (!attached() || reading_ || handling_frames_) return;
  if (!handle_frames()) return;
  if (acks_.due()) write();
  const auto areas = reader_.areas();
  if (areas.empty()) return;  // no buffer is free: reading goes on when a lease ends
  reading_ = true;
  detector_.on_read_started();
  socket_->read(areas);
}

void FrameTransport::read_done(const Transfer& transfer) {
  reading_ = false;
  if (transfer.end || transfer.error) {
    const bool torn = transfer.end && reader_.inside_frame();
    const std::string why = write_error_.empty() ? reason(transfer) : write_error_;
    return user_.on_connection_end(torn ? "the connection was closed in the middle of a frame"
                                        : why);
  }
  detector_.on_bytes();
  traffic_.bytes_received += transfer.bytes;
  reader_.filled(transfer.bytes);
  read();
}

/// Hands the frames that are whole to the user. False if that ended the connection, or if the rest
/// is for another turn of the loop.
bool FrameTransport::handle_frames() {
  std::optional<std::string> damage;
  {
    struct Handling {
      bool& flag;
      ~Handling() { flag = false; }
    };
    const Handling handling{handling_frames_ = true};
    const std::uint64_t lent_before = traffic_.lent_bytes_received;
    while (mode_ != Mode::closed) {
      // Their values are checked here, though no bytes of them were read.
      if (traffic_.lent_bytes_received - lent_before >= kMaxChunkBytes) {
        read_later_.call_after(0ns);
        return false;
      }
      auto frame = reader_.next();
      if (!frame.ok()) damage = frame.error().message;
      if (damage || !frame->has_value()) break;
      user_.on_frame(std::move(**frame));
    }
  }
  if (damage) user_.on_damaged_frame(*damage);
  return !damage && mode_ != Mode::closed;
}

void FrameTransport::count(const FrameHeader& header) {
  acks_.on_received(header);
  detector_.on_progress();
}

bool FrameTransport::on_ack(const AckFrame& ack) {
  if (mode_ != Mode::open) return true;
  if (acks_.resuming() && !queue_.between_frames()) {
    acks_.defer(ack);
    return true;
  }
  const std::uint64_t before = queue_.acked();
  const bool resumes = acks_.finish_resuming();
  if (!(resumes ? queue_.resume(ack.received) : queue_.on_ack(ack.received))) {
    user_.on_protocol_violation(
        fmt::format("{} broke the protocol: it acknowledged {} frames, of {} that were sent and {} "
                    "that it had acknowledged before",
                    options_.name, ack.received, queue_.pushed(), before));
    return true;
  }
  LentChunks& lent = lending_.lent();
  const std::uint64_t released = lent.released();
  if (ack.released > ack.received || !lent.release(ack.released)) {
    user_.on_protocol_violation(
        fmt::format("{} broke the protocol: it released {} frames, of {} that it has acknowledged "
                    "and {} that it had released before",
                    options_.name, ack.released, ack.received, released));
    return true;
  }
  const bool nothing_due = resumes && queue_.fully_acked() && ack.sent == acks_.received();
  if (ack.received > before || nothing_due) detector_.on_progress();
  if (resumes) write();
  return resumes || ack.received > before || ack.released > released;
}

void FrameTransport::set_data_mode(DataMode mode) {
  if (mode == DataMode::drop) reader_.drop_data();
  else reader_.hold_data(mode == DataMode::hold);
  read();
}

}  // namespace gossamer::net
