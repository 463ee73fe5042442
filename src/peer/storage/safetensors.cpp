#include "peer/storage/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string_view>
#include <utility>

#include "peer/storage/files.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxHeaderBytes = 16 << 20;  // some 200,000 tensors
constexpr JsonLimits kHeaderLimits{.object_fields = std::numeric_limits<std::size_t>::max()};

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

/// Whether the shape has tensor.values elements. Does not overflow, whatever a damaged header
/// contains.
bool fits(const TensorInfo& tensor) {
  std::uint64_t count = 1;
  for (const std::int64_t extent : tensor.shape) {
    if (extent < 0 || (extent > 0 && count > tensor.values / static_cast<std::uint64_t>(extent)))
      return false;
    count *= static_cast<std::uint64_t>(extent);
  }
  return count == tensor.values;
}

std::size_t values_of(const std::vector<std::int64_t>& shape) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  return count;
}

std::string_view bytes_of(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

}  // namespace

const TensorInfo* SafetensorsHeader::find(const std::string& name) const {
  const auto found = indices.find(name);
  return found == indices.end() ? nullptr : &tensors[found->second];
}

void SafetensorsHeader::add(TensorInfo tensor) {
  indices.emplace(tensor.name, tensors.size());
  tensors.push_back(std::move(tensor));
}

SafetensorsHeader make_safetensors_header(const std::vector<Tensor>& tensors,
                                          const Metadata& metadata) {
  SafetensorsHeader result;
  result.metadata = metadata;
  // Field by field, because Json would compare each name with all before it.
  std::string text = "{\"__metadata__\":" + text_of(Json(metadata));
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const std::size_t values = values_of(tensor.shape);
    result.add({tensor.name, tensor.shape, offset, values});
    const std::uint64_t end = offset + values * sizeof(float);
    const Json entry = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    text += fmt::format(",{}:{}", text_of(Json(tensor.name)), text_of(entry));
    offset = end;
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the values begin at a multiple of 8
  const std::uint64_t length = text.size();
  result.bytes.assign(reinterpret_cast<const char*>(&length), sizeof length);
  result.bytes += text;
  for (TensorInfo& tensor : result.tensors) tensor.begin += result.bytes.size();
  return result;
}

Status write_safetensors(const fs::path& path, const std::vector<Tensor>& tensors,
                         const Metadata& metadata, Disk& disk) {
  const SafetensorsHeader header = make_safetensors_header(tensors, metadata);
  GOSSAMER_TRY(AtomicFile file, AtomicFile::create(path, disk));
  GOSSAMER_TRY_STATUS(file.write(0, header.bytes));
  for (std::size_t i = 0; i < tensors.size(); ++i)
    GOSSAMER_TRY_STATUS(file.write(header.tensors[i].begin, bytes_of(tensors[i].values)));
  return file.commit();
}

Result<SafetensorsFile> SafetensorsFile::open(const fs::path& path) {
  GOSSAMER_TRY(InputFile opened, InputFile::open(path));
  SafetensorsFile file(std::move(opened));
  GOSSAMER_TRY_STATUS(file.read_header());
  return file;
}

Status SafetensorsFile::read_header() {
  const fs::path& path = file_.path();
  const std::uint64_t file_bytes = file_.bytes();
  std::array<char, sizeof(std::uint64_t)> prefix;
  if (file_bytes < prefix.size()) return damaged_file(path, "it is shorter than its first field");
  GOSSAMER_TRY_STATUS(file_.read_exactly(0, prefix));
  const auto length = std::bit_cast<std::uint64_t>(prefix);
  if (length > file_bytes - prefix.size()) return damaged_file(path, "its header is truncated");
  if (length > kMaxHeaderBytes)
    return damaged_file(path, fmt::format("its header has {} bytes, and at most {} are read",
                                          length, kMaxHeaderBytes));
  header_.bytes.assign(prefix.begin(), prefix.end());
  header_.bytes.resize(prefix.size() + length);
  const std::span<char> text = std::span(header_.bytes).subspan(prefix.size());
  GOSSAMER_TRY_STATUS(file_.read_exactly(prefix.size(), text));
  if (const Status fits = check_json_limits({text.data(), text.size()}, kHeaderLimits); !fits.ok())
    return damaged_file(path, "its header is " + fits.error().message);
  // Not Json, whose objects are lists: a header is one object with a field for each tensor.
  const auto header = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!header.is_object()) return damaged_file(path, "its header is not JSON");
  const std::uint64_t start = header_.bytes.size(), room = file_bytes - start;
  std::uint64_t covered = 0;
  std::vector<TensorInfo> tensors;
  try {
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        header_.metadata = entry.get<Metadata>();
        continue;
      }
      if (entry.at("dtype") != "F32")
        return damaged_file(path, fmt::format("tensor {} is not F32", name));
      const auto begin = entry.at("data_offsets").at(0).get<std::uint64_t>(),
                 end = entry.at("data_offsets").at(1).get<std::uint64_t>();
      if (begin > end || end > room || begin % sizeof(float) != 0 ||
          (end - begin) % sizeof(float) != 0)
        return damaged_file(
            path, fmt::format("tensor {} lies outside the file (is it truncated?)", name));
      tensors.push_back({name, entry.at("shape").get<std::vector<std::int64_t>>(), start + begin,
                         static_cast<std::size_t>((end - begin) / sizeof(float))});
      if (!fits(tensors.back()))
        return damaged_file(
            path, fmt::format("tensor {} has another number of values than its shape", name));
      covered += end - begin;
    }
  } catch (const nlohmann::json::exception& error) {
    return damaged_file(path, error.what());
  }
  if (covered != room) return damaged_file(path, "its tensors do not fill the file");
  std::ranges::sort(tensors, {}, [](const TensorInfo& tensor) {
    return std::pair<std::uint64_t, std::string_view>(tensor.begin, tensor.name);
  });
  for (TensorInfo& tensor : tensors) header_.add(std::move(tensor));
  return {};
}

Status SafetensorsFile::read(const TensorInfo& tensor, std::size_t first,
                             std::span<float> into) const {
  return file_.read_exactly(tensor.begin + first * sizeof(float),
                            {reinterpret_cast<char*>(into.data()), into.size_bytes()});
}

Result<TensorFile> read_safetensors(const fs::path& path) {
  GOSSAMER_TRY(SafetensorsFile file, SafetensorsFile::open(path));
  TensorFile whole;
  whole.metadata = file.header().metadata;
  std::size_t values = 0;
  for (const TensorInfo& place : file.header().tensors) values += place.values;
  whole.memory.resize(values);
  std::span<float> rest(whole.memory);
  for (const TensorInfo& place : file.header().tensors) {
    const std::span<float> here = rest.first(place.values);
    GOSSAMER_TRY_STATUS(file.read(place, 0, here));
    whole.tensors.push_back({place.name, place.shape, here});
    rest = rest.subspan(place.values);
  }
  return whole;
}

}  // namespace gossamer::peer
