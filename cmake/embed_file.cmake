# Writes a C file with the bytes of IN as the array SYMBOL.
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUT}
    "extern const char ${SYMBOL}[];\nconst char ${SYMBOL}[] = {${bytes}0};\n")
