# Compiler flags on one interface target. Contraction is off everywhere in host code: money must
# have the same bits on every machine; network code asks for fmaf or BLAS by name.
add_library(ho_flags INTERFACE)
target_include_directories(ho_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
target_compile_definitions(ho_flags INTERFACE _GNU_SOURCE HYPEROPT_VERSION="${PROJECT_VERSION}")
target_compile_options(ho_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off -fno-math-errno -Wall -Wextra -Wshadow -Wpointer-arith
    -Wcast-qual -Wformat=2 -Wundef -Wvla>
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition>)
if(HYPEROPT_WERROR)
    target_compile_options(ho_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
endif()
if(HYPEROPT_SANITIZE)
    target_compile_options(ho_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${HYPEROPT_SANITIZE}
        -fno-omit-frame-pointer -fno-sanitize-recover=all>)
    target_link_options(ho_flags INTERFACE -fsanitize=${HYPEROPT_SANITIZE})
endif()
target_link_libraries(ho_flags INTERFACE m)
if(HYPEROPT_COVERAGE)
    target_compile_options(ho_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:--coverage>)
    target_link_options(ho_flags INTERFACE --coverage)
endif()
