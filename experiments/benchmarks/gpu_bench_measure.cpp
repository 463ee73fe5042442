// Timing of device work, interleaved pairs, and JSON lines.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>

#include "gpu_bench.hpp"

namespace gossamer::bench {

double seconds_of(const Work& work, int repeats, const Work& finish) {
  finish();
  const auto start = Clock::now();
  for (int i = 0; i < repeats; ++i) work();
  finish();
  return Seconds(Clock::now() - start).count();
}

int repeats_for(const Work& work, double seconds, const Work& finish) {
  constexpr int kMost = 1 << 16;
  seconds_of(work, 2, finish);  // creates kernels, graphs and workspaces
  for (int repeats = 1;; repeats *= 4) {
    const double elapsed = seconds_of(work, repeats, finish);
    if (elapsed >= seconds / 4 || repeats >= kMost)
      return std::clamp(static_cast<int>(std::lround(repeats * seconds / std::max(elapsed, 1e-9))),
                        1, kMost);
  }
}

PairedRates measure_pairs(const Side& ours, const Side& theirs, const Scale& scale) {
  const int our_repeats = repeats_for(ours.work, scale.side_seconds, ours.finish);
  const int their_repeats = repeats_for(theirs.work, scale.side_seconds, theirs.finish);
  PairedRates rates;
  const auto measure = [](const Side& side, int repeats, std::vector<double>& side_rates) {
    side_rates.push_back(side.bytes * repeats / seconds_of(side.work, repeats, side.finish));
  };
  for (int pair = 0; pair < scale.pairs; ++pair) {
    if (pair % 2 == 0) measure(ours, our_repeats, rates.ours);
    measure(theirs, their_repeats, rates.theirs);
    if (pair % 2 == 1) measure(ours, our_repeats, rates.ours);
  }
  return rates;
}

std::string json_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\', quoted += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      quoted += fmt::format("\\u{:04x}", static_cast<int>(c));
    else quoted += c;
  }
  return quoted + '"';
}

Line::Line(std::string_view record) : text_("{\"record\":" + json_text(record)) {}

Line& Line::add_raw(std::string_view key, const std::string& json) {
  text_ += fmt::format(",{}:{}", json_text(key), json);
  return *this;
}
Line& Line::add(std::string_view key, std::string_view text) {
  return add_raw(key, json_text(text));
}
Line& Line::add(std::string_view key, bool truth) { return add_raw(key, truth ? "true" : "false"); }
Line& Line::add(std::string_view key, double number) {
  return add_raw(key, std::isfinite(number) ? fmt::format("{}", number) : "null");
}
Line& Line::add(std::string_view key, const std::vector<double>& numbers) {
  return add_raw(key, fmt::format("[{}]", fmt::join(numbers, ",")));
}
void Line::print() const {
  fmt::print("{}}}\n", text_);
  std::fflush(stdout);
}

Parts::Parts(std::vector<std::string> only, double deadline_seconds)
    : only_(std::move(only)),
      end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(deadline_seconds))) {}

void Parts::run(const std::string& name, const std::function<void()>& part) {
  if (!only_.empty() && std::find(only_.begin(), only_.end(), name) == only_.end()) return;
  std::string reason;
  if (Clock::now() >= end_) {
    reason = "not started before the deadline";
  } else {
    try {
      part();
      return;
    } catch (const std::bad_alloc&) {
      reason = "the device has too little memory";
    } catch (const std::exception& error) {
      reason = error.what();
    }
  }
  ok_ = false;
  Line("failed").add("id", name).add("reason", reason).print();
}

}  // namespace gossamer::bench
