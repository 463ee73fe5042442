// Every codec of the catalog: sizes, what is decoded, how much is lost, and messages that are none.
#include "gossip/part_codec.hpp"
#include "tests/gossip/codec_test_util.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

namespace {

std::unique_ptr<Codec> codec_of(const CodecCase& codec) {
  auto made = make_codec(codec.kind, codec.values(), {Network::kCodecSeed});
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message));
  return std::move(made).value();
}

std::vector<float> message_of(const Codec& codec, const std::vector<float>& x, int peer,
                              Round round) {
  gpu::CpuDevice device(1);
  std::vector<float> message(codec.words(x.size()));
  const EncodeRequest request{x.data(), x.size(), message.data(), peer, round};
  codec.encode(device, std::span(&request, 1));
  return message;
}

struct Decoded {
  std::vector<float> values;
  std::uint64_t fault;
};
Decoded decoded(const Codec& codec, const std::vector<float>& message, std::vector<float> onto,
                Combine combine, int peer = 0, Round round = 0) {
  gpu::CpuDevice device(1);
  const gpu::FaultWord fault(device);
  const DecodeRequest request{message.data(), onto.data(), onto.size(), peer,
                              round,          combine,     fault.word()};
  codec.decode(device, std::span(&request, 1));
  return {onto, fault.tag()};
}

std::vector<float> normal(std::size_t length, std::uint64_t stream) {
  RandomStream random(4, kNoPeer, Purpose::test, stream);
  std::vector<float> values(length);
  for (float& value : values) value = static_cast<float>(random.next_normal());
  return values;
}

double squared(const std::vector<float>& x) {
  double sum = 0;
  for (float value : x) sum += static_cast<double>(value) * value;
  return sum;
}

}  // namespace

TEST_CASE(
    "every codec: declared whole, and its message has the declared size and decodes to what "
    "the formula says") {
  for (const CodecKind& kind : codecs::catalog()) {
    CAPTURE(kind.name);
    CHECK_FALSE(kind.summary.empty());
    CHECK_FALSE(kind.make({{"no_such_parameter", std::int64_t{1}}}, {}).ok());
    CHECK(std::any_of(codec_cases().begin(), codec_cases().end(),
                      [&](const auto& c) { return c.kind == kind.name; }));
  }
  for (const CodecCase& c : codec_cases()) {
    CAPTURE(c.kind);
    CAPTURE(c.fraction);
    const auto codec = codec_of(c);
    for (const std::size_t d : {1, 2, 3, 31, 33, 255, 256, 257, 1023, 1025, 5000}) {
      CAPTURE(d);
      REQUIRE(codec->words(d) == expected_words(c, d));
      for (const int peer : {0, 3}) {
        const auto x = normal(d, d), onto = normal(d, 77);
        const auto message = message_of(*codec, x, peer, 5);
        const auto expected = compressed(c, x, peer, 5);
        const auto replaced = decoded(*codec, message, onto, Combine::replace, peer, 5);
        CHECK(replaced.fault == 0);
        CHECK(replaced.values == expected);
        std::vector<float> sum = onto;
        for (std::size_t i = 0; i < d; ++i) sum[i] += expected[i];
        CHECK(decoded(*codec, message, onto, Combine::add, peer, 5).values == sum);
      }
    }
  }
}

TEST_CASE("every codec is a contraction: ‖C(x) − x‖² ≤ (1 − δ) ‖x‖², with the δ that is known") {
  constexpr std::size_t d = 3000;
  for (const CodecCase& c : codec_cases()) {
    CAPTURE(c.kind);
    CAPTURE(c.fraction);
    const auto codec = codec_of(c);
    double lost_sum = 0, allowed_sum = 0;
    for (Round round = 0; round < 200; ++round) {
      auto x = normal(d, round);
      for (std::size_t i = 0; i < d; i += 7) x[i] *= 20;  // of unequal sizes
      const auto y =
          decoded(*codec, message_of(*codec, x, 1, round), x, Combine::replace, 1, round).values;
      double lost = 0, allowed = 0;
      for (std::size_t i = 0; i < d; ++i)
        lost += (static_cast<double>(y[i]) - x[i]) * (static_cast<double>(y[i]) - x[i]);
      if (c.kind == "bf16") allowed = std::ldexp(squared(x), -16);
      if (c.kind == "int8")  // half a step of each block
        for (std::size_t begin = 0; begin < d; begin += 256) {
          const std::size_t end = std::min(d, begin + 256);
          double most = 0;
          for (std::size_t i = begin; i < end; ++i)
            most = std::max(most, std::abs(static_cast<double>(x[i])));
          allowed += static_cast<double>(end - begin) * std::pow(most / 254 * 1.0001, 2);
        }
      if (c.kind == "sign")  // exactly: ‖x‖² − ‖x‖₁² / d a block
        for (std::size_t begin = 0; begin < d; begin += 1024) {
          const std::size_t end = std::min(d, begin + 1024);
          double one = 0, two = 0;
          for (std::size_t i = begin; i < end; ++i)
            one += std::abs(x[i]), two += static_cast<double>(x[i]) * x[i];
          allowed += two - one * one / static_cast<double>(end - begin);
        }
      const double share = c.fraction > 0 ? static_cast<double>(kept_values(c.fraction, d)) / d : 0;
      if (c.kind == "topk" || c.kind == "randk") allowed = (1 - share) * squared(x);
      if (c.kind == "sign") CHECK(lost == doctest::Approx(allowed).epsilon(1e-5));
      else if (c.kind != "randk") CHECK(lost <= allowed);
      lost_sum += lost;
      allowed_sum += allowed;
    }
    if (c.kind == "randk")
      CHECK(lost_sum == doctest::Approx(allowed_sum).epsilon(0.01));  // in the mean
  }
}

