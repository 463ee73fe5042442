# Libraries that a sanitizer watches, beside the plain ones in one build: <target>_asan (AddressSanitizer and UBSan) and
# <target>_tsan (ThreadSanitizer). They are built when something that links them is built. What need not be watched is
# compiled once and is part of all three.
include_guard()

set(GOSSAMER_SANITIZERS asan tsan)

# gossamer_sanitized(OUTPUT SANITIZER target…): the targets' twins; a target without a twin is its own.
function(gossamer_sanitized output sanitizer)
  set(twins "")
  foreach(target ${ARGN})
    # A private dependency of a static library is written $<LINK_ONLY:target>.
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" name "${target}")
    if(TARGET ${name}_${sanitizer})
      string(REPLACE "${name}" "${name}_${sanitizer}" target "${target}")
    endif()
    list(APPEND twins "${target}")
  endforeach()
  set(${output} "${twins}" PARENT_SCOPE)
endfunction()

# gossamer_sanitize(target…): makes the twins of libraries, in the folder that declares them, after everything that is set on
# them, and each after its dependencies. A library with the property GOSSAMER_UNWATCHED has twins that hold its plain objects.
function(gossamer_sanitize)
  foreach(target ${ARGN})
    get_target_property(unwatched ${target} GOSSAMER_UNWATCHED)
    foreach(sanitizer ${GOSSAMER_SANITIZERS})
      set(twin ${target}_${sanitizer})
      if(unwatched)
        add_library(${twin} STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${target}>)
        set_target_properties(${twin} PROPERTIES LINKER_LANGUAGE CXX)
      else()
        get_target_property(sources ${target} SOURCES)
        add_library(${twin} STATIC EXCLUDE_FROM_ALL ${sources})
        foreach(property COMPILE_OPTIONS INCLUDE_DIRECTORIES UNITY_BUILD UNITY_BUILD_BATCH_SIZE PRECOMPILE_HEADERS)
          gossamer_copy_property(${property} ${target} ${twin})
        endforeach()
        get_target_property(reused ${target} PRECOMPILE_HEADERS_REUSE_FROM)
        if(reused)
          target_precompile_headers(${twin} REUSE_FROM ${reused}_${sanitizer})
        endif()
      endif()
      gossamer_copy_property(INTERFACE_INCLUDE_DIRECTORIES ${target} ${twin})
      foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
        get_target_property(libraries ${target} ${property})
        gossamer_sanitized(libraries ${sanitizer} ${libraries})
        set_target_properties(${twin} PROPERTIES ${property} "${libraries}")
      endforeach()
    endforeach()
  endforeach()
endfunction()

function(gossamer_copy_property property from to)
  get_target_property(value ${from} ${property})
  if(value)
    set_target_properties(${to} PROPERTIES ${property} "${value}")
  endif()
endfunction()
