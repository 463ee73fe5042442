// What CUDA there is: driver, cards, cuBLAS. And why none of it can be used, in words.
#include <fmt/format.h>

#include <algorithm>

#include "gpu/cuda/blas.hpp"
#include "gpu/cuda/runtime.hpp"
#include "gpu/cuda/survey.hpp"

namespace gossamer::gpu::cuda {
namespace {

/// The least compute capability that the kernels are compiled for.
constexpr int kLeastMajor = 8;

std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

/// Why there are no cards; empty when there are `count`.
std::string count_cards(const Survey& survey, int& count) {
  count = 0;
  if (survey.driver_version == 0) return "no NVIDIA driver on this machine";
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return "";
  static_cast<void>(cudaGetLastError());
  count = 0;
  if (error == cudaErrorInsufficientDriver)
    return fmt::format("the NVIDIA driver is too old: it supports CUDA {}, this program needs {}",
                       version(survey.driver_version), version(survey.runtime_version));
  if (error == cudaSuccess || error == cudaErrorNoDevice)
    return "no NVIDIA card on this machine, or none visible";
  return fmt::format("the cards cannot be asked: {} ({})", cudaGetErrorString(error),
                     cudaGetErrorName(error));
}

/// The other ones of `count` cards whose memory kernels of `card` can touch.
std::vector<int> reached_from(int card, int count) {
  std::vector<int> others;
  for (int other = 0; other < count; ++other) {
    int can = 0;
    if (other == card) continue;
    if (cudaDeviceCanAccessPeer(&can, card, other) != cudaSuccess)
      static_cast<void>(cudaGetLastError());
    else if (can != 0) others.push_back(other);
  }
  return others;
}

CardInfo card_info(int card) {
  CardInfo info;
  info.index = card;
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, card) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return info;
  }
  info.name = properties.name;
  info.compute_major = properties.major;
  info.compute_minor = properties.minor;
  info.memory_total = properties.totalGlobalMem;
  info.multiprocessors = properties.multiProcessorCount;
  info.usable = properties.major >= kLeastMajor;
  return info;
}

/// Starts CUDA on the card, which takes some of its memory.
void ask_for_memory(CardInfo& info) {
  int before = 0;
  const bool known = cudaGetDevice(&before) == cudaSuccess;
  if (cudaSetDevice(info.index) != cudaSuccess ||
      cudaMemGetInfo(&info.memory_free, &info.memory_total) != cudaSuccess)
    static_cast<void>(cudaGetLastError());
  if (known) static_cast<void>(cudaSetDevice(before));
}

}  // namespace

Survey survey_cards() {
  Survey survey;
  survey.built = true;
  static_cast<void>(cudaDriverGetVersion(&survey.driver_version));
  static_cast<void>(cudaRuntimeGetVersion(&survey.runtime_version));
  int count = 0;
  survey.problem = count_cards(survey, count);
  bool usable = false;
  for (int card = 0; card < count; ++card) {
    survey.cards.push_back(card_info(card));
    survey.cards.back().reaches = reached_from(card, count);
    usable = usable || survey.cards.back().usable;
  }
  if (count > 0 && !usable)
    survey.problem = fmt::format(
        "{} has compute capability {}.{}, this program needs at least {}.0", survey.cards[0].name,
        survey.cards[0].compute_major, survey.cards[0].compute_minor, kLeastMajor);
  const auto blas = load_blas();
  if (blas.ok()) survey.blas = blas->library;
  else if (survey.problem.empty()) survey.problem = blas.error().message;
  return survey;
}

Survey survey() {
  Survey survey = survey_cards();
  for (CardInfo& card : survey.cards) ask_for_memory(card);
  return survey;
}

Status check_card(const Survey& survey, int card) {
  if (!survey.problem.empty()) return Error{ErrorKind::invalid, survey.problem};
  const int count = static_cast<int>(survey.cards.size());
  if (card < 0 || card >= count)
    return Error{ErrorKind::invalid,
                 fmt::format("there is no card {}: this machine has {}", card,
                             count == 1 ? "card 0 only" : fmt::format("cards 0 to {}", count - 1))};
  const CardInfo& info = survey.cards[static_cast<std::size_t>(card)];
  if (!info.usable)
    return Error{
        ErrorKind::invalid,
        fmt::format("card {} ({}) has compute capability {}.{}, this program needs at least {}.0",
                    card, info.name, info.compute_major, info.compute_minor, kLeastMajor)};
  return {};
}

Status check_reach(const std::vector<CardInfo>& cards) {
  for (const CardInfo& card : cards)
    for (const CardInfo& other : cards)
      if (&other != &card && std::ranges::find(card.reaches, other.index) == card.reaches.end())
        return Error{ErrorKind::invalid,
                     fmt::format("cuda:{} cannot reach the memory of cuda:{} (no peer access "
                                 "between them), so one process "
                                 "cannot use both: start one for each",
                                 card.index, other.index)};
  return {};
}

}  // namespace gossamer::gpu::cuda