TEST_CASE("what is not finite is not finite in what is decoded, wherever it is sent") {
  for (const CodecCase& c : codec_cases()) {
    CAPTURE(c.kind);
    if (c.kind == "randk" && c.fraction < 1) continue;  // sent when its turn comes
    const auto codec = codec_of(c);
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      auto x = normal(700, 1);
      x[300] = bad;
      const auto y = decoded(*codec, message_of(*codec, x, 0, 0), x, Combine::replace).values;
      CHECK_FALSE(std::isfinite(y[300]));
    }
  }
}

TEST_CASE("a message of any bits is decoded or refused in words, and writes nowhere else") {
  constexpr std::size_t d = 300, kGuard = 64;
  for (const CodecCase& c : codec_cases()) {
    CAPTURE(c.kind);
    const auto codec = codec_of(c);
    gpu::CpuDevice device(1);
    for (std::uint64_t stream = 0; stream < 50; ++stream) {
      RandomStream random(8, kNoPeer, Purpose::test, stream);
      std::vector<float> message(codec->words(d)), memory(d + 2 * kGuard, 1.0F);
      for (float& word : message) word = std::bit_cast<float>(random.next_u32());
      const gpu::FaultWord fault(device);
      DecodeRequest request{message.data(), memory.data() + kGuard, d, 2, 9,
                            Combine::add,   fault.word(),           77};
      codec->decode(device, std::span(&request, 1));
      CHECK(fault.tag() == (c.kind == "topk" ? 77 : 0));
      CHECK((codec->refusal() != nullptr) == (c.kind == "topk"));
      request.fault = nullptr;  // no word to set
      codec->decode(device, std::span(&request, 1));
      for (std::size_t i = 0; i < kGuard; ++i)
        CHECK((memory[i] == 1 && memory[kGuard + d + i] == 1));
    }
  }
}

TEST_CASE("an unknown codec, and a fraction out of range, are refused") {
  std::vector<std::string> names;
  for (const CodecKind& kind : codecs::catalog()) names.push_back(kind.name);
  CHECK(make_codec("zip", {}, {}).error().message ==
        fmt::format("codec.kind: unknown codec 'zip'; there are: {}", fmt::join(names, ", ")));
  for (const double fraction : {0.0, 1.5})
    CHECK_FALSE(make_codec("topk", {{"fraction", fraction}}, {}).ok());
}

namespace {

/// Three parts of rows of `length` values, as of a model cut by layers, the second layer cut inside
/// too: the second and the third part take turns of `columns` values.
std::vector<RowPart> parts_of(std::size_t length, std::size_t columns) {
  const std::size_t first = length / 3;
  std::vector<std::vector<RowPart::Run>> runs{{{0, 0, first}}, {}, {}};
  std::size_t held[2] = {0, 0};
  for (std::size_t begin = first, k = 0; begin < length; begin += columns, ++k) {
    const std::size_t values = std::min(columns, length - begin);
    runs[1 + k % 2].push_back({begin, held[k % 2], values});
    held[k % 2] += values;
  }
  std::vector<RowPart> parts;
  for (auto& each : runs) parts.emplace_back(length, std::move(each));
  return parts;
}

std::vector<float> values_in(const RowPart& part, const std::vector<float>& row) {
  std::vector<float> values(part.values());
  for (const RowPart::Run& run : part.runs())
    std::copy_n(row.begin() + static_cast<std::ptrdiff_t>(run.whole), run.values,
                values.begin() + static_cast<std::ptrdiff_t>(run.own));
  return values;
}

}  // namespace

