# The two ways in which this project declares code: a folder is a library, and a folder is a registry.
include_guard()

# gossamer_library(name [COLD] [UNWATCHED] [FOLDER f] DEPS a b … [HEADERS_OF module | HEADERS h …]): every source of src/<name>/
# (plug-in folders included) is one static library, compiled in batches; with FOLDER, the sources of src/<f>/.
# src/base/linear_algebra/ and src/gpu/cuda*/ are libraries of their own.
#   COLD        code whose speed does not matter is compiled with -O1, which takes a quarter less time
#   UNWATCHED   code that computes on standard containers and Eigen's matrices in one thread is not compiled for sanitizers
#   HEADERS     headers that most sources of the module include are precompiled, beside the common ones
#   HEADERS_OF  the precompiled headers of an earlier module are used; both modules have the same compiler options
# A library may depend only on those of earlier calls in CMakeLists.txt.
function(gossamer_library name)
  cmake_parse_arguments(ARG "COLD;UNWATCHED" "FOLDER;HEADERS_OF" "DEPS;HEADERS" ${ARGN})
  if(ARG_FOLDER)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${ARG_FOLDER}/*.cpp)
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
    list(FILTER sources EXCLUDE REGEX "/(main|processor_check)\\.cpp$|/base/linear_algebra/|/gpu/cuda(_absent)?/")
  endif()
  add_library(gossamer_${name} STATIC ${sources})
  target_include_directories(gossamer_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(gossamer_${name} PUBLIC gossamer_flags ${ARG_DEPS})
  if(ARG_COLD)
    gossamer_cold(gossamer_${name})
  endif()
  set_target_properties(gossamer_${name} PROPERTIES GOSSAMER_UNWATCHED "${ARG_UNWATCHED}")
  gossamer_batches(gossamer_${name} 36)
  if(ARG_HEADERS_OF)
    gossamer_precompile(gossamer_${name} REUSE_FROM gossamer_${ARG_HEADERS_OF})
  else()
    gossamer_precompile(gossamer_${name} PRIVATE ${ARG_HEADERS})
  endif()
endfunction()

# gossamer_cold(target [level]): an optimised build compiles the target with -O1, or with the given level. Results are the same bits.
function(gossamer_cold target)
  set(level -O1)
  if(ARGC GREATER 1)
    set(level ${ARGV1})
  endif()
  target_compile_options(${target} PRIVATE "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:${level}>")
endfunction()

# gossamer_precompile(target PRIVATE HEADER…): the common headers and `HEADER…` are read once for all sources of the target.
# gossamer_precompile(target REUSE_FROM other): those of another target are used. GCC takes the optimisation level of a
# source from the precompiled header, so both targets have one level, and a source with options of its own skips the header.
function(gossamer_precompile target how)
  if(NOT GOSSAMER_PRECOMPILE)
    return()
  endif()
  if(how STREQUAL "PRIVATE")
    list(APPEND ARGN <algorithm> <chrono> <functional> <map> <memory> <optional> <span> <string> <variant> <vector>)
    list(PREPEND ARGN <fmt/format.h>)
  endif()
  target_precompile_headers(${target} ${how} ${ARGN})
endfunction()

# gossamer_batches(target size): the target's sources are compiled in batches of `size`, so that headers are parsed and their
# templates instantiated once a batch, which takes less than half of the time. Names in anonymous namespaces are therefore
# unique within a target; GOSSAMER_PRECOMPILE=OFF compiles each source alone.
function(gossamer_batches target size)
  if(GOSSAMER_PRECOMPILE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
  endif()
endfunction()

# gossamer_catalog(name FOLDER kinds TYPE TopologyKind HEADER topology/kind.hpp NAMESPACE gossamer::topology)
# Writes a source file that calls `NAMESPACE::FOLDER::<file>::descriptor()` for every file of src/<name>/<FOLDER>/, and adds it
# to the library: `std::vector<TYPE> NAMESPACE::FOLDER::catalog()`. Adding a kind is adding one file; a wrong namespace is a
# link error.
function(gossamer_catalog name)
  cmake_parse_arguments(ARG "" "FOLDER;TYPE;HEADER;NAMESPACE" "" ${ARGN})
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/${ARG_FOLDER}/*.cpp)
  list(SORT files)
  set(declarations "")
  set(calls "")
  foreach(file ${files})
    get_filename_component(kind ${file} NAME_WE)
    string(APPEND declarations "namespace ${kind} { ${ARG_TYPE} descriptor(); }\n")
    string(APPEND calls "  kinds.push_back(${kind}::descriptor());\n")
  endforeach()
  set(output ${PROJECT_BINARY_DIR}/catalogs/${name}_${ARG_FOLDER}.cpp)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"// Generated from the files of src/${name}/${ARG_FOLDER}/.
#include \"${ARG_HEADER}\"
namespace ${ARG_NAMESPACE}::${ARG_FOLDER} {
${declarations}
std::vector<${ARG_TYPE}> catalog() {
  std::vector<${ARG_TYPE}> kinds;
${calls}  return kinds;
}
}  // namespace ${ARG_NAMESPACE}::${ARG_FOLDER}
")
  target_sources(gossamer_${name} PRIVATE ${output})
endfunction()

# gossamer_embed(name FILE data/… FUNCTION a::b::f): the bytes of a file of the repository become part of the library, as
# `std::span<const unsigned char> a::b::f()`, so that a binary copied elsewhere needs no file beside it. The file that uses
# the function declares it.
function(gossamer_embed name)
  cmake_parse_arguments(ARG "" "FILE;FUNCTION" "" ${ARGN})
  set(file ${PROJECT_SOURCE_DIR}/${ARG_FILE})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "^(.*)::([^:]*)$" "\\1;\\2" parts ${ARG_FUNCTION})
  list(GET parts 0 namespace)
  list(GET parts 1 function)
  set(output ${PROJECT_BINARY_DIR}/embedded/${name}_${function}.cpp)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"// Generated from ${ARG_FILE}.
#include <span>
namespace ${namespace} {
std::span<const unsigned char> ${function}();
std::span<const unsigned char> ${function}() {
  static constexpr unsigned char kBytes[] = {
${bytes}};
  return kBytes;
}
}  // namespace ${namespace}
")
  target_sources(gossamer_${name} PRIVATE ${output})
endfunction()

# gossamer_embed_folder(name FOLDER src/… FUNCTION a::b::f): the same of all files of a folder, as
# `std::vector<std::pair<std::string_view, std::span<const unsigned char>>> a::b::f()`: the name of each file and its bytes.
function(gossamer_embed_folder name)
  cmake_parse_arguments(ARG "" "FOLDER;FUNCTION" "" ${ARGN})
  file(GLOB files RELATIVE ${PROJECT_SOURCE_DIR}/${ARG_FOLDER} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${ARG_FOLDER}/*)
  string(REGEX REPLACE "^(.*)::([^:]*)$" "\\1;\\2" parts ${ARG_FUNCTION})
  list(GET parts 0 namespace)
  list(GET parts 1 function)
  set(declarations "")
  set(entries "")
  foreach(file ${files})
    string(MAKE_C_IDENTIFIER ${file} identifier)
    gossamer_embed(${name} FILE ${ARG_FOLDER}/${file} FUNCTION ${namespace}::${function}_${identifier})
    string(APPEND declarations "std::span<const unsigned char> ${function}_${identifier}();\n")
    string(APPEND entries "      {\"${file}\", ${function}_${identifier}()},\n")
  endforeach()
  set(output ${PROJECT_BINARY_DIR}/embedded/${name}_${function}.cpp)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"// Generated from ${ARG_FOLDER}.
#include <span>
#include <string_view>
#include <utility>
#include <vector>
namespace ${namespace} {
${declarations}std::vector<std::pair<std::string_view, std::span<const unsigned char>>> ${function}();
std::vector<std::pair<std::string_view, std::span<const unsigned char>>> ${function}() {
  return {
${entries}  };
}
}  // namespace ${namespace}
")
  target_sources(gossamer_${name} PRIVATE ${output})
endfunction()

# gossamer_wire(name SCHEMA net/wire/gossip.capnp): compiles src/<SCHEMA> with Cap'n Proto into the library <name>, where it
# is included as "<SCHEMA>.h". Generated code is not held to our warnings.
function(gossamer_wire name)
  cmake_parse_arguments(ARG "" "SCHEMA" "" ${ARGN})
  set(CAPNPC_SRC_PREFIX ${PROJECT_SOURCE_DIR}/src)
  set(CAPNPC_OUTPUT_DIR ${PROJECT_BINARY_DIR}/wire)
  file(MAKE_DIRECTORY ${CAPNPC_OUTPUT_DIR})
  capnp_generate_cpp(sources headers ${PROJECT_SOURCE_DIR}/src/${ARG_SCHEMA})
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS -w)
  target_sources(gossamer_${name} PRIVATE ${sources} ${headers})
  target_include_directories(gossamer_${name} SYSTEM PRIVATE ${CAPNPC_OUTPUT_DIR})
endfunction()
