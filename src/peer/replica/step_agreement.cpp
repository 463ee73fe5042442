#include "peer/replica/step_agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace gossamer::peer {
namespace {

constexpr int kFirst = 0;  ///< the part whose worker proposes
constexpr std::uint64_t kMostSteps = (std::uint64_t{1} << 48) - 1;
/// A margin that no honest run needs: 2^30 rounds.
constexpr std::uint64_t kLargestMargin = std::uint64_t{1} << 30;

Error impossible(int from, const std::string& what) {
  return {ErrorKind::lost_peer,
          fmt::format("worker {} of this replica sent what it cannot have meant: {}", from, what)};
}

}  // namespace

StepAgreement::StepAgreement(int part, int workers)
    : part_(part),
      joins_(static_cast<std::size_t>(workers)),
      reached_(static_cast<std::size_t>(workers)),
      answered_(static_cast<std::size_t>(workers)) {}

void StepAgreement::begin(bool joins) {
  joins_[static_cast<std::size_t>(part_)] = joins;
  for (int part = 0; part < static_cast<int>(joins_.size()); ++part)
    if (part != part_) send(part, Kind::begun, joins ? 1 : 0);
}

bool StepAgreement::all_begun() const {
  return std::ranges::all_of(joins_, [](const auto& joins) { return joins.has_value(); });
}

bool StepAgreement::anyone_joins() const {
  return std::ranges::any_of(joins_, [](const auto& joins) { return joins.value_or(false); });
}

StepAgreement::Answer StepAgreement::about_evaluation() const {
  if (!all_begun()) return Answer::wait;
  return trains_ || !anyone_joins() ? Answer::train : Answer::leave_out;
}

StepAgreement::Answer StepAgreement::about(std::uint64_t step, std::uint64_t steps) {
  if (!all_begun()) return Answer::wait;
  if (!anyone_joins()) trains_ = true;
  if (trains_) return Answer::train;
  steps_ = std::max<std::uint64_t>(steps, 1);
  if (accepted_ && step >= *accepted_) {
    trains_ = agreed_.has_value();
    return trains_ ? Answer::train : Answer::wait;
  }
  const bool is_first = !left_out_;
  left_out_ = step;
  if (is_first) send(kFirst, Kind::reached, step);
  return Answer::leave_out;
}

void StepAgreement::send(int to, Kind kind, std::uint64_t number) {
  if (to != part_) return messages_.push_back({to, {kind, number}});
  static_cast<void>(receive(part_, {kind, number}));  // worker 0 is honest with itself
}

void StepAgreement::send_all(Kind kind, std::uint64_t number) {
  for (int part = 0; part < static_cast<int>(joins_.size()); ++part) send(part, kind, number);
}

std::vector<std::pair<int, StepAgreement::Message>> StepAgreement::take_messages() {
  return std::exchange(messages_, {});
}

Status StepAgreement::receive(int from, const Message& message) {
  const auto [kind, number] = message;
  if (number > kMostSteps) return impossible(from, "a step beyond any run");
  if (kind == Kind::begun) {
    std::optional<bool>& joins = joins_[static_cast<std::size_t>(from)];
    if (from == part_ || joins || number > 1) return impossible(from, "its begin");
    joins = number == 1;
    return {};
  }
  if (kind == Kind::propose || kind == Kind::agree) {
    if (from != kFirst || agreed_) return impossible(from, "a step for all");
    if (kind == Kind::agree) {
      if (accepted_ != number) return impossible(from, "a step that not all have accepted");
      agreed_ = number;
    } else if (left_out_ && *left_out_ >= number) {
      accepted_.reset();
      send(kFirst, Kind::refuse, *left_out_);
    } else {
      accepted_ = number;
      send(kFirst, Kind::accept, number);
    }
    return {};
  }
  if (part_ != kFirst) return impossible(from, "what is for worker 0");
  return kind == Kind::reached ? on_reached(from, number) : on_answer(from, message);
}

Status StepAgreement::on_reached(int from, std::uint64_t step) {
  std::optional<std::uint64_t>& known = reached_[static_cast<std::size_t>(from)];
  if (known) return impossible(from, "its first step, for the second time");
  known = step;
  if (std::ranges::all_of(reached_, [](const auto& each) { return each.has_value(); })) propose();
  return {};
}

void StepAgreement::propose() {
  const std::uint64_t last = std::ranges::max(reached_).value();
  proposed_ = std::min(last + margin_ * steps_, kMostSteps);
  margin_ = std::min(2 * margin_, kLargestMargin);
  answered_.assign(answered_.size(), false);
  refused_ = false;
  send_all(Kind::propose, *proposed_);
}

Status StepAgreement::on_answer(int from, const Message& message) {
  const auto part = static_cast<std::size_t>(from);
  const bool accepts = message.kind == Kind::accept;
  if (!proposed_ || answered_[part] || message.number < *proposed_ ||
      (accepts && message.number > *proposed_))
    return impossible(from, "an answer without a question");
  answered_[part] = true;
  if (!accepts) {
    refused_ = true;
    reached_[part] = message.number;
  }
  if (!std::ranges::all_of(answered_, [](bool each) { return each; })) return {};
  if (refused_) propose();
  else send_all(Kind::agree, *proposed_);
  return {};
}

std::array<float, StepAgreement::kValues> StepAgreement::values_of(const Message& message) {
  std::array<float, kValues> values{static_cast<float>(message.kind)};
  for (std::size_t k = 1; k < kValues; ++k)
    values.at(k) = static_cast<float>(message.number >> (16 * (k - 1)) & 0xFFFFU);
  return values;
}

Result<StepAgreement::Message> StepAgreement::message_of(std::span<const float> values) {
  const Error none{ErrorKind::lost_peer, "a worker of this replica sent a step that is none"};
  Message message;
  if (values.size() != kValues) return none;
  for (std::size_t k = kValues; k-- > 0;) {
    const float value = values[k], most = k == 0 ? static_cast<float>(Kind::agree) : 65535;
    if (!(value >= 0 && value <= most) || value != std::floor(value)) return none;
    const auto digits = static_cast<std::uint64_t>(value);
    if (k == 0) message.kind = static_cast<Kind>(digits);
    else message.number = message.number << 16 | digits;
  }
  return message;
}

}  // namespace gossamer::peer
