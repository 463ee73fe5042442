# The CUDA device, as one of three libraries with the same functions:
#   gossamer_cuda           src/gpu/cuda/ compiled with nvcc, where there is a CUDA toolkit
#   gossamer_cuda_emulated  the same sources compiled with the C++ compiler against an emulation, for tests; declared in
#                           tests/CMakeLists.txt
#   gossamer_cuda_absent    every function reports that there is no such device
# Programs link GOSSAMER_CUDA_LIBRARY: gossamer_cuda where it exists, else gossamer_cuda_absent.
include_guard()

if(NOT GOSSAMER_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "GOSSAMER_CUDA is AUTO, ON or OFF, not '${GOSSAMER_CUDA}'")
endif()

set(GOSSAMER_HAS_CUDA FALSE)
if(NOT GOSSAMER_CUDA STREQUAL "OFF")
  find_program(GOSSAMER_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin
               DOC "NVIDIA's compiler")
  mark_as_advanced(GOSSAMER_NVCC)
  if(CMAKE_CUDA_COMPILER OR DEFINED ENV{CUDACXX} OR GOSSAMER_NVCC)
    if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
      set(CMAKE_CUDA_COMPILER ${GOSSAMER_NVCC})
    endif()
    if(NOT CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})  # 'native' fails where there is no GPU
      set(CMAKE_CUDA_ARCHITECTURES "80;90" CACHE STRING "Generations of GPUs that kernels are compiled for")
    endif()
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.26 does not know this option of nvcc
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    endif()
    set(GOSSAMER_HAS_CUDA TRUE)
  elseif(GOSSAMER_CUDA STREQUAL "ON")
    message(FATAL_ERROR "GOSSAMER_CUDA=ON, but there is no nvcc: put it on the PATH, or give "
            "-DCMAKE_CUDA_COMPILER=…/bin/nvcc")
  endif()
endif()

file(GLOB_RECURSE GOSSAMER_CUDA_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/gpu/cuda/*.cu
     ${PROJECT_SOURCE_DIR}/src/gpu/cuda/*.cpp)

add_library(gossamer_cuda_absent STATIC ${PROJECT_SOURCE_DIR}/src/gpu/cuda_absent/absent.cpp)
target_link_libraries(gossamer_cuda_absent PUBLIC gossamer_gpu)
set(GOSSAMER_CUDA_LIBRARY gossamer_cuda_absent)

if(GOSSAMER_HAS_CUDA AND GOSSAMER_CUDA_SOURCES)
  set(sources ${GOSSAMER_CUDA_SOURCES})
  if(GOSSAMER_PRECOMPILE)  # one batch for each folder: nvcc reads the headers once for the host and once for the GPU
    list(FILTER sources EXCLUDE REGEX "\\.cu$")
    foreach(folder kernels training)
      file(GLOB members CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/gpu/cuda/${folder}/*.cu)
      list(TRANSFORM members REPLACE "(.+)" "#include \"\\1\"")
      list(JOIN members "\n" includes)
      set(batch ${PROJECT_BINARY_DIR}/generated/cuda/${folder}.cu)
      file(CONFIGURE OUTPUT ${batch} CONTENT "${includes}\n" @ONLY)
      list(APPEND sources ${batch})
    endforeach()
  endif()
  add_library(gossamer_cuda STATIC ${sources})
  target_compile_options(gossamer_cuda PRIVATE
                         "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-Xcompiler=-Wall,-Wextra>")
  # CUDA's runtime is linked statically and cuBLAS is loaded at its first use: the program starts on machines without CUDA.
  set_target_properties(gossamer_cuda PROPERTIES CUDA_STANDARD 20 CUDA_EXTENSIONS OFF CUDA_RUNTIME_LIBRARY Static)
  target_include_directories(gossamer_cuda SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  target_link_libraries(gossamer_cuda PUBLIC gossamer_gpu PRIVATE ${CMAKE_DL_LIBS})
  set(GOSSAMER_CUDA_LIBRARY gossamer_cuda)
  message(STATUS "CUDA device: ${CMAKE_CUDA_COMPILER} ${CMAKE_CUDA_COMPILER_VERSION}, for ${CMAKE_CUDA_ARCHITECTURES}")
else()
  message(STATUS "CUDA device: none (no nvcc)")
endif()
