// Measures the operations of codecs: conversions, and selections of a tenth of a row.
#include "gpu/fault_word.hpp"
#include "gpu_bench_rows.hpp"

namespace gossamer::bench {
namespace {

/// The selected fraction of a row, the default of topk and randk.
constexpr double kPart = 0.1;
std::size_t part(const Rows& rows) { return std::max<std::size_t>(1, rows.length() / 10); }

void clear(gpu::Device& device, std::span<float> row) {
  const gpu::FillRequest<float> fill{0.0F, row.data(), row.size()};
  device.fill(std::span(&fill, 1));
}

/// Checks `back`, the selected values of `row` added to zeros. keep(value) is 1 if the value must
/// be there, 0 if it must be 0, and −1 if both are allowed.
template <class Keep>
void expect_part(gpu::Device& device, std::span<const float> row, std::span<const float> back,
                 const char* what, Keep keep) {
  const std::vector<float> values = sample(device, row), got = sample(device, back);
  std::vector<double> expected;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int kept = keep(values[i]);
    expected.push_back(kept == 1 || (kept < 0 && got[i] != 0) ? static_cast<double>(values[i])
                                                              : 0.0);
  }
  expect_close(got, expected, what);
}

std::uint32_t* indices(const Rows& rows, std::size_t row) {
  return reinterpret_cast<std::uint32_t*>(rows.row(row).data());
}

/// Writes the largest values of row 0 to row 1 and their indices to row 2.
gpu::LargestRequest largest(gpu::Device& device, const Rows& rows) {
  const gpu::LargestRequest request{rows.row(0).data(), rows.length(), rows.row(1).data(),
                                    indices(rows, 2), part(rows)};
  device.largest(std::span(&request, 1));
  return request;
}

/// Adds the largest values to zeros in row 3. The largest tenth of uniform values are those above
/// about 0.9.
gpu::PlacedRequest placed(gpu::Device& device, const Rows& rows) {
  const gpu::LargestRequest chosen = largest(device, rows);
  clear(device, rows.row(3));
  const gpu::FaultWord fault(device);
  gpu::PlacedRequest request{chosen.chosen,      chosen.indices, chosen.count,
                             rows.row(3).data(), rows.length(),  fault.word()};
  device.add_placed(std::span(&request, 1));
  device.finish();
  if (fault.told() != 0) throw std::runtime_error("largest: indices that do not ascend");
  expect_part(device, rows.row(0), rows.row(3), "largest", [](float value) {
    return value > 0.95F ? 1 : value < 0.85F ? 0 : -1;
  });
  request.fault = nullptr;
  return request;
}

/// Samples a tenth of row 0 to row 1, adds it to zeros in row 2, and checks row 2.
gpu::SampledRequest sampled(gpu::Device& device, const Rows& rows) {
  gpu::SampledRequest request{
      rows.row(0).data(), rows.length(), rows.row(1).data(), part(rows), 7, 1, Purpose::test, 3};
  device.sample(std::span(&request, 1));
  clear(device, rows.row(2));
  request.values = rows.row(2).data();
  device.add_sampled(std::span(&request, 1));
  expect_part(device, rows.row(0), rows.row(2), "sample", [](float) { return -1; });
  return request;
}

/// Encodes the signs of row 0 to row 1 and their scales to row 2, and decodes them to row 3. For
/// uniform values every result is about 1/2.
gpu::SignRequest signs(gpu::Device& device, const Rows& rows) {
  gpu::SignRequest request{rows.row(0).data(), indices(rows, 1), rows.row(2).data(), rows.length()};
  device.to_signs(std::span(&request, 1));
  request.values = rows.row(3).data();
  device.from_signs(std::span(&request, 1));
  for (const float value : sample(device, rows.row(3)))
    if (!(std::abs(value - 0.5F) < 0.1F))
      throw std::runtime_error(fmt::format("signs: {} where about 0.5 was due", value));
  return request;
}

}  // namespace

std::vector<Operation> coded_operations() {
  using gpu::Device;
  const auto at = [](const Rows& rows, std::size_t i) { return rows.row(i).data(); };
  constexpr double kSigns = 4 + 1.0 / 8 + 4.0 / gpu::kSignBlock;
  return {
      {"to_bf16", 2, 6,
       [=](Device& d, const Rows& r) {
         return repeat(
             gpu::Bf16Request{at(r, 0), reinterpret_cast<std::uint16_t*>(at(r, 1)), r.length()},
             [&d](auto q) { d.to_bf16(q); });
       }},
      {"from_bf16", 2, 6,
       [=](Device& d, const Rows& r) {
         const gpu::Bf16Request request{at(r, 0), reinterpret_cast<std::uint16_t*>(at(r, 1)),
                                        r.length()};
         d.to_bf16(std::span(&request, 1));
         return repeat(request, [&d](auto q) { d.from_bf16(q); });
       }},
      {"to_int8", 3, 5 + 4.0 / gpu::kInt8Block,
       [=](Device& d, const Rows& r) {
         return repeat(gpu::Int8Request{at(r, 0), reinterpret_cast<std::int8_t*>(at(r, 1)),
                                        at(r, 2), r.length()},
                       [&d](auto q) { d.to_int8(q); });
       }},
      {"from_int8", 3, 5 + 4.0 / gpu::kInt8Block,
       [=](Device& d, const Rows& r) {
         const gpu::Int8Request request{at(r, 0), reinterpret_cast<std::int8_t*>(at(r, 1)),
                                        at(r, 2), r.length()};
         d.to_int8(std::span(&request, 1));
         return repeat(request, [&d](auto q) { d.from_int8(q); });
       }},
      {"to_signs", 4, kSigns,
       [=](Device& d, const Rows& r) {
         gpu::SignRequest request = signs(d, r);
         request.values = at(r, 0);
         return repeat(request, [&d](auto q) { d.to_signs(q); });
       }},
      {"from_signs", 4, kSigns,
       [=](Device& d, const Rows& r) {
         return repeat(signs(d, r), [&d](auto q) { d.from_signs(q); });
       }},
      {"largest", 4, 4 + 8 * kPart,
       [=](Device& d, const Rows& r) {
         placed(d, r);  // checks it
         return repeat(largest(d, r), [&d](auto q) { d.largest(q); });
       }},
      {"add_placed", 4, 16 * kPart,
       [=](Device& d, const Rows& r) {
         return repeat(placed(d, r), [&d](auto q) { d.add_placed(q); });
       }},
      {"sample", 3, 8 * kPart,
       [=](Device& d, const Rows& r) {
         gpu::SampledRequest request = sampled(d, r);
         request.values = at(r, 0);
         return repeat(request, [&d](auto q) { d.sample(q); });
       }},
      {"add_sampled", 3, 12 * kPart,
       [=](Device& d, const Rows& r) {
         return repeat(sampled(d, r), [&d](auto q) { d.add_sampled(q); });
       }},
  };
}

}  // namespace gossamer::bench
