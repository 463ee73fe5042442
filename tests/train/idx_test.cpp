#include <zlib.h>

#include "base/philox.hpp"
#include "tests/train/data_test_util.hpp"
#include "train/gzip.hpp"
#include "train/idx_file.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

/// A header and the values 0, 1, 2, … modulo `modulus`.
Bytes idx_bytes(const std::vector<unsigned>& sizes, unsigned modulus = 256) {
  Bytes bytes = {0, 0, 8, static_cast<unsigned char>(sizes.size())};
  std::size_t count = 1;
  for (unsigned size : sizes) {
    for (int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<unsigned char>(size >> shift));
    count *= size;
  }
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<unsigned char>(i % modulus));
  return bytes;
}

Bytes gzipped(const Bytes& content) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  Bytes bytes(deflateBound(&z, content.size()) + 64);
  z.next_in = const_cast<unsigned char*>(content.data());
  z.avail_in = static_cast<uInt>(content.size());
  z.next_out = bytes.data();
  z.avail_out = static_cast<uInt>(bytes.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  bytes.resize(z.total_out);
  deflateEnd(&z);
  return bytes;
}

Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Bytes first(Bytes bytes, std::size_t count) {
  bytes.resize(count);
  return bytes;
}

std::string parse_refusal(const Bytes& bytes, int dimensions = 3) {
  const auto array = parse_idx("the-file", bytes, dimensions);
  REQUIRE_FALSE(array.ok());
  CHECK(array.error().kind == ErrorKind::data);
  CHECK(array.error().message.starts_with("the-file: "));
  return array.error().message;
}

}  // namespace

TEST_CASE("IDX arrays are read, plain, gzip and gzip in several members") {
  const Bytes plain = idx_bytes({3, 4, 5});
  const Bytes members = gzipped(first(plain, 20)) + gzipped(Bytes(plain.begin() + 20, plain.end()));
  for (const Bytes& bytes : {plain, gzipped(plain), members}) {
    const auto array = parse_idx("the-file", bytes, 3);
    REQUIRE(array.ok());
    CHECK(array->dimensions == std::vector<std::size_t>{3, 4, 5});
    REQUIRE(array->values.size() == 60);
    for (std::size_t i = 0; i < 60; ++i) CHECK(array->values[i] == i);
  }
}

