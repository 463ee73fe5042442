# The target gossamer_static: the program as one file that needs no shared library, and so runs on every x86-64 Linux. It links the
# objects of the other program a second time, so it costs a link only. The CUDA device loads its libraries when it starts, which
# such a program cannot, so it has none. There is no such target where a static library is missing.
include_guard()

set(GOSSAMER_HAS_STATIC TRUE)
set(static_libraries "")
foreach(name capnp kj-http kj-async kj ssl crypto z)
  find_library(GOSSAMER_STATIC_${name} lib${name}.a)
  mark_as_advanced(GOSSAMER_STATIC_${name})
  if(NOT GOSSAMER_STATIC_${name})
    message(STATUS "Static program: none (no lib${name}.a)")
    set(GOSSAMER_HAS_STATIC FALSE)
    return()
  endif()
  list(APPEND static_libraries ${GOSSAMER_STATIC_${name}})
endforeach()

add_library(gossamer_static_libraries STATIC EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/static_libraries.cpp)
target_compile_options(gossamer_static_libraries PRIVATE -w -fPIC)
target_compile_definitions(gossamer_static_libraries PRIVATE TOML_HEADER_ONLY=0)

add_executable(gossamer_static EXCLUDE_FROM_ALL $<TARGET_OBJECTS:gossamer>)
set_target_properties(gossamer_static PROPERTIES OUTPUT_NAME gossamer RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/static)
set(modules gossamer_cli gossamer_peer gossamer_cuda_absent gossamer_net gossamer_gossip gossamer_theory gossamer_topology
    gossamer_train gossamer_gpu gossamer_linear_algebra gossamer_base gossamer_static_libraries)
add_dependencies(gossamer_static ${modules})
list(TRANSFORM modules REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)
target_link_options(gossamer_static PRIVATE -static-pie LINKER:-z,relro,-z,now)
target_link_libraries(gossamer_static PRIVATE -Wl,--start-group ${archives} ${static_libraries} -Wl,--end-group Threads::Threads)
