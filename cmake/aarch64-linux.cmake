# 64-bit ARM from an x86 Debian, tests by qemu:
#   cmake -S . -B build/arm64 -G Ninja --toolchain cmake/aarch64-linux.cmake [-DFOREBAY_SYSROOT=DIR]
# with g++-12-aarch64-linux-gnu and qemu-user, and the libraries of tools/packages.sh for arm64: installed
# (dpkg --add-architecture arm64), or unpacked into a folder of their own (tools/arm64.sh does that).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++-12)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES FOREBAY_SYSROOT)
if(FOREBAY_SYSROOT)
  set(CMAKE_SYSROOT ${FOREBAY_SYSROOT})
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${FOREBAY_SYSROOT})
  set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
