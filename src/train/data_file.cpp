#include "train/data_file.hpp"

#include <fmt/format.h>

#include <fstream>

namespace gossamer::train {

Result<std::vector<unsigned char>> read_bytes(const std::filesystem::path& file) {
  const auto bad = [&file](const std::string& what) {
    return Error{ErrorKind::data, file.string() + ": " + what};
  };
  std::error_code failure;
  const auto status = std::filesystem::status(file, failure);
  if (!std::filesystem::exists(status)) return bad("no such file");
  if (!std::filesystem::is_regular_file(status)) return bad("not a regular file");
  const std::uintmax_t size = std::filesystem::file_size(file, failure);
  std::ifstream stream(file, std::ios::binary);
  if (failure || !stream) return bad("cannot be opened for reading");
  std::vector<unsigned char> bytes(size);
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (static_cast<std::uintmax_t>(stream.gcount()) != size)
    return bad(fmt::format("only {} of its {} bytes could be read", stream.gcount(), size));
  return bytes;
}

}  // namespace gossamer::train
