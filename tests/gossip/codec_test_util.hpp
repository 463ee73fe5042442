// A second implementation of each codec: plainly, on whole vectors, from the papers'
// formulas.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "gpu/fault_word.hpp"
#include "tests/gossip/test_network.hpp"

namespace gossamer::gossip::testing {

struct CodecCase {
  std::string kind;
  double fraction = 0;  ///< of topk and randk
  ParameterValues values() const {
    return fraction > 0 ? ParameterValues{{"fraction", fraction}} : ParameterValues{};
  }
};
inline const std::vector<CodecCase>& codec_cases() {
  static const std::vector<CodecCase> all{
      {"none"},      {"bf16"},      {"int8"},        {"sign"},       {"topk", 0.01},
      {"topk", 0.1}, {"topk", 1.0}, {"randk", 0.01}, {"randk", 0.1}, {"randk", 1.0}};
  return all;
}

inline std::size_t kept_values(double fraction, std::size_t d) {
  return std::max<std::size_t>(
      1, static_cast<std::size_t>(std::floor(fraction * static_cast<double>(d) + 0.5)));
}

/// 4-byte words on the wire.
inline std::size_t expected_words(const CodecCase& codec, std::size_t d) {
  const auto whole = [](std::size_t value, std::size_t by) { return (value + by - 1) / by; };
  if (codec.kind == "bf16") return whole(d, 2);
  if (codec.kind == "int8") return whole(d, 256) + whole(d, 4);
  if (codec.kind == "sign") return whole(d, 1024) + whole(d, 32);
  if (codec.kind == "topk") return 2 * kept_values(codec.fraction, d);
  if (codec.kind == "randk") return kept_values(codec.fraction, d);
  return d;
}

/// C(x) of a sender in a round.
inline std::vector<float> compressed(const CodecCase& codec, const std::vector<float>& x, int peer,
                                     Round round) {
  const std::size_t d = x.size(), k = codec.fraction > 0 ? kept_values(codec.fraction, d) : 0;
  std::vector<float> result(d);
  if (codec.kind == "none") return x;
  if (codec.kind == "bf16")
    for (std::size_t i = 0; i < d;
         ++i) {  // to a multiple of the last place that 8 bits of mantissa have
      int exponent = 0;
      const double mantissa = std::frexp(static_cast<double>(x[i]), &exponent);
      result[i] =
          static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8));
    }
  if (codec.kind == "int8")
    for (std::size_t i = 0; i < d; ++i) {
      const std::size_t begin = i / 256 * 256, end = std::min(d, begin + 256);
      float most = 0;
      for (std::size_t j = begin; j < end; ++j) most = std::max(most, std::fabs(x[j]));
      const float scale = most / 127.0F;
      result[i] = scale > 0 ? scale * std::nearbyint(x[i] / scale) : 0.0F;
    }
  if (codec.kind == "sign")
    for (std::size_t begin = 0; begin < d; begin += 1024) {
      const std::size_t end = std::min(d, begin + 1024);
      long double sum = 0;
      for (std::size_t j = begin; j < end; ++j) sum += std::fabs(static_cast<long double>(x[j]));
      const auto scale =
          static_cast<float>(static_cast<double>(sum) / static_cast<double>(end - begin));
      for (std::size_t j = begin; j < end; ++j) result[j] = x[j] < 0 ? -scale : scale;
    }
  if (codec.kind == "topk") {
    std::vector<std::size_t> order(d);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::fabs(x[a]) > std::fabs(x[b]);
    });
    for (std::size_t i = 0; i < k; ++i) result[order[i]] = x[order[i]];
  }
  if (codec.kind == "randk") {
    RandomStream random(Network::kCodecSeed, static_cast<std::uint32_t>(peer), Purpose::codec,
                        round);
    for (std::size_t i = 0; i < k; ++i) {
      const std::size_t begin = i * d / k, size = (i + 1) * d / k - begin;
      const std::size_t index = begin + (std::uint64_t{random.next_u32()} * size >> 32);
      result[index] = x[index];
    }
  }
  return result;
}

}  // namespace gossamer::gossip::testing
