// Large numbers for people.
#pragma once

#include <string>

namespace gossamer {

/// 12,345,678 as "12.3 million", and 1.2e34 as "1.2e+34".
std::string count_text(double count);

/// "392 B", "1.57 KB", "12.3 MB": powers of 1000.
std::string bytes_text(double bytes);

}  // namespace gossamer
