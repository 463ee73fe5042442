// Operations that encode rows in fewer bytes, or select a tenth of a row's values, against the
// bytes that they must move.
#include "gpu/fault_word.hpp"
#include "gpu_bench_rows.hpp"

namespace gossamer::bench {
namespace {

/// Share of a row's values that is selected: the default of topk and randk.
constexpr double kShare = 0.1;
std::size_t share(const Rows& rows) { return std::max<std::size_t>(1, rows.length() / 10); }

template <class Request>
void execute(gpu::Device& device, const Request& request) {
  device.execute(std::span(&request, 1));
}

void clear(gpu::Device& device, std::span<float> row) {
  execute(device, gpu::FillRequest<float>{0.0F, row.data(), row.size()});
}

/// Checks `back`, to which some values of `row` were added from zero: each value is row's or 0.
/// keep(value) is 1 for values that must be kept, 0 for values that must not, −1 for either.
template <class Keep>
void expect_share(gpu::Device& device, std::span<const float> row, std::span<const float> back,
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

template <class Value>
Value* as(const Rows& rows, std::size_t row) {
  return reinterpret_cast<Value*>(rows.row(row).data());
}

/// Row 0's largest values to row 1, their indices to row 2.
gpu::TopKRequest top_k(const Rows& rows) {
  return {rows.row(0).data(), rows.length(), rows.row(1).data(), as<std::uint32_t>(rows, 2),
          share(rows)};
}

/// Adds the largest values to zeros in row 3, checked. Of uniform values the largest tenth are
/// above 0.9 or so.
gpu::ScatterAddRequest scatter_add(gpu::Device& device, const Rows& rows) {
  const gpu::TopKRequest chosen = top_k(rows);
  execute(device, chosen);
  clear(device, rows.row(3));
  const gpu::FaultWord fault(device);
  gpu::ScatterAddRequest request{chosen.chosen,      chosen.indices, chosen.count,
                                 rows.row(3).data(), rows.length(),  fault.word()};
  execute(device, request);
  device.finish();
  if (fault.tag() != 0) throw std::runtime_error("top_k: indices that do not ascend");
  expect_share(device, rows.row(0), rows.row(3), "top_k", [](float value) {
    return value > 0.95F ? 1 : value < 0.85F ? 0 : -1;
  });
  request.fault = nullptr;
  return request;
}

gpu::StratifiedSample stratified(const Rows& rows) { return {share(rows), 7, 1, Purpose::test, 3}; }
/// A tenth of row 0 to row 1.
gpu::SampleRequest sampled(const Rows& rows) {
  return {rows.row(0).data(), rows.length(), rows.row(1).data(), stratified(rows)};
}
/// The sample added to zeros in row 2, checked.
gpu::AddSampledRequest add_sampled(gpu::Device& device, const Rows& rows) {
  const gpu::AddSampledRequest request{rows.row(1).data(), rows.row(2).data(), rows.length(),
                                       stratified(rows)};
  execute(device, sampled(rows));
  clear(device, rows.row(2));
  execute(device, request);
  expect_share(device, rows.row(0), rows.row(2), "sample", [](float) { return -1; });
  return request;
}

/// Row 0's signs to row 1, their scales to row 2.
gpu::EncodeSignsRequest encode_signs(const Rows& rows) {
  return {rows.row(0).data(), as<std::uint32_t>(rows, 1), rows.row(2).data(), rows.length()};
}
/// The signs decoded to row 3, checked: of uniform values all are about 1/2.
gpu::DecodeSignsRequest decode_signs(gpu::Device& device, const Rows& rows) {
  const gpu::DecodeSignsRequest request{as<std::uint32_t>(rows, 1), rows.row(2).data(),
                                        rows.row(3).data(), rows.length()};
  execute(device, encode_signs(rows));
  execute(device, request);
  for (const float value : sample(device, rows.row(3)))
    if (!(std::abs(value - 0.5F) < 0.1F))
      throw std::runtime_error(fmt::format("signs: {} instead of about 0.5", value));
  return request;
}

gpu::EncodeBf16Request encode_bf16(const Rows& rows) {
  return {rows.row(0).data(), as<std::uint16_t>(rows, 1), rows.length()};
}
gpu::EncodeInt8Request encode_int8(const Rows& rows) {
  return {rows.row(0).data(), as<std::int8_t>(rows, 1), rows.row(2).data(), rows.length()};
}

}  // namespace

std::vector<Operation> coded_operations() {
  using gpu::Device;
  constexpr double kInt8 = 5 + 4.0 / gpu::kInt8Block, kSigns = 4 + 1.0 / 8 + 4.0 / gpu::kSignBlock;
  return {
      {"encode_bf16", 2, 6, [](Device& d, const Rows& r) { return repeat(d, encode_bf16(r)); }},
      {"decode_bf16", 2, 6,
       [](Device& d, const Rows& r) {
         const gpu::EncodeBf16Request encode = encode_bf16(r);
         execute(d, encode);
         return repeat(d, gpu::DecodeBf16Request{encode.coded, r.row(0).data(), r.length()});
       }},
      {"encode_int8", 3, kInt8, [](Device& d, const Rows& r) { return repeat(d, encode_int8(r)); }},
      {"decode_int8", 3, kInt8,
       [](Device& d, const Rows& r) {
         const gpu::EncodeInt8Request encode = encode_int8(r);
         execute(d, encode);
         return repeat(
             d, gpu::DecodeInt8Request{encode.coded, encode.scales, r.row(0).data(), r.length()});
       }},
      {"encode_signs", 4, kSigns,
       [](Device& d, const Rows& r) {
         decode_signs(d, r);  // checks it
         return repeat(d, encode_signs(r));
       }},
      {"decode_signs", 4, kSigns,
       [](Device& d, const Rows& r) { return repeat(d, decode_signs(d, r)); }},
      {"top_k", 4, 4 + 8 * kShare,
       [](Device& d, const Rows& r) {
         scatter_add(d, r);  // checks it
         return repeat(d, top_k(r));
       }},
      {"scatter_add", 4, 16 * kShare,
       [](Device& d, const Rows& r) { return repeat(d, scatter_add(d, r)); }},
      {"sample", 3, 8 * kShare,
       [](Device& d, const Rows& r) {
         add_sampled(d, r);  // checks it
         return repeat(d, sampled(r));
       }},
      {"add_sampled", 3, 12 * kShare,
       [](Device& d, const Rows& r) { return repeat(d, add_sampled(d, r)); }},
  };
}

}  // namespace gossamer::bench
