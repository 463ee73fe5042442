// Secrets that two processes agree on, and the bits that follow from them.
#include "net/tls/key_agreement.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

using namespace gossamer;
using namespace gossamer::net;

TEST_CASE("two ends find the same secret; a third, another purpose and another run do not") {
  const KeyAgreement a, b, c;
  const auto at_a = a.secret(b.public_key(), "peers 0 and 1"),
             at_b = b.secret(a.public_key(), "peers 0 and 1");
  REQUIRE(at_a.has_value());
  REQUIRE(at_b.has_value());
  CHECK(at_a->bytes() == at_b->bytes());
  std::set<std::array<std::uint8_t, 32>> all{at_a->bytes()};
  for (const KeyAgreement& other : {c, a, KeyAgreement()})
    CHECK(all.insert(other.secret(b.public_key(), "peers 0 and 1")->bytes()).second ==
          (other.public_key() != a.public_key()));
  CHECK(all.insert(a.secret(b.public_key(), "peers 0 and 2")->bytes()).second);
  CHECK(all.insert(a.public_key()).second);
}

// The points of low order of RFC 7748, section 6.1, and of Cremers and Jackson 2019, with which the
// secret does not depend on the key of this end.
TEST_CASE("a key of low order is refused, in any encoding") {
  const KeyAgreement own;
  AgreementKey zero{}, one{}, minus_one, prime, prime_and_one;
  one[0] = 1;
  minus_one.fill(0xff), minus_one[0] = 0xec, minus_one[31] = 0x7f;
  prime.fill(0xff), prime[0] = 0xed, prime[31] = 0x7f;
  prime_and_one.fill(0xff), prime_and_one[0] = 0xee, prime_and_one[31] = 0x7f;
  const AgreementKey order_eight{0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3,
                                 0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32,
                                 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00};
  for (AgreementKey key : {zero, one, minus_one, prime, prime_and_one, order_eight}) {
    CHECK_FALSE(own.secret(key, "x").has_value());
    key[31] |= 0x80;  // a bit that X25519 ignores
    CHECK_FALSE(own.secret(key, "x").has_value());
  }
  CHECK(own.secret(KeyAgreement().public_key(), "x").has_value());
}

// RFC 8439, appendix A.1, test vector 1: key and nonce of zeros, counter 0.
TEST_CASE("bits are those of ChaCha20, differ from number to number, and go on where they ended") {
  const Secret zeros;
  std::vector<std::uint64_t> whole(100), first(37), rest(63);
  SecretBits(zeros, 0).fill(whole);
  CHECK(whole[0] == 0x903df1a0ade0b876);  // 76 b8 e0 ad a0 f1 3d 90
  SecretBits parts(zeros, 0);
  parts.fill(first), parts.fill(rest);
  first.insert(first.end(), rest.begin(), rest.end());
  CHECK(first == whole);
  std::set<std::uint64_t> numbers(whole.begin(), whole.end());
  for (const std::uint64_t number : {1ull, 2ull, 1ull << 32, 1ull << 63}) {
    std::vector<std::uint64_t> other(100);
    SecretBits(zeros, number).fill(other);
    numbers.insert(other.begin(), other.end());
  }
  CHECK(numbers.size() == 500);
}
