# What src/train is built with: libtorch, and one precompiled <torch/torch.h> for all of it, which is most of the time
# that a file takes.
find_package(Torch REQUIRED)

find_path(FOREBAY_GLOO_INCLUDE gloo/algorithm.h)
find_library(FOREBAY_GLOO gloo)
# c10d's header for NCCL includes NCCL's own; a libtorch from a Python wheel has it in the wheel beside.
find_path(FOREBAY_NCCL_INCLUDE nccl.h HINTS "${TORCH_INSTALL_PREFIX}/../nvidia/nccl/include")
# Groups over Gloo or NCCL exist where libtorch was built with them and their headers are here.
set(forebay_torch_definitions "")
if(FOREBAY_GLOO_INCLUDE AND FOREBAY_GLOO)
  list(APPEND forebay_torch_definitions FOREBAY_HAS_GLOO USE_C10D_GLOO)
endif()
if(FOREBAY_NCCL_INCLUDE AND TORCH_CUDA_LIBRARIES)
  list(APPEND forebay_torch_definitions FOREBAY_HAS_NCCL USE_C10D_NCCL)
endif()

file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/empty.cpp CONTENT "")
add_library(forebay_torch_headers STATIC ${PROJECT_BINARY_DIR}/empty.cpp)
target_link_libraries(forebay_torch_headers PUBLIC forebay_flags ${TORCH_LIBRARIES} fmt::fmt Threads::Threads)
target_compile_definitions(forebay_torch_headers PUBLIC ${forebay_torch_definitions})
if(FOREBAY_HAS_NCCL IN_LIST forebay_torch_definitions)
  target_include_directories(forebay_torch_headers SYSTEM PUBLIC ${FOREBAY_NCCL_INCLUDE})
endif()
# A libtorch that brings headers of fmt brings no library for them: they are of another version than the system's, and
# come first. Their names carry that version, so both can be in one program.
foreach(directory ${TORCH_INCLUDE_DIRS})
  if(EXISTS ${directory}/fmt/format.h)
    target_compile_definitions(forebay_torch_headers PUBLIC FMT_HEADER_ONLY)
  endif()
endforeach()
# What libtorch's own inline functions make GCC 12 say.
target_compile_options(forebay_torch_headers PUBLIC -Wno-array-bounds -Wno-stringop-overflow -Wno-maybe-uninitialized)
target_precompile_headers(forebay_torch_headers PRIVATE <torch/torch.h> <fmt/format.h>)

# forebay_torch_library(train_nets SOURCES nets/net.cpp LINK forebay_model)
function(forebay_torch_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(forebay_${name} STATIC ${arg_SOURCES})
  target_link_libraries(forebay_${name} PUBLIC forebay_torch_headers ${arg_LINK})
  target_precompile_headers(forebay_${name} REUSE_FROM forebay_torch_headers)
endfunction()

# forebay_torch_test(train_nets SOURCES net_test.cpp LINK forebay_train_nets [LABELS slow] [COST 20])
function(forebay_torch_test name)
  cmake_parse_arguments(arg "" "COST" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name}_tests ${arg_SOURCES})
  target_link_libraries(${name}_tests PRIVATE ${arg_LINK} forebay_torch_headers GTest::gtest GTest::gtest_main)
  target_precompile_headers(${name}_tests REUSE_FROM forebay_torch_headers)
  target_compile_definitions(${name}_tests PRIVATE
    FOREBAY_TEST_DATA="${PROJECT_SOURCE_DIR}/tests" FOREBAY_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name}_tests)
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 600)
  if(arg_COST)
    set_tests_properties(${name} PROPERTIES COST ${arg_COST})
  endif()
endfunction()
