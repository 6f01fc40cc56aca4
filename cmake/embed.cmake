# ho_embed(TARGET SYMBOL FILE): FILE becomes `const char SYMBOL[]` (zero-terminated) in TARGET.
function(ho_embed target symbol file)
    set(out ${CMAKE_BINARY_DIR}/generated/embed/${symbol}.c)
    add_custom_command(OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} -DIN=${CMAKE_CURRENT_SOURCE_DIR}/${file} -DOUT=${out}
                -DSYMBOL=${symbol} -P ${CMAKE_SOURCE_DIR}/cmake/embed_file.cmake
        DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${CMAKE_SOURCE_DIR}/cmake/embed_file.cmake
        COMMENT "Embedding ${file}")
    target_sources(${target} PRIVATE ${out})
endfunction()
