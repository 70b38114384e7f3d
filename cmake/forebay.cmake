# What every folder's CMakeLists.txt uses: one library per folder, one test program per tested folder.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON)  # statement expressions (TRY)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)

add_library(forebay_flags INTERFACE)
target_include_directories(forebay_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
# No contraction: a product and a sum round separately unless a kernel asks for fma by name, so that
# the same source gives the same bits in every translation unit.
target_compile_options(forebay_flags INTERFACE -Wall -Wextra -Werror -ffp-contract=off
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)  # GCC 12 sees overlaps in std::string's + that are not there
string(REPLACE -O3 -O2 CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")  # kernels ask for more by name
set(forebay_kernel_options -O3)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(forebay_vector_options -march=armv8.2-a+dotprod)
else()
  set(forebay_vector_options -mavx2 -mfma -mf16c)
endif()
if(FOREBAY_SANITIZE)
  set(forebay_kernel_options -O1)  # instrumented loops gain nothing from more
  # Tests run once for each time they are compiled: what they test is optimised, they are not. Nor is what puts the
  # parts together: it takes longer to optimise than it ever runs.
  set(forebay_unoptimized cli eval lab plan server)
  target_compile_options(forebay_flags INTERFACE -fsanitize=${FOREBAY_SANITIZE} -fno-sanitize-recover=all -g1
    $<IF:$<BOOL:$<TARGET_PROPERTY:FOREBAY_UNOPTIMIZED>>,-O0,-O1>
    -Wno-error)  # instrumented code makes GCC 12 warn of what is not there; the plain build is the one that is held to it
  target_link_options(forebay_flags INTERFACE -fsanitize=${FOREBAY_SANITIZE})
  # A null pointer stops the program without being looked for, and alignment can only be wrong where bytes are
  # read as something else; both checks at every access would double what there is to compile.
  if(FOREBAY_SANITIZE MATCHES undefined)
    target_compile_options(forebay_flags INTERFACE -fno-sanitize=null,object-size,vptr)
    set(forebay_raw_bytes core tensor quant gguf safetensors kernels trace session)
  endif()
endif()
if(FOREBAY_FUZZ)
  target_compile_options(forebay_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined -g1)
  target_link_options(forebay_flags INTERFACE -fsanitize=address,undefined)
endif()

# Most of a build is reading the same few headers again: they are read once for the libraries and once for the
# test programs. Every file still includes what it uses.
set(forebay_common_headers <algorithm> <cstdint> <functional> <map> <memory> <optional> <span> <string>
  <string_view> <variant> <vector> <fmt/format.h>)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/empty.cpp CONTENT "")
add_library(forebay_headers STATIC ${PROJECT_BINARY_DIR}/empty.cpp)
target_link_libraries(forebay_headers PRIVATE forebay_flags fmt::fmt Threads::Threads)
target_precompile_headers(forebay_headers PRIVATE ${forebay_common_headers})

# Inline functions (vectors, strings, JSON, formats) are most of what there is to compile, again in each file. Files
# compiled together have them once; whoever edits one file compiles it alone more quickly. A name has one meaning in a
# library then, anonymous namespaces included.
set(FOREBAY_UNITY 0 CACHE STRING "How many files of a library or test program to compile together; 0: each alone")
function(forebay_unity target)
  if(FOREBAY_UNITY GREATER 0)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${FOREBAY_UNITY})
    # A class that holds one of an anonymous namespace is odd in a header; GCC takes a file that is included for one.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# forebay_library(core SOURCES a.cpp b.cpp [AVX2 c_avx2.cpp] [LINK forebay_x fmt::fmt])
function(forebay_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;AVX2;LINK" ${ARGN})
  add_library(forebay_${name} STATIC ${arg_SOURCES} ${arg_AVX2})
  target_link_libraries(forebay_${name} PUBLIC forebay_flags ${arg_LINK})
  forebay_unity(forebay_${name})
  if(FOREBAY_SANITIZE AND name IN_LIST forebay_unoptimized)
    set_target_properties(forebay_${name} PROPERTIES FOREBAY_UNOPTIMIZED ON)  # and not with headers that were optimised
  else()
    target_precompile_headers(forebay_${name} REUSE_FROM forebay_headers)
  endif()
  if(FOREBAY_SANITIZE MATCHES undefined AND NOT name IN_LIST forebay_raw_bytes)
    target_compile_options(forebay_${name} PRIVATE -fno-sanitize=alignment)
  endif()
  # Built with its own flags, chosen at run time by the dispatching file beside it. On ARM core/vectors.h makes NEON of
  # the same source.
  set_source_files_properties(${arg_AVX2} PROPERTIES
    COMPILE_OPTIONS "${forebay_kernel_options};${forebay_vector_options}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

if(FOREBAY_TESTS)
  find_package(GTest REQUIRED)
  add_library(forebay_test_headers STATIC ${PROJECT_BINARY_DIR}/empty.cpp)
  set_target_properties(forebay_test_headers PROPERTIES FOREBAY_UNOPTIMIZED ON)
  if(NOT FOREBAY_SANITIZE)
    target_compile_options(forebay_test_headers PUBLIC -O1)  # a test runs once for each time it is compiled
  endif()
  target_compile_options(forebay_test_headers PUBLIC
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow>)  # GCC 12 at -O1, about std::string
  # What runs is instrumented; undefined behaviour of the tests' own statements would take longer to look for than
  # everything else to compile.
  target_compile_options(forebay_test_headers PUBLIC -fno-sanitize=undefined)
  target_link_libraries(forebay_test_headers PUBLIC forebay_flags GTest::gtest fmt::fmt nlohmann_json::nlohmann_json
    Threads::Threads)
  target_precompile_headers(forebay_test_headers PRIVATE ${forebay_common_headers} <gtest/gtest.h>
    <nlohmann/json.hpp>)
endif()

# forebay_test(core SOURCES a_test.cpp [LINK forebay_core] [LABELS slow] [COST 20])
# COST: about its seconds under a sanitizer, where they are many: the longest begin first.
function(forebay_test name)
  cmake_parse_arguments(arg "" "COST" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name}_tests ${arg_SOURCES})
  set_target_properties(${name}_tests PROPERTIES FOREBAY_UNOPTIMIZED ON)
  # What ./test leaves out of a sanitizer's run need not be built for it.
  if(FOREBAY_SANITIZE AND arg_LABELS)
    set_target_properties(${name}_tests PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_link_libraries(${name}_tests PRIVATE ${arg_LINK} forebay_test_headers GTest::gtest_main)
  target_precompile_headers(${name}_tests REUSE_FROM forebay_test_headers)
  forebay_unity(${name}_tests)
  target_compile_definitions(${name}_tests PRIVATE
    FOREBAY_TEST_DATA="${PROJECT_SOURCE_DIR}/tests" FOREBAY_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name}_tests)
  set(seconds 600)
  if(FOREBAY_SANITIZE)
    set(seconds 1800)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${seconds})
  if(arg_COST)
    set_tests_properties(${name} PROPERTIES COST ${arg_COST})
  endif()
endfunction()
