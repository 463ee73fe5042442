#include "simulator/session/trial_end.hpp"

#include <fmt/format.h>

namespace gossamer::simulator {

using namespace std::chrono_literals;

namespace {

// For which an end that has closed waits for the other end's last acknowledgement.
constexpr Time kLinger = 1s;

std::uint64_t hash_of(std::span<const float> values) { return hash64(std::as_bytes(values)); }
std::uint64_t hash_of(const std::string& text) { return hash64(std::as_bytes(std::span(text))); }

}  // namespace

TrialEnd::TrialEnd(TrialContext& context, int number, std::function<void(Time pause)> reconnect)
    : context_(context), number_(number), left_(context.options.messages) {
  closes_early_ = context.random.below(4) == 0;
  net::SessionOptions options;
  options.incoming = {7, 1 - number, number};
  options.name = fmt::format("peer {}", 1 - number);
  options.window = context.options.window;
  options.failure_timeout = kTrialFailureTimeout;
  options.heartbeat = kTrialFailureTimeout / 4;
  options.hashes = &hashes_;
  options.reconnect = std::move(reconnect);
  if (context.options.shares[static_cast<std::size_t>(number)]) {
    auto memory = SharedMemory::reserve();
    if (memory.ok()) memory_ = std::move(memory).value();
  }
  options.lending = std::make_shared<net::Lending>(context.scheduler, memory_.get());
  for (TrialRow& row : rows_) row.reserve(memory_.get(), context.options.longest_row);
  for (TrialRow& row : rows_)
    row.on_free = [this] { context_.scheduler.after(0ns, [this] { send_next(); }); };
  session_ = std::make_unique<net::Session>(context.scheduler, std::move(options), traffic_, *this);
}

void TrialEnd::begin(TrialEnd& other) {
  other_ = &other;
  if (const auto offer = session_->options().lending->offer()) session_->send(*offer);
  context_.scheduler.after(context_.draw_delay(context_.options.pause), [this] { send_next(); });
}

void TrialEnd::tick(Time now, Time counted) {
  if (session_->closed()) return;
  session_->tick(now, counted);
  if (!closing_ || session_->closed()) return;
  // The other end may be gone while its last acknowledgement was lost.
  waited_ = session_->remote().said_goodbye ? waited_ + counted : 0ns;
  if (session_->finished() || waited_ > kLinger) session_->close();
}

Status TrialEnd::on_chunk(Chunk chunk) {
  const bool note = chunk.header.control != ControlMessage::none;
  receive(
      {note ? net::FrameKind::control : net::FrameKind::data, chunk.header, hash_of(chunk.values)});
  if (note || context_.random.next_double() >= context_.options.delays) return {};
  const std::uint64_t id = ++kept_ids_;
  kept_.emplace_back(id, std::move(chunk));
  const bool lent = traffic_.lent_bytes_received > 0;
  if (!lent && kept_.size() > static_cast<std::size_t>(context_.options.window))
    context_.add_violation(fmt::format("peer {} has {} chunks, and {} buffers", number_,
                                       kept_.size(), context_.options.window));
  context_.scheduler.after(
      context_.draw_delay(20ms), [this, id, hash = hash_of(kept_.back().second.values)] {
        std::erase_if(kept_, [&](const auto& entry) {
          if (entry.first != id) return false;
          // After its goodbye an end reads nothing, and the failure of a
          // session ends its leases.
          const bool reads = !closing_ && !failed_ && !other_->failed_;
          if (reads && hash_of(entry.second.values) != hash)
            context_.add_violation(
                fmt::format("a chunk of peer {} changed while it was read", 1 - number_));
          return true;
        });
      });
  return {};
}

Status TrialEnd::on_contribution(net::Session&, std::string contribution) {
  receive({net::FrameKind::contribution, {}, hash_of(contribution)});
  return {};
}

void TrialEnd::on_goodbye(net::Session&) {
  close_soon();
  if (!closing_ && received_ != other_->sent().size())
    context_.add_violation(
        fmt::format("the close reached peer {} before all that was sent", number_));
}

/// A failure is harmless to an end that has closed and misses nothing.
void TrialEnd::on_failure(net::Session&, Error error) {
  if (closing_ && (closes_early_ || (other_->left_ == 0 && received_ == other_->sent().size())))
    return;
  failed_ = true;
  if (!context_.options.may_lose) context_.add_violation(error.message);
}

/// Closes once it has sent everything; an end that does not close early, once it has received
/// everything too.
void TrialEnd::close_if_done() {
  if (session_->finished()) session_->close();
  if (left_ > 0 || closing_ || session_->closed()) return;
  if (!closes_early_ && (other_->left_ > 0 || received_ < other_->sent().size())) return;
  closing_ = true;
  session_->say_goodbye();
}

void TrialEnd::receive(const SentFrame& came) {
  const std::vector<SentFrame>& due = other_->sent();
  ++context_.report.frames;
  context_.add_to_hash({static_cast<std::uint64_t>(number_), static_cast<std::uint64_t>(came.kind),
                        came.header.round, came.header.offset, came.hash,
                        static_cast<std::uint64_t>(context_.scheduler.now().count())});
  if (received_ == due.size())
    return context_.add_violation(fmt::format("peer {} receives what was not sent", number_));
  const SentFrame& sent = due[received_++];
  const bool same =
      came.kind == sent.kind && came.hash == sent.hash && came.header.round == sent.header.round &&
      came.header.offset == sent.header.offset && came.header.total == sent.header.total &&
      came.header.control == sent.header.control &&
      came.header.link_state == sent.header.link_state &&
      came.header.donor_steps == sent.header.donor_steps &&
      came.header.resumes_at == sent.header.resumes_at;
  if (!same)
    context_.add_violation(
        fmt::format("frame {1} at peer {0} is not what was sent: kind {2} of round {3}, and not "
                    "kind {4} of round {5}",
                    number_, received_ - 1, static_cast<int>(came.kind), came.header.round,
                    static_cast<int>(sent.kind), sent.header.round));
  close_soon();
}

/// Later, because the session is in the middle of a call.
void TrialEnd::close_soon() {
  context_.scheduler.after(0ns, [this] { close_if_done(); });
}

/// Sends one message, and the next one later.
void TrialEnd::send_next() {
  if (session_->closed() || closing_) return;
  if (left_ == 0) {
    close_if_done();
    return other_->close_if_done();
  }
  RandomStream& random = context_.random;
  const std::uint32_t kind = random.below(10);
  if (kind >= 3 && !send_row()) return;  // continues when the row is free
  if (kind == 0) {
    std::string contribution(1 + random.below(60), static_cast<char>('a' + random.below(26)));
    sent_.push_back({net::FrameKind::contribution, {}, hash_of(contribution)});
    session_->send(net::ContributionFrame{}, std::move(contribution));
  } else if (kind == 1) {
    sent_.push_back({net::FrameKind::running, {}, 0});
    session_->send(net::RunningFrame{});
  } else if (kind == 2) {
    ChunkHeader header =
        control_header(number_, 1 - number_, ControlMessage::propose_round, round_);
    header.donor_steps = random.below(1000);
    if (header.donor_steps % 2 == 1) {
      header.control = ControlMessage::catch_up;
      header.resumes_at = std::exchange(header.donor_steps, 0);
    }
    sent_.push_back({net::FrameKind::control, header, hash_of(std::span<const float>())});
    session_->send(Chunk(header, {}, {}));
  }
  --left_;
  context_.scheduler.after(context_.draw_delay(context_.options.pause), [this] { send_next(); });
}

/// False while the row is leased.
bool TrialEnd::send_row() {
  TrialRow& row = rows_[round_ % rows_.size()];
  if (!row.free()) return row.wait_until_free(), false;
  RandomStream& random = context_.random;
  const auto& options = context_.options;
  row.resize(1 + random.below(static_cast<std::uint32_t>(options.longest_row)));
  const auto first = static_cast<float>(random.below(1 << 20));
  for (std::size_t k = 0; k < row.values.size(); ++k) row.values[k] = first + static_cast<float>(k);
  const std::size_t part = options.longest_chunk / 8 + 1 +
                           random.below(static_cast<std::uint32_t>(options.longest_chunk));
  std::vector<Chunk> chunks;
  for (std::size_t offset = 0; offset < row.values.size(); offset += part) {
    const auto values = std::span<const float>(row.values)
                            .subspan(offset, std::min(part, row.values.size() - offset));
    const ChunkHeader header{number_, 1 - number_, round_, 0, offset, row.values.size()};
    sent_.push_back({net::FrameKind::data, header, hash_of(values)});
    chunks.emplace_back(header, values, row.lease());
  }
  ++round_;
  for (Chunk& chunk : chunks) session_->send(std::move(chunk));
  return true;
}

}  // namespace gossamer::simulator
