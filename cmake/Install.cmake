# What `cmake --install` puts where; README.md, "Installing". Components:
# `runtime` is what a program with compiled kernels needs, `compiler` the rest.

include(CMakePackageConfigHelpers)

set(ATTN_INSTALL_PYTHONDIR "lib/python" CACHE STRING
  "Where the Python package goes, below the prefix.")
set(ATTN_INSTALL_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/attn)

install(TARGETS attn-opt attn-compile attn-run attn-bench
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT compiler)
install(TARGETS attn EXPORT attnTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT compiler)
install(TARGETS attn-runtime attn-runtime-static EXPORT attnRuntimeTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
install(FILES include/attn-c/attn.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attn-c COMPONENT runtime)
install(FILES docs/artifact.md LICENSE
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/attn COMPONENT runtime)

install(FILES share/attn/plans.json
  DESTINATION ${CMAKE_INSTALL_DATADIR}/attn COMPONENT compiler)

# find_package(attn): attn::attn, attn::runtime, attn::runtime_static.
install(EXPORT attnTargets NAMESPACE attn::
  DESTINATION ${ATTN_INSTALL_CMAKEDIR} COMPONENT compiler)
install(EXPORT attnRuntimeTargets NAMESPACE attn::
  DESTINATION ${ATTN_INSTALL_CMAKEDIR} COMPONENT runtime)
configure_package_config_file(cmake/attnConfig.cmake.in
  ${CMAKE_BINARY_DIR}/cmake/attnConfig.cmake
  INSTALL_DESTINATION ${ATTN_INSTALL_CMAKEDIR})
write_basic_package_version_file(
  ${CMAKE_BINARY_DIR}/cmake/attnConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_BINARY_DIR}/cmake/attnConfig.cmake
  ${CMAKE_BINARY_DIR}/cmake/attnConfigVersion.cmake
  DESTINATION ${ATTN_INSTALL_CMAKEDIR} COMPONENT runtime)

# pkg-config. The prefix is found from where the file lies: `cmake --install`
# may name another one than was configured.
set(ATTN_INSTALL_PKGCONFIGDIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH ATTN_PREFIX_OF_PKGCONFIG
  /prefix/${ATTN_INSTALL_PKGCONFIGDIR} /prefix)
foreach(library_and_component attn:compiler attn-runtime:runtime)
  string(REPLACE ":" ";" pair ${library_and_component})
  list(GET pair 0 library)
  list(GET pair 1 component)
  configure_file(cmake/${library}.pc.in ${CMAKE_BINARY_DIR}/cmake/${library}.pc
    @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/cmake/${library}.pc
    DESTINATION ${ATTN_INSTALL_PKGCONFIGDIR} COMPONENT ${component})
endforeach()

# The Python package finds the libraries beside itself.
install(DIRECTORY python/attn DESTINATION ${ATTN_INSTALL_PYTHONDIR}
  COMPONENT runtime
  FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)
file(RELATIVE_PATH libraries_of_package
  /prefix/${ATTN_INSTALL_PYTHONDIR}/attn /prefix/${CMAKE_INSTALL_LIBDIR})
foreach(library_and_component attn:compiler attn-runtime:runtime)
  string(REPLACE ":" ";" pair ${library_and_component})
  list(GET pair 0 library)
  list(GET pair 1 component)
  install(CODE "
    file(MAKE_DIRECTORY
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${ATTN_INSTALL_PYTHONDIR}/attn\")
    file(CREATE_LINK ${libraries_of_package}/lib${library}.so.0
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${ATTN_INSTALL_PYTHONDIR}/attn/lib${library}.so\"
      SYMBOLIC)"
    COMPONENT ${component})
endforeach()
