#include "peer/runtime/device_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <thread>

#include "gpu/card_names.hpp"
#include "gpu/cpu_device.hpp"
#include "gpu/cuda/cuda.hpp"

namespace gossamer::peer {
namespace {

constexpr std::string_view kNumbered = "cuda:";

Error invalid(std::string message) { return {ErrorKind::invalid, std::move(message)}; }

/// The N of "cuda:N".
std::optional<int> card_number(std::string_view name) {
  if (!name.starts_with(kNumbered)) return std::nullopt;
  name.remove_prefix(kNumbered.size());
  int number = 0;
  const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (fault != std::errc() || end != name.data() + name.size() || number < 0) return std::nullopt;
  return number;
}

std::unique_ptr<gpu::Device> cpu(const LocalOptions& local) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::make_unique<gpu::CpuDevice>(local.threads > 0 ? local.threads : cores);
}

/// The cards that kernels are compiled for.
std::vector<int> usable(const gpu::cuda::Survey& survey) {
  std::vector<int> cards;
  for (const gpu::cuda::CardInfo& card : survey.cards)
    if (card.usable) cards.push_back(card.index);
  return cards;
}

bool reach_each_other(const gpu::cuda::Survey& survey, const std::vector<int>& cards) {
  for (const int card : cards) {
    const std::vector<int>& reached = survey.cards[static_cast<std::size_t>(card)].reaches;
    for (const int other : cards)
      if (other != card && std::ranges::find(reached, other) == reached.end()) return false;
  }
  return true;
}

}  // namespace

Status check_device_name(const std::string& name) {
  if (name == "auto" || name == "cpu" || name == "cuda" || card_number(name)) return {};
  return invalid(
      fmt::format("local.device: '{}' is not one of auto, cpu, cuda, cuda:0, cuda:1, …", name));
}

std::vector<int> its_cards(const ProcessPlace& place, const std::vector<int>& cards) {
  const auto count = static_cast<int>(cards.size());
  if (place.processes < 1 || place.processes >= count)
    return {cards[static_cast<std::size_t>(place.process % count)]};
  const int process = place.process % place.processes;
  const int first = process * count / place.processes,
            end = (process + 1) * count / place.processes;
  const int most = place.nodes > 0 ? std::min(place.nodes, end - first) : end - first;
  return {cards.begin() + first, cards.begin() + first + most};
}

Result<DeviceChoice> choose_device(const LocalOptions& local, const ProcessPlace& place) {
  GOSSAMER_TRY_STATUS(check_device_name(local.device));
  DeviceChoice choice;
  if (local.device == "cpu") {
    choice.device = cpu(local);
    return choice;
  }
  const gpu::cuda::Survey survey = gpu::cuda::survey_cards();
  const int cards = static_cast<int>(survey.cards.size());
  if (!survey.problem.empty() || cards == 0) {
    const std::string reason = survey.problem.empty() ? "no card was found" : survey.problem;
    if (local.device != "auto")
      return invalid(
          fmt::format("local.device: '{}' was asked for, but {}; use cpu, or see gossamer doctor",
                      local.device, reason));
    choice.device = cpu(local);
    choice.note = fmt::format("local.device = auto: {}; using the CPU", reason);
    return choice;
  }
  const std::optional<int> card = card_number(local.device);
  if (card && *card >= cards)
    return invalid(
        fmt::format("local.device: '{}' was asked for, but there {} here ({})", local.device,
                    cards == 1 ? "is one card" : fmt::format("are {} cards", cards),
                    cards == 1 ? "cuda:0" : fmt::format("cuda:0 to cuda:{}", cards - 1)));
  std::vector<int> chosen = card ? std::vector{*card} : its_cards(place, usable(survey));
  if (!reach_each_other(survey, chosen)) {
    choice.note = fmt::format(
        "local.device = {}: {} do not reach each other's memory; using cuda:{} alone: start a "
        "process "
        "for each card to use them all",
        local.device, gpu::card_names(chosen), chosen.front());
    chosen.resize(1);
  }
  GOSSAMER_TRY(choice.device, gpu::cuda::make_cuda_device({.cards = chosen}));
  return choice;
}

}  // namespace gossamer::peer
