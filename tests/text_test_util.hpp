// Checks on messages.
#pragma once

#include <doctest/doctest.h>

#include <string>

namespace gossamer {

/// Whether `whole` contains `part`; if not, the test's output shows `whole`.
inline bool contains(const std::string& whole, const std::string& part) {
  const bool found = whole.find(part) != std::string::npos;
  if (!found) MESSAGE(whole);
  return found;
}

}  // namespace gossamer
