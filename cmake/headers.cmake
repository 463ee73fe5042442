# fmt, Eigen, toml++, doctest and zlib from the headers in GOSSAMER_HEADERS, where their packages are not installed: fmt and
# toml++ in their header-only form, and of zlib the library that every Linux machine has. A folder made of an installation's headers:
#   cp -rL /usr/include/{fmt,toml++,doctest,eigen3/Eigen,xxhash.h,zlib.h,zconf.h} DIR
foreach(header Eigen/Core fmt/format.h toml++/toml.h doctest/doctest.h xxhash.h zlib.h zconf.h)
  if(NOT EXISTS ${GOSSAMER_HEADERS}/${header})
    message(FATAL_ERROR "GOSSAMER_HEADERS: there is no ${GOSSAMER_HEADERS}/${header}")
  endif()
endforeach()

foreach(name Eigen3::Eigen fmt::fmt tomlplusplus::tomlplusplus doctest::doctest ZLIB::ZLIB)
  add_library(${name} INTERFACE IMPORTED)
  target_include_directories(${name} INTERFACE ${GOSSAMER_HEADERS})
endforeach()
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
target_compile_definitions(tomlplusplus::tomlplusplus INTERFACE TOML_HEADER_ONLY=1)

find_library(GOSSAMER_LIBZ NAMES z libz.so.1)
if(NOT GOSSAMER_LIBZ)
  message(FATAL_ERROR "there is no libz.so.1: install zlib1g (Debian, Ubuntu) or zlib (Fedora)")
endif()
mark_as_advanced(GOSSAMER_LIBZ)
target_link_libraries(ZLIB::ZLIB INTERFACE ${GOSSAMER_LIBZ})
