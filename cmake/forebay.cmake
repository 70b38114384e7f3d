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
if(FOREBAY_SANITIZE)
  target_compile_options(forebay_flags INTERFACE -fsanitize=${FOREBAY_SANITIZE} -fno-sanitize-recover=all -O1 -g1)
  target_link_options(forebay_flags INTERFACE -fsanitize=${FOREBAY_SANITIZE})
endif()
if(FOREBAY_FUZZ)
  target_compile_options(forebay_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined -g1)
  target_link_options(forebay_flags INTERFACE -fsanitize=address,undefined)
endif()

# forebay_library(core SOURCES a.cpp b.cpp [AVX2 c_avx2.cpp] [LINK forebay_x fmt::fmt])
function(forebay_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;AVX2;LINK" ${ARGN})
  add_library(forebay_${name} STATIC ${arg_SOURCES} ${arg_AVX2})
  target_link_libraries(forebay_${name} PUBLIC forebay_flags ${arg_LINK})
  # Built with its own flags, chosen at run time by the dispatching file beside it.
  set_source_files_properties(${arg_AVX2} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c")
endfunction()

# forebay_test(core SOURCES a_test.cpp [LINK forebay_core] [LABELS slow])
function(forebay_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name}_tests ${arg_SOURCES})
  target_link_libraries(${name}_tests PRIVATE ${arg_LINK} GTest::gtest_main)
  target_compile_definitions(${name}_tests PRIVATE
    FOREBAY_TEST_DATA="${PROJECT_SOURCE_DIR}/tests" FOREBAY_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name}_tests)
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 600)
endfunction()
