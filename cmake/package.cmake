# What CPack lays out: the program, its page for man, the completions of shells, the licence. Packages are
# made of the static program (scripts/package.sh), so they depend on no other package.
if(NOT GOSSAMER_HAS_STATIC)
  return()
endif()
include(GNUInstallDirs)

set(generated ${PROJECT_BINARY_DIR}/reference)
file(MAKE_DIRECTORY ${generated})
add_custom_command(
  OUTPUT ${generated}/gossamer.1.gz ${generated}/gossamer ${generated}/_gossamer ${generated}/gossamer.fish
  COMMAND gossamer_static man | gzip -9n > ${generated}/gossamer.1.gz
  COMMAND gossamer_static completions bash > ${generated}/gossamer
  COMMAND gossamer_static completions zsh > ${generated}/_gossamer
  COMMAND gossamer_static completions fish > ${generated}/gossamer.fish
  DEPENDS gossamer_static VERBATIM COMMENT "The page for man and the completions of shells")
# The static program contains these libraries, whose licences ask for their notices.
set(notices ${PROJECT_SOURCE_DIR}/LICENSE)
foreach(package libasio-dev libcapnp-dev libcli11-dev libeigen3-dev libfmt-dev libgcc-s1 libssl-dev libtomlplusplus-dev
        libxxhash-dev nlohmann-json3-dev zlib1g-dev libc6-dev)
  list(APPEND notices /usr/share/doc/${package}/copyright)
endforeach()
add_custom_command(OUTPUT ${generated}/copyright COMMAND cat ${notices} > ${generated}/copyright DEPENDS ${notices} VERBATIM
                   COMMENT "The notices of the libraries in the program")
add_custom_target(gossamer_package DEPENDS gossamer_static ${generated}/gossamer.1.gz ${generated}/copyright)

install(TARGETS gossamer_static RUNTIME COMPONENT program)
install(FILES ${generated}/gossamer.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES ${generated}/gossamer DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
install(FILES ${generated}/_gossamer DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT program)
install(FILES ${generated}/gossamer.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
install(FILES ${generated}/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR}
        COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program FILES_MATCHING PATTERN "*.md"
        PATTERN images EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/experiments/quickstart.toml DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT program)

set(CPACK_PACKAGE_NAME gossamer)
set(CPACK_PACKAGE_VENDOR "The Gossamer authors")
set(CPACK_PACKAGE_CONTACT "The Gossamer authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains one model on many machines by gossip, without a server")
set(CPACK_PACKAGE_DESCRIPTION "Every machine runs the same program, a peer: it keeps the whole model and its own data, trains on them, and averages
parameters with its neighbours on a graph.")
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};gossamer;program;/")
set(CPACK_COMPONENTS_ALL program)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_FILE_NAME gossamer-${PROJECT_VERSION}-linux-x86_64)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
include(CPack)
