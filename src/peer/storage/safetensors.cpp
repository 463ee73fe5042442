#include "peer/storage/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "peer/storage/files.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

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
  Json json;
  json["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const std::size_t values = values_of(tensor.shape);
    result.add({tensor.name, tensor.shape, offset, values});
    const std::uint64_t end = offset + values * sizeof(float);
    json[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = text_of(json);
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
  GOSSAMER_TRY(const std::uint64_t bytes, regular_file_size(path));
  SafetensorsFile file(path);
  GOSSAMER_TRY_STATUS(file.read_header(bytes));
  return file;
}

Status SafetensorsFile::read_header(std::uint64_t file_bytes) {
  if (!stream_)
    return Error{ErrorKind::data,
                 fmt::format("cannot read {}: {}", path_.string(), std::strerror(errno))};
  std::uint64_t length = 0;
  if (file_bytes < sizeof length) return damaged_file(path_, "it is shorter than its first field");
  stream_.read(reinterpret_cast<char*>(&length), sizeof length);
  if (length > file_bytes - sizeof length) return damaged_file(path_, "its header is truncated");
  header_.bytes.resize(sizeof length + length);
  std::memcpy(header_.bytes.data(), &length, sizeof length);
  stream_.read(header_.bytes.data() + sizeof length, static_cast<std::streamsize>(length));
  if (!stream_) return damaged_file(path_, "its header cannot be read");
  const Json header = Json::parse(header_.bytes.substr(sizeof length), nullptr, false);
  if (!header.is_object()) return damaged_file(path_, "its header is not JSON");
  const std::uint64_t start = header_.bytes.size(), room = file_bytes - start;
  std::uint64_t covered = 0;
  try {
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        header_.metadata = entry.get<Metadata>();
        continue;
      }
      if (entry.at("dtype") != "F32")
        return damaged_file(path_, fmt::format("tensor {} is not F32", name));
      const auto begin = entry.at("data_offsets").at(0).get<std::uint64_t>(),
                 end = entry.at("data_offsets").at(1).get<std::uint64_t>();
      if (begin > end || end > room || begin % sizeof(float) != 0 ||
          (end - begin) % sizeof(float) != 0)
        return damaged_file(
            path_, fmt::format("tensor {} lies outside the file (is it truncated?)", name));
      header_.add({name, entry.at("shape").get<std::vector<std::int64_t>>(), start + begin,
                   static_cast<std::size_t>((end - begin) / sizeof(float))});
      if (!fits(header_.tensors.back()))
        return damaged_file(
            path_, fmt::format("tensor {} has another number of values than its shape", name));
      covered += end - begin;
    }
  } catch (const Json::exception& error) {
    return damaged_file(path_, error.what());
  }
  if (covered != room) return damaged_file(path_, "its tensors do not fill the file");
  return {};
}

Status SafetensorsFile::read(const TensorInfo& tensor, std::size_t first, std::span<float> into) {
  stream_.clear();
  stream_.seekg(static_cast<std::streamoff>(tensor.begin + first * sizeof(float)));
  stream_.read(reinterpret_cast<char*>(into.data()),
               static_cast<std::streamsize>(into.size_bytes()));
  return stream_
             ? Status()
             : Status(damaged_file(path_, fmt::format("tensor {} cannot be read", tensor.name)));
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
