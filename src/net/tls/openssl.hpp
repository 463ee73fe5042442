// OpenSSL's objects as values that free themselves. Only the sources of this folder include it.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <new>

namespace gossamer::net::openssl {

template <auto free>
struct Free {
  template <class Object>
  void operator()(Object* object) const {
    free(object);
  }
};

using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using BioMethod = std::unique_ptr<BIO_METHOD, Free<BIO_meth_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Digest = std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;

/// The object, which OpenSSL fails to make only where no memory is left.
template <class Object>
Object* made(Object* object) {
  if (object == nullptr) throw std::bad_alloc();
  return object;
}

/// A setting that OpenSSL refuses only where no memory is left.
inline void require(long result) {
  if (result <= 0) throw std::bad_alloc();
}

}  // namespace gossamer::net::openssl
