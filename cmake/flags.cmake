# The compiler's flags: gossamer_flags, which every module and program takes, and the same for a twin that a sanitizer watches
# (cmake/sanitizers.cmake): gossamer_flags_asan and gossamer_flags_tsan.
include_guard()

# No -ffast-math and no silent contraction to FMA: the order and rounding of additions are part of the result, and must not
# depend on where a vectorised loop ends and its remainder begins.
set(common_options -Wall -Wextra -Wpedantic -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND common_options -Wno-array-bounds -Wno-stringop-overread)  # GCC 12 takes moved strings for reads out of bounds
endif()
if(GOSSAMER_PRECOMPILE)  # sources are compiled in batches: GCC takes all but the batch's own lines for headers
  list(APPEND common_options -Wno-subobject-linkage)
endif()
# GCC collects its garbage again and again, which takes a fifth of a build. It need not before each core's share of half of the
# memory is full.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  cmake_host_system_information(RESULT gossamer_memory QUERY TOTAL_PHYSICAL_MEMORY)  # MiB
  cmake_host_system_information(RESULT gossamer_cores QUERY NUMBER_OF_LOGICAL_CORES)
  math(EXPR gossamer_heap "${gossamer_memory} * 512 / ${gossamer_cores}")  # KiB
  if(gossamer_heap GREATER 3000000)
    set(gossamer_heap 3000000)
  endif()
  if(gossamer_heap GREATER 131072)  # GCC's own most
    list(APPEND common_options --param=ggc-min-heapsize=${gossamer_heap})
  endif()
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND common_options -march=${GOSSAMER_CPU})
endif()

function(gossamer_flags_library name)
  add_library(${name} INTERFACE)
  target_compile_options(${name} INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${common_options};${ARGN}>")
endfunction()

# Peers read bytes from strangers, so the program is hardened; tests/python/test_hostile_files.py checks it. The Python package
# links the modules into a shared library; hidden symbols cost no indirection.
gossamer_flags_library(gossamer_flags -fstack-protector-strong -fPIC -fvisibility=hidden -fvisibility-inlines-hidden
                       "$<$<CONFIG:Release>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")  # it needs optimisation
target_link_options(gossamer_flags INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie> LINKER:-z,relro,-z,now)

# -Og takes a third less time to compile than -O1, and the tests run as fast.
# The release build warns; beside sanitizers some warnings are false (GCC's manual), and all take time.
set(sanitized_options -Og -UNDEBUG -fno-omit-frame-pointer -g1 -w)
# These checks take two thirds of the compile time. A null is found by what it faults; AddressSanitizer itself finds what is read
# beyond an object, after its end, or through a pointer that has overflowed.
gossamer_flags_library(gossamer_flags_asan ${sanitized_options} -fsanitize=address,undefined -fno-sanitize=null,alignment,object-size,vptr,pointer-overflow)
target_link_options(gossamer_flags_asan INTERFACE -fsanitize=address,undefined)
# Asio uses a fence that ThreadSanitizer does not model.
gossamer_flags_library(gossamer_flags_tsan ${sanitized_options} -fsanitize=thread)
target_link_options(gossamer_flags_tsan INTERFACE -fsanitize=thread)
