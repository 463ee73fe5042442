# GOSSAMER_STATIC=ON: the program is one file that needs no shared library, and so runs on every x86-64 Linux. The CUDA device
# loads its libraries when it starts, which such a program cannot, so there is none. To include before packages are looked for.
include_guard()

set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
set(OPENSSL_USE_STATIC_LIBS ON)
set(GOSSAMER_CUDA OFF)
set(GOSSAMER_PYTHON OFF)
set(BUILD_TESTING OFF)

# Debian has these two as headers and as shared libraries only.
add_library(fmt::fmt INTERFACE IMPORTED)
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
add_library(tomlplusplus::tomlplusplus INTERFACE IMPORTED)
