// Memory, transfers and threads on a card.
#include <atomic>
#include <condition_variable>
#include <future>
#include <limits>
#include <mutex>
#include <numeric>
#include <thread>

#include "tests/cuda/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

namespace {

/// Host memory for transfers.
template <class Value>
class Pinned {
 public:
  Pinned(Device& device, std::size_t length)
      : device_(device),
        values_(static_cast<Value*>(device.allocate_host(length * sizeof(Value))), length) {}
  ~Pinned() { device_.release_host(values_.data()); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  Value* get() const { return values_.data(); }
  std::span<Value> values() const { return values_; }

 private:
  Device& device_;
  std::span<Value> values_;
};

std::vector<float> counting(std::size_t length, float from) {
  std::vector<float> values(length);
  std::iota(values.begin(), values.end(), from);
  return values;
}

}  // namespace

TEST_CASE("card: the survey, and cards that there are not") {
  GOSSAMER_CARD(card);
  const cuda::Survey survey = cuda::survey();
  CHECK(survey.built);
  CHECK(survey.runtime_version >= 12000);
  CHECK(survey.driver_version >= survey.runtime_version / 1000 * 1000);
  CHECK_FALSE(survey.blas.empty());
  REQUIRE_FALSE(survey.cards.empty());
  for (std::size_t i = 0; i < survey.cards.size(); ++i) {
    const cuda::CardInfo& info = survey.cards[i];
    CHECK(info.index == static_cast<int>(i));
    CHECK_FALSE(info.name.empty());
    CHECK(info.compute_major >= 8);
    CHECK(info.memory_total >= info.memory_free);
    CHECK(info.memory_free > 0);
    CHECK(info.multiprocessors > 0);
  }
  CHECK(card->description().find("cuda:0, " + survey.cards[0].name) == 0);
  for (const int index : {-1, static_cast<int>(survey.cards.size())}) {
    const auto none = cuda::make_cuda_device({.cards = {index}});
    REQUIRE_FALSE(none.ok());
    CHECK(none.error().kind == ErrorKind::invalid);
    CHECK(none.error().message.find(std::to_string(index)) != std::string::npos);
  }
}

TEST_CASE("card: memory is aligned, zero, there and back") {
  GOSSAMER_CARD(card);
  CHECK_FALSE(card->host_accessible());
  for (const std::size_t bytes : {1, 4, 63, 4096, 1'000'003}) {
    auto* memory = static_cast<unsigned char*>(card->allocate(bytes));
    CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
    std::vector<unsigned char> back(bytes, 1), sent(bytes);
    card->download(back.data(), memory, bytes);
    CHECK(back == std::vector<unsigned char>(bytes));
    for (std::size_t i = 0; i < bytes; ++i) sent[i] = static_cast<unsigned char>(7 * i + 1);
    const std::vector<unsigned char> kept = sent;
    card->upload(memory, sent.data(), bytes);
    std::fill(sent.begin(), sent.end(),
              0);  // the call has returned: the host's memory is the caller's again
    card->download(back.data(), memory, bytes);
    CHECK(back == kept);
    card->upload(memory, nullptr, 0);
    card->download(nullptr, memory, 0);
    card->release(memory);
  }
  card->release(card->allocate(0));
  card->release(nullptr);
  card->release_host(card->allocate_host(0));
  const MemoryInfo info = card->memory_info();
  CHECK(info.free > 0);
  CHECK(info.free <= info.total);
}

TEST_CASE("card: memory that there is not is std::bad_alloc, and the device goes on") {
  GOSSAMER_CARD(card);
  const std::size_t total = card->memory_info().total;
  CHECK_THROWS_AS(card->allocate(2 * total), std::bad_alloc);
  CHECK_THROWS_AS(card->allocate(std::numeric_limits<std::size_t>::max() / 2), std::bad_alloc);
  const Held<float> row(*card, counting(5, 1));
  CHECK(row.values() == counting(5, 1));
}

TEST_CASE(
    "card: transfers come after what was asked for before them, in order, and say when they are "
    "done") {
  GOSSAMER_CARD(card);
  constexpr std::size_t kLength = 50'000, kPieces = 10, kPiece = kLength / kPieces;
  const Held<float> row(*card, counting(kLength, 0)), back(*card, kLength);
  const Pinned<float> down(*card, kLength);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::size_t> downs, ups;
  const auto note = [&](std::vector<std::size_t>& list, std::size_t piece) {
    return [&, piece] {
      const std::lock_guard lock(mutex);
      list.push_back(piece);
      changed.notify_all();
    };
  };
  const auto wait = [&](const std::vector<std::size_t>& list) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return list.size() == kPieces; });
  };
  const ScaleRequest<float> twice{2, row.get(), kLength};
  for (int i = 0; i < 3; ++i) card->scale(std::span(&twice, 1));  // × 8
  for (std::size_t p = 0; p < kPieces; ++p)
    card->begin_download(down.get() + p * kPiece, row.get() + p * kPiece, kPiece * sizeof(float),
                         note(downs, p));
  wait(downs);
  std::vector<std::size_t> in_order(kPieces);
  std::iota(in_order.begin(), in_order.end(), 0);
  CHECK(downs == in_order);
  for (std::size_t i = 0; i < kLength; i += 997)
    CHECK(down.values()[i] == 8 * static_cast<float>(i));
  // Up again, onto a row that an operation asked for before still writes.
  const FillRequest<float> fill{-1, back.get(), kLength};
  card->fill(std::span(&fill, 1));
  for (std::size_t p = 0; p < kPieces; ++p)
    card->begin_upload(back.get() + p * kPiece, down.get() + p * kPiece, kPiece * sizeof(float),
                       note(ups, p));
  wait(ups);
  CHECK(ups == in_order);
  const auto values = back.values();
  CHECK(std::equal(values.begin(), values.end(), down.values().begin()));
  // What another thread asks for once it is done sees it.
  std::vector<float> seen;
  std::thread([&] { seen = back.values(); }).join();
  CHECK(seen == values);
}

TEST_CASE("card: an empty transfer is done too") {
  GOSSAMER_CARD(card);
  std::promise<void> down, up;
  const Held<float> row(*card, 1);
  card->begin_download(nullptr, row.get(), 0, [&] { down.set_value(); });
  down.get_future().wait();
  card->begin_upload(row.get(), nullptr, 0, [&] { up.set_value(); });
  up.get_future().wait();
}

TEST_CASE("card: threads at once, each with its own order") {
  GOSSAMER_CARD(card);
  constexpr int kThreads = 4;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const std::size_t length = 1000 + 37 * static_cast<std::size_t>(t);
      auto* x = static_cast<double*>(card->allocate(length * sizeof(double)));
      auto* y = static_cast<double*>(card->allocate(length * sizeof(double)));
      double expected = 1;
      for (int round = 0; round < 30; ++round) {
        const FillRequest<double> fill{expected, x, length};
        card->fill(std::span(&fill, 1));
        const CopyRequest<double> copy{x, y, length};
        card->copy(std::span(&copy, 1));
        ReduceRequest<double> sum{x, y, length};
        card->dot(std::span(&sum, 1));
        if (sum.result != expected * expected * static_cast<double>(length)) ++wrong;
        expected += t + 1;
      }
      card->finish();
      card->release(x);
      card->release(y);
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}
