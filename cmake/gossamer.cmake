# The two ways in which this project declares code: a folder is a library, and a folder is a registry.
include_guard()

# gossamer_library(name DEPS a b …): every source of src/<name>/ (plug-in folders included) is one static library, but for
# src/gpu/cuda*/, which cmake/cuda.cmake makes libraries of their own of.
# The order of these calls in CMakeLists.txt is the order of the rooms: a library may depend only on earlier ones.
function(gossamer_library name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$|/gpu/cuda(_absent)?/")
  add_library(gossamer_${name} STATIC ${sources})
  target_include_directories(gossamer_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(gossamer_${name} PUBLIC gossamer_flags ${ARG_DEPS})
  gossamer_precompile(gossamer_${name})
endfunction()

# gossamer_precompile(target HEADER…): what most of the target's sources include, and `HEADER…`, is read once.
function(gossamer_precompile target)
  if(GOSSAMER_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE <fmt/format.h> <algorithm> <functional> <map> <memory> <string> <vector> ${ARGN})
  endif()
endfunction()

# gossamer_together(target): its sources are compiled several at a time. For a target whose headers take longer than its own
# code: templates of CLI11 and JSON are then made once for all of them. No two of its files may give one name two meanings.
function(gossamer_together target)
  if(GOSSAMER_PRECOMPILE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()

# gossamer_catalog(name FOLDER kinds TYPE TopologyKind HEADER topology/kind.hpp NAMESPACE gossamer::topology)
# Writes a source file that calls one function per file of src/<name>/<FOLDER>/, named as the file, and adds it to the
# library: `std::vector<TYPE> NAMESPACE::FOLDER::catalog()`. Adding a kind is adding one file; a wrong name is a link error.
function(gossamer_catalog name)
  cmake_parse_arguments(ARG "" "FOLDER;TYPE;HEADER;NAMESPACE" "" ${ARGN})
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/${ARG_FOLDER}/*.cpp)
  list(SORT files)
  set(declarations "")
  set(calls "")
  foreach(file ${files})
    get_filename_component(kind ${file} NAME_WE)
    string(APPEND declarations "${ARG_TYPE} ${kind}();\n")
    string(APPEND calls "  kinds.push_back(${kind}());\n")
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
# `std::span<const unsigned char> a::b::f()`, so that a binary copied elsewhere needs no file beside it. Whoever uses the
# function declares it.
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
namespace {
constexpr unsigned char kBytes[] = {
${bytes}};
}  // namespace
std::span<const unsigned char> ${function}();
std::span<const unsigned char> ${function}() { return kBytes; }
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
