#include "tests/fuzz/mutator.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace gossamer::fuzz {
namespace {

/// Numbers at which programs err: ends of ranges, and the characters of our texts.
constexpr std::array<std::uint64_t, 16> kNumbers{0,
                                                 1,
                                                 0x7F,
                                                 0x80,
                                                 0xFF,
                                                 0x7FFF,
                                                 0xFFFF,
                                                 0x7FFFFFFF,
                                                 0xFFFFFFFF,
                                                 0x80000000,
                                                 0x7FFFFFFFFFFFFFFF,
                                                 0x8000000000000000,
                                                 0xFFFFFFFFFFFFFFFF,
                                                 256,
                                                 65536,
                                                 1ULL << 40};
constexpr char kCharacters[] = "{}[]\",:.-+eE0179 \n\t<>/=&;#'\\nul";

std::size_t place(const Bytes& input, RandomStream& random) {
  return random.below(static_cast<std::uint32_t>(input.size() + 1));
}

void change(Bytes& input, const std::vector<Bytes>& corpus, RandomStream& random) {
  const std::size_t at = place(input, random);
  const std::size_t left = input.size() - at;
  const std::size_t length = std::min<std::size_t>(left, 1 + random.below(16));
  const auto position = input.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random.below(8)) {
    case 0:
      if (left > 0) input[at] ^= std::byte{1} << random.below(8);
      break;
    case 1:
      if (left > 0) input[at] = static_cast<std::byte>(random.below(256));
      break;
    case 2: {
      const std::uint64_t number = kNumbers[random.below(kNumbers.size())];
      const std::size_t bytes = std::min<std::size_t>(left, std::size_t{1} << random.below(4));
      if (bytes > 0) std::memcpy(input.data() + at, &number, bytes);
      break;
    }
    case 3: input.erase(position, position + static_cast<std::ptrdiff_t>(length)); break;
    case 4: {
      const Bytes copy(position, position + static_cast<std::ptrdiff_t>(length));
      for (std::uint32_t times = 1 + random.below(8); times > 0; --times)
        input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), copy.begin(), copy.end());
      break;
    }
    case 5:
      input.insert(position,
                   static_cast<std::byte>(kCharacters[random.below(sizeof(kCharacters) - 1)]));
      break;
    case 6: {
      const Bytes& other = corpus[random.below(static_cast<std::uint32_t>(corpus.size()))];
      const std::size_t from = place(other, random);
      const std::size_t count = std::min<std::size_t>(other.size() - from, 1 + random.below(256));
      input.insert(position, other.begin() + static_cast<std::ptrdiff_t>(from),
                   other.begin() + static_cast<std::ptrdiff_t>(from + count));
      break;
    }
    default: input.resize(at);
  }
}

}  // namespace

Bytes mutated(const std::vector<Bytes>& corpus, RandomStream& random) {
  Bytes input = corpus[random.below(static_cast<std::uint32_t>(corpus.size()))];
  for (std::uint32_t changes = 1 + random.below(6); changes > 0; --changes)
    change(input, corpus, random);
  input.resize(std::min(input.size(), kMostBytes));
  return input;
}

}  // namespace gossamer::fuzz
