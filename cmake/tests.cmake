# ho_add_test(NAME name LABELS unit SOURCES a.c LIBS ho_study [TIMEOUT s]): one cmocka program, one
# process, its own temporary directory through ctest's working directory. Exit code 77 is a skip.
function(ho_add_test)
    cmake_parse_arguments(T "" "NAME;TIMEOUT" "LABELS;SOURCES;LIBS;ARGS" ${ARGN})
    add_executable(${T_NAME} ${T_SOURCES})
    target_link_libraries(${T_NAME} PRIVATE ${T_LIBS} ho_flags PkgConfig::CMOCKA)
    target_include_directories(${T_NAME} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    target_compile_definitions(${T_NAME} PRIVATE HO_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
        HO_SHARED_DIR="${CMAKE_SOURCE_DIR}/../shared" HO_BINARY_DIR="${CMAKE_BINARY_DIR}")
    set(dir ${CMAKE_BINARY_DIR}/test-tmp/${T_NAME})
    file(MAKE_DIRECTORY ${dir})
    add_test(NAME ${T_NAME} COMMAND ${T_NAME} ${T_ARGS} WORKING_DIRECTORY ${dir})
    if(NOT T_TIMEOUT)
        set(T_TIMEOUT 300)
    endif()
    set_tests_properties(${T_NAME} PROPERTIES LABELS "${T_LABELS}" TIMEOUT ${T_TIMEOUT}
        SKIP_RETURN_CODE 77 ENVIRONMENT
        "HYPEROPT_FEATURE_CACHE=${dir}/feature-cache;TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp")
endfunction()
