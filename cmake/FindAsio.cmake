# Asio::Asio, the standalone header-only library (Debian's libasio-dev ships no package file for CMake).
find_package(Threads REQUIRED)
find_path(Asio_INCLUDE_DIR asio.hpp)
if(Asio_INCLUDE_DIR AND EXISTS ${Asio_INCLUDE_DIR}/asio/version.hpp)
  file(STRINGS ${Asio_INCLUDE_DIR}/asio/version.hpp version_line REGEX "//[ \t]+[0-9]+\\.[0-9]+\\.[0-9]+")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" Asio_VERSION "${version_line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Asio REQUIRED_VARS Asio_INCLUDE_DIR VERSION_VAR Asio_VERSION
                                  REASON_FAILURE_MESSAGE "install libasio-dev")
mark_as_advanced(Asio_INCLUDE_DIR)

if(Asio_FOUND AND NOT TARGET Asio::Asio)
  add_library(Asio::Asio INTERFACE IMPORTED)
  target_include_directories(Asio::Asio INTERFACE ${Asio_INCLUDE_DIR})
  target_compile_definitions(Asio::Asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
  target_link_libraries(Asio::Asio INTERFACE Threads::Threads)
endif()
