#include "simulator/scenario/fault.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "base/tokens.hpp"

namespace gossamer::simulator {
namespace {

constexpr double kForever = 1e6;  // seconds

Error unreadable(std::string message) { return {ErrorKind::invalid, std::move(message)}; }

}  // namespace

const std::vector<FaultSpec>& fault_specs() {
  static const std::vector<FaultSpec> specs{
      {FaultKind::crash, "crash", true, false, false, false},
      {FaultKind::vanish, "vanish", true, false, false, false},
      {FaultKind::restart, "restart", true, true, false, false},
      {FaultKind::reboot, "reboot", true, true, false, false},
      {FaultKind::pause, "pause", true, true, false, false},
      {FaultKind::slow, "slow", false, false, false, true},
      {FaultKind::delay, "delay", true, true, true, true},
      {FaultKind::stall, "stall", true, true, true, false},
      {FaultKind::clog, "clog", true, true, true, true},
      {FaultKind::partition, "partition", true, true, false, false},
      {FaultKind::one_way_partition, "one_way_partition", true, true, false, false},
      {FaultKind::cut, "cut", true, false, true, false},
      {FaultKind::corrupt, "corrupt", true, false, true, false},
      {FaultKind::close, "close", true, false, true, false},
      {FaultKind::slow_reader, "slow_reader", true, true, false, true},
      {FaultKind::not_finite, "not_finite", true, false, true, false},
      {FaultKind::clock, "clock", true, false, false, true},
      {FaultKind::failed_write, "failed_write", true, false, false, true},
      {FaultKind::torn_write, "torn_write", true, false, false, true},
      {FaultKind::killed_write, "killed_write", true, true, false, true},
      {FaultKind::interrupt, "interrupt", true, true, false, false},
      {FaultKind::interrupt_all, "interrupt_all", true, true, false, false},
      {FaultKind::arrive, "arrive", true, false, false, false},
      {FaultKind::leave, "leave", true, false, false, false},
  };
  return specs;
}

const FaultSpec& spec_of(FaultKind kind) {
  return *std::ranges::find(fault_specs(), kind, &FaultSpec::kind);
}

std::string to_string(const Fault& fault) {
  const FaultSpec& spec = spec_of(fault.kind);
  std::string text = fmt::format("{} process={}", spec.name, fault.process);
  if (spec.other) text += fmt::format(" other={}", fault.other);
  if (spec.at) text += fmt::format(" at={}", fault.at);
  if (spec.lasts) text += fmt::format(" lasts={}", fault.lasts);
  if (spec.amount) text += fmt::format(" amount={}", fault.amount);
  return text;
}

Result<Fault> parse_fault(const std::string& text) {
  const auto words = tokens_of(text);
  std::vector<std::string> names;
  for (const FaultSpec& spec : fault_specs()) names.push_back(spec.name);
  const auto spec = words.empty()
                        ? fault_specs().end()
                        : std::ranges::find(fault_specs(), words.front(), &FaultSpec::name);
  if (spec == fault_specs().end())
    return unreadable(fmt::format("faults: '{}' does not begin with a kind of fault: {}", text,
                                  fmt::join(names, ", ")));
  Fault fault{.kind = spec->kind};
  bool process = false, other = !spec->other, at = !spec->at, lasts = !spec->lasts,
       amount = !spec->amount;
  for (const std::string_view word : std::span(words).subspan(1)) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view key = word.substr(0, equals),
                           value = word.substr(std::min(equals + 1, word.size()));
    const auto whole = number_in<int>(value);
    const auto real = number_in<double>(value);
    const auto number = [&](bool wanted, bool& given, double& into) {
      if (!wanted || given || !real || !(*real >= 0 && *real <= kForever)) return false;
      into = *real;
      return given = true;
    };
    const auto id = [&](bool wanted, bool& given, int& into) {
      if (!wanted || given || !whole || *whole < 0) return false;
      into = *whole;
      return given = true;
    };
    const bool understood = key == "process"  ? id(true, process, fault.process)
                            : key == "other"  ? id(spec->other, other, fault.other)
                            : key == "at"     ? number(spec->at, at, fault.at)
                            : key == "lasts"  ? number(spec->lasts, lasts, fault.lasts)
                            : key == "amount" ? number(spec->amount, amount, fault.amount)
                                              : false;
    if (!understood)
      return unreadable(fmt::format("faults: '{}': '{}' is not understood", text, word));
  }
  if (!process || !other || !at || !lasts || !amount)
    return unreadable(fmt::format("faults: '{}' lacks a field of {}", text, spec->name));
  return fault;
}

bool is_interrupt(FaultKind kind) {
  return kind == FaultKind::interrupt || kind == FaultKind::interrupt_all;
}

bool is_of_open_run(FaultKind kind) {
  return kind == FaultKind::arrive || kind == FaultKind::leave;
}

bool needs_checkpoints(FaultKind kind) {
  using enum FaultKind;
  return is_interrupt(kind) || kind == restart || kind == reboot || kind == failed_write ||
         kind == torn_write || kind == killed_write;
}

}  // namespace gossamer::simulator