TEST_CASE("zero bytes behind a gzip member are padding, and other bytes are damage") {
  const Bytes plain = idx_bytes({3, 4, 5}), packed = gzipped(plain);
  const Bytes members =
      gzipped(first(plain, 20)) + Bytes(3, 0) + gzipped(Bytes(plain.begin() + 20, plain.end()));
  for (const Bytes& bytes : {packed + Bytes(1, 0), packed + Bytes(60'000, 0), members}) {
    const auto array = parse_idx("the-file", bytes, 3);
    REQUIRE(array.ok());
    CHECK(array->values == Bytes(plain.begin() + 16, plain.end()));
  }
  CHECK(contains(parse_refusal(packed + Bytes(512, 0) + Bytes{'x'}), "gzip data are"));
  // No more than an archive's last block.
  CHECK(contains(parse_refusal(packed + Bytes(100'000, 0)), "bytes of gzip, where its header"));
}

TEST_CASE("gzip data that do not pack well come through whole") {
  Bytes plain = idx_bytes({1200, 32, 32});
  RandomStream random(1, 0, Purpose::test);
  for (std::size_t i = 16; i < plain.size(); ++i)
    plain[i] = static_cast<unsigned char>(random.next_u32());
  const Bytes packed = gzipped(plain);
  CHECK(packed.size() > (1 << 20));  // more than one piece of gunzip's input to zlib
  const auto array = parse_idx("the-file", packed, 3);
  REQUIRE(array.ok());
  CHECK(array->values == Bytes(plain.begin() + 16, plain.end()));
  CHECK(contains(parse_refusal(first(packed, 1 << 20)), "gzip data are cut short"));
}

TEST_CASE("a large array comes through gzip whole") {
  const Bytes plain = idx_bytes({700, 50, 50}, 251);
  const auto array = parse_idx("the-file", gzipped(plain), 3);
  REQUIRE(array.ok());
  CHECK(array->values == Bytes(plain.begin() + 16, plain.end()));
}

TEST_CASE("each kind of damage has a message") {
  const Bytes plain = idx_bytes({3, 4, 5});
  const Bytes packed = gzipped(plain);
  const auto with = [&plain](std::size_t at, unsigned char value) {
    Bytes bytes = plain;
    bytes[at] = value;
    return bytes;
  };
  CHECK(contains(parse_refusal({}), "0 bytes, too short"));
  CHECK(contains(parse_refusal({0, 0}), "too short"));
  CHECK(contains(parse_refusal({'P', 'K', 3, 4, 0, 0}),
                 "neither IDX nor gzip: it begins with 50 4b"));
  CHECK(contains(parse_refusal(with(2, 0x0D)), "type 0x0d"));
  CHECK(contains(parse_refusal(plain, 1), "3 dimensions where 1 are wanted"));
  CHECK(contains(parse_refusal(first(plain, 10)), "cut short within its header: 10 of 16"));
  CHECK(contains(parse_refusal(first(plain, 70)),
                 "cut short: its header claims 76 bytes in all, and there are 70"));
  CHECK(contains(parse_refusal(plain + Bytes{1}), "bytes after its end"));
  CHECK(contains(parse_refusal(with(7, 0)), "dimension 0 is 0"));
  CHECK(contains(parse_refusal(first(packed, packed.size() - 1)), "gzip data are cut short"));
  CHECK(contains(parse_refusal(first(packed, 2)), "gzip data are cut short"));
  CHECK(contains(parse_refusal(first(packed, packed.size() / 2)), "gzip data are cut short"));
  CHECK(contains(parse_refusal(packed + Bytes{'x', 'y'}), "gzip data are damaged"));
  CHECK(contains(parse_refusal(gzipped(plain + Bytes{1, 2})), "bytes after its end"));
  CHECK(contains(parse_refusal(gzipped(first(plain, 70))), "cut short: its header claims 76"));
  Bytes wrong_sum = packed;
  wrong_sum[packed.size() - 6] ^= 1;
  CHECK(contains(parse_refusal(wrong_sum), "incorrect data check"));
}

TEST_CASE("sizes that a header claims are never allocated") {
  Bytes bytes = {0, 0, 8, 3};
  for (int i = 0; i < 12; ++i) bytes.push_back(0xFF);
  CHECK(contains(parse_refusal(bytes), "more values than any file holds"));
  CHECK(contains(parse_refusal(gzipped(bytes)), "more values than any file holds"));
  const Bytes large = {0, 0, 8, 3, 0, 0, 0x40, 0, 0, 0, 0x40, 0, 0, 0, 0x40, 0};  // 2^42 bytes
  CHECK(contains(parse_refusal(large), "claims 4398046511120 bytes in all, and there are 16"));
  CHECK(contains(parse_refusal(gzipped(large)), "claims 4398046511120 bytes, and "));
}

TEST_CASE("any byte changed and any length gives an error or a valid array") {
  const Bytes plain = idx_bytes({2, 3, 4});
  const Bytes members = gzipped(first(plain, 9)) + gzipped(Bytes(plain.begin() + 9, plain.end()));
  for (const Bytes& good : {plain, gzipped(plain), members}) {
    const auto survives = [](const Bytes& bytes) {
      const auto array = parse_idx("the-file", bytes, 3);
      if (!array.ok()) {
        CHECK(array.error().kind == ErrorKind::data);
        CHECK(array.error().message.size() > 15);
        return;
      }
      REQUIRE(array->dimensions.size() == 3);
      CHECK(array->dimensions[0] * array->dimensions[1] * array->dimensions[2] ==
            array->values.size());
    };
    for (std::size_t length = 0; length < good.size(); ++length) {
      // A member that ends where the input does is a whole gzip file, of too few bytes.
      CHECK_FALSE(parse_idx("the-file", first(good, length), 3).ok());
      survives(first(good, length) + first(good, length));
    }
    for (std::size_t at = 0; at < good.size(); ++at)
      for (int change = 1; change < 256; ++change) {
        Bytes bytes = good;
        bytes[at] = static_cast<unsigned char>(bytes[at] ^ change);
        survives(bytes);
      }
  }
}

TEST_CASE("a data set from damaged files is refused, or whole") {
  const Bytes images = idx_bytes({4, 2, 2}), labels = idx_bytes({4});
  const auto check = [](const Folder& folder) {
    const auto data = folder.load({{"train_count", number(3)}});
    if (!data.ok()) return;
    CHECK(data->count == data->labels.size());
    CHECK(data->features.size() == data->count * data->feature_count());
    for (std::int32_t label : data->labels) CHECK((label >= 0 && label < 10));
  };
  Folder folder("idx");
  for (const bool damage_labels : {false, true}) {
    folder.file("images-idx3-ubyte", images).file("labels-idx1-ubyte", labels);
    const Bytes& good = damage_labels ? labels : images;
    const char* name = damage_labels ? "labels-idx1-ubyte" : "images-idx3-ubyte";
    for (std::size_t at = 0; at < good.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        Bytes bytes = good;
        bytes[at] = static_cast<unsigned char>(bytes[at] ^ (1 << bit));
        check(folder.file(name, bytes));
      }
      folder.file(name, first(good, at));
      CHECK_FALSE(folder.load({{"train_count", number(3)}}).ok());
    }
  }
}

TEST_CASE("gunzip stops at its limit") {
  const Bytes content(100000, 7);
  const Bytes packed = gzipped(content);
  CHECK(gunzip("x", packed, 10)->size() == 10);
  CHECK(gunzip("x", packed, 70000)->size() == 70000);
  CHECK(*gunzip("x", packed, 100000) == content);
  CHECK(*gunzip("x", packed, 100001) == content);
  CHECK(gunzip("x", packed, 0)->empty());
}

TEST_CASE("MNIST's four files, in the spellings in use") {
  for (const char* format : {"idx3-ubyte", "idx3-ubyte.gz"})
    for (const char* separator : {"-", "."}) {
      const bool packed = std::string(format).ends_with("gz");
      const auto form = [packed](const Bytes& bytes) { return packed ? gzipped(bytes) : bytes; };
      const auto name = [&](const std::string& head) {
        std::string whole = head + separator + format;
        if (head.ends_with("labels")) whole.replace(whole.find("idx3"), 4, "idx1");
        return whole;
      };
      Folder folder("idx");
      folder.file(name("train-images"), form(idx_bytes({6, 2, 3})))
          .file(name("train-labels"), form(idx_bytes({6}, 4)));
      folder.file(name("t10k-images"), form(idx_bytes({3, 2, 3})))
          .file(name("t10k-labels"), form(idx_bytes({3}, 3)));
      const Dataset data = folder.good();
      CHECK(data.train_count == 6);
      CHECK(data.count == 9);
      CHECK(data.height == 2);
      CHECK(data.width == 3);
      CHECK(data.channels == 1);
      CHECK(data.classes == 10);
      CHECK(data.labels == std::vector<std::int32_t>{0, 1, 2, 3, 0, 1, 0, 1, 2});
      CHECK(data.features.size() == 9 * 6);
      CHECK(data.features[35] == doctest::Approx(35.0 / 255));
      CHECK(data.features[36] == 0.0F);
      const Dataset part = folder.good({{"train_count", number(4)}, {"test_count", number(2)}});
      CHECK(part.train_count == 4);
      CHECK(part.count == 6);
      CHECK(part.labels == std::vector<std::int32_t>{0, 1, 2, 3, 0, 1});
      CHECK(contains(folder.refusal({{"train_count", number(7)}}), "data.train_count: 7 samples"));
      CHECK(contains(folder.refusal({{"test_count", number(4)}}), "data.test_count: 4 samples"));
    }
}

TEST_CASE("one pair of files is split by counts") {
  Folder folder("idx");
  folder.file("images-idx3-ubyte.gz", gzipped(idx_bytes({10, 2, 2})))
      .file("labels-idx1-ubyte", idx_bytes({10}));
  const Dataset data = folder.good({{"train_count", number(6)}, {"test_count", number(3)}});
  CHECK(data.labels == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 7, 8, 9});
  CHECK(data.features[6 * 4] == doctest::Approx(28.0 / 255));
  CHECK(folder.good({{"train_count", number(6)}}).test_count() == 4);
  CHECK(folder.good({{"test_count", number(3)}}).train_count == 7);
  CHECK(contains(folder.refusal({{"train_count", number(10)}}), "all 10 samples"));
  CHECK(contains(folder.refusal(), "give data.train_count, data.test_count or both"));
  const ParameterValues too_many = {{"train_count", number(8)}, {"test_count", number(3)}};
  CHECK(contains(folder.refusal(too_many), "8 samples to train and 3 to test"));
  CHECK(
      contains(folder.refusal({{"test_count", number(10)}}), "0 samples to train and 10 to test"));
  const ParameterValues by_file = {{"path", folder.path("images-idx3-ubyte.gz")},
                                   {"test_count", number(5)}};
  CHECK(folder.good(by_file).train_count == 5);
  ParameterValues twice = by_file;
  twice["images"] = text("images-idx3-ubyte.gz");
  CHECK(contains(folder.refusal(twice), "is a file already"));
}

TEST_CASE("files of any name, scaled as wanted") {
  Folder folder("idx");
  folder.file("a", idx_bytes({4, 1, 2})).file("b", idx_bytes({4}, 2));
  folder.file("c", idx_bytes({2, 1, 2})).file("d", idx_bytes({2}));
  ParameterValues values = {{"images", text("a")},
                            {"labels", text("b")},
                            {"test_images", text("c")},
                            {"test_labels", text("d")},
                            {"classes", number(2)},
                            {"scale", 4.0},
                            {"mean", 0.5},
                            {"std", 0.25}};
  const Dataset data = folder.good(values);
  CHECK(data.features[0] == -2.0F);
  CHECK(data.features[7] == (7 / 4.0F - 0.5F) * 4);
  CHECK(data.test_count() == 2);
  values.erase("labels");
  CHECK(contains(folder.refusal(values), "give data.labels"));
  values["labels"] = text("b");
  values["std"] = 1e-300;
  CHECK(contains(folder.refusal(values), "data.std"));
}

TEST_CASE("files that do not fit each other are refused by name") {
  Folder folder("idx");
  CHECK(contains(folder.refusal(), "no images in MNIST's usual names"));
  CHECK(contains(folder.refusal({{"path", text("/no/such/folder")}}),
                 "/no/such/folder: no such file or folder"));
  CHECK(contains(folder.refusal({{"path", text("")}}), "data.path: give the folder"));
  folder.file("train-images-idx3-ubyte", idx_bytes({6, 2, 3}));
  CHECK(contains(folder.refusal(), folder.path("train-labels-idx1-ubyte") + ": No such file"));
  folder.file("train-labels-idx1-ubyte", idx_bytes({5}));
  CHECK(contains(folder.refusal(),
                 "5 labels, and " + folder.path("train-images-idx3-ubyte") + " has 6 images"));
  folder.file("train-labels-idx1-ubyte", idx_bytes({6, 1, 1}));
  CHECK(contains(folder.refusal(), "3 dimensions where 1 are wanted"));
  folder.file("train-labels-idx1-ubyte", idx_bytes({6}));
  CHECK(contains(folder.refusal({{"classes", number(5)}}),
                 "sample 5 has label 5, not below data.classes = 5"));
  folder.file("t10k-images-idx3-ubyte", idx_bytes({2, 3, 3}))
      .file("t10k-labels-idx1-ubyte", idx_bytes({2}));
  CHECK(contains(folder.refusal(), "images of 3×3, and"));
  CHECK(
      contains(folder.refusal({{"images", text(".")}, {"labels", text("t10k-labels-idx1-ubyte")}}),
               "Is a directory"));
  CHECK(contains(folder.refusal({{"imags", text("a")}}), "data.imags"));
}