TEST_CASE("a row encoded part by part decodes to what each part decodes to as a row of its own") {
  constexpr std::size_t d = 7000;
  for (const CodecCase& c : codec_cases())
    for (const std::size_t columns : {17, 640, 5000}) {
      CAPTURE(c.kind);
      CAPTURE(columns);
      const std::vector<RowPart> parts = parts_of(d, columns);
      const PartCodec codec(codec_of(c), parts);
      const auto alone = codec_of(c);
      std::vector<float> scratch(codec.scratch(d));
      gpu::CpuDevice device(1);
      // Two peers' rows in one batch, the second one added to what is there.
      const std::vector<std::vector<float>> rows{normal(d, 1), normal(d, 2)};
      std::vector<std::vector<float>> onto{normal(d, 3), normal(d, 4)}, expected = onto;
      std::vector<std::vector<float>> messages(2, std::vector<float>(codec.words(d)));
      std::vector<std::vector<float>> scratches(2, scratch);
      const gpu::FaultWord fault(device);
      std::vector<EncodeRequest> encodes;
      std::vector<DecodeRequest> decodes;
      for (int peer = 0; peer < 2; ++peer) {
        const auto k = static_cast<std::size_t>(peer);
        encodes.push_back({rows[k].data(), d, messages[k].data(), peer, 5, scratches[k].data()});
        decodes.push_back({messages[k].data(), onto[k].data(), d, peer, 5,
                           peer == 0 ? Combine::replace : Combine::add,
                           peer == 0 ? fault.word() : nullptr, 1, scratches[k].data()});
        std::size_t words = 0;
        for (const RowPart& part : parts) {
          const auto message = message_of(*alone, values_in(part, rows[k]), peer, 5);
          words += message.size();
          const auto values = decoded(*alone, message, values_in(part, expected[k]),
                                      decodes.back().combine, peer, 5)
                                  .values;
          for (const RowPart::Run& run : part.runs())
            std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(run.own), run.values,
                        expected[k].begin() + static_cast<std::ptrdiff_t>(run.whole));
        }
        REQUIRE(words == codec.words(d));
      }
      codec.encode(device, encodes);
      codec.decode(device, decodes);
      CHECK(fault.tag() == 0);
      CHECK(onto == expected);
      CHECK(codec.fidelity() == alone->fidelity());
    }
}

TEST_CASE("an index beyond its part is refused, though the row has one of this number") {
  constexpr std::size_t d = 300;
  const std::vector<RowPart> parts = parts_of(d, 10);
  const CodecCase topk{"topk", 0.1};
  const PartCodec codec(codec_of(topk), parts);
  const auto row = normal(d, 1);
  std::vector<float> message(codec.words(d)), scratch(d), onto(d, 1.0F);
  gpu::CpuDevice device(1);
  const EncodeRequest encode{row.data(), d, message.data(), 0, 0, scratch.data()};
  codec.encode(device, std::span(&encode, 1));
  // Of the second part the last index, which is the largest.
  const auto words = [&](std::size_t part) { return codec_of(topk)->words(parts[part].values()); };
  const std::size_t last = words(0) + words(1) - 1;
  for (const std::size_t index : {parts[1].values() - 1, parts[1].values()}) {
    message[last] = std::bit_cast<float>(static_cast<std::uint32_t>(index));
    const gpu::FaultWord fault(device);
    const DecodeRequest decode{
        message.data(), onto.data(), d, 0, 0, Combine::replace, fault.word(), 77, scratch.data()};
    codec.decode(device, std::span(&decode, 1));
    CHECK(fault.tag() == (index < parts[1].values() ? 0 : 77));
  }
}

TEST_CASE("a number beyond the largest is found in any piece of a message of parts") {
  constexpr std::size_t d = 3000;
  for (const CodecCase& c : codec_cases()) {
    CAPTURE(c.kind);
    const std::vector<RowPart> parts = parts_of(d, 100);
    const PartCodec codec(codec_of(c), parts);
    const auto alone = codec_of(c);
    std::vector<float> message;
    for (const RowPart& part : parts) {
      const auto own = message_of(*alone, std::vector<float>(part.values(), 1.0F), 0, 0);
      message.insert(message.end(), own.begin(), own.end());
    }
    REQUIRE(message.size() == codec.words(d));
    const auto found = [&](std::size_t first, std::size_t count) {
      return codec.first_beyond({std::span(message).subspan(first, count), first, message.size()},
                                1000);
    };
    for (const std::size_t piece : {std::size_t{7}, std::size_t{64}, message.size()})
      for (std::size_t first = 0; first < message.size(); first += piece) {
        const std::size_t count = std::min(piece, message.size() - first);
        REQUIRE(found(first, count) == count);
      }
    // The first number of the last part.
    const std::size_t at = message.size() - alone->words(parts.back().values());
    message[at] = 1e30F;
    CHECK(found(0, message.size()) == at);
    CHECK(found(at, 1) == 0);
    CHECK(found(at - 3, 5) == 3);
    CHECK(found(0, at) == at);
  }
}
