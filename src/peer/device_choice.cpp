#include "peer/device_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <thread>

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

}  // namespace

Status check_device_name(const std::string& name) {
  if (name == "auto" || name == "cpu" || name == "cuda" || card_number(name)) return {};
  return invalid(fmt::format("local.device: '{}' is not one of auto, cpu, cuda, cuda:0, cuda:1, …", name));
}

Result<DeviceChoice> choose_device(const LocalOptions& local, int process) {
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
      return invalid(fmt::format("local.device: '{}' was asked for, but {}; use cpu, or see gossamer doctor", local.device,
                                 reason));
    choice.device = cpu(local);
    choice.note = fmt::format("local.device = auto: {}; using the CPU", reason);
    return choice;
  }
  const int card = card_number(local.device).value_or(process % cards);
  if (card >= cards)
    return invalid(fmt::format("local.device: '{}' was asked for, but there {} here ({})", local.device,
                               cards == 1 ? "is one card" : fmt::format("are {} cards", cards),
                               cards == 1 ? "cuda:0" : fmt::format("cuda:0 to cuda:{}", cards - 1)));
  GOSSAMER_TRY(choice.device, gpu::cuda::make_cuda_device({.card = card}));
  return choice;
}

}  // namespace gossamer::peer
