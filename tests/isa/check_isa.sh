#!/bin/sh
# check_isa.sh <program>: fails, naming the functions, if AVX instructions are anywhere but in code that runs only after
# the processor was asked: the namespace of a backend, and inline functions in the namespace of its instruction set
# (Microscale_Macros.hpp). Such a function elsewhere would be one that the linker took from a source with flags of its
# own, in place of the same function compiled for every machine. Fails too if no vector code is found at all: then there
# was nothing to check.
set -eu
objdump --disassemble --demangle --no-show-raw-insn "$1" | awk '
  /^[0-9a-f]+ <.*>:$/ {
    name = $0
    sub(/^[0-9a-f]+ </, "", name)
    sub(/>:$/, "", name)
    guarded = name ~ /microscale::backend_[a-z0-9]+::/ || name ~ /microscale::isa[a-z0-9_]*_(avx|f)[a-z0-9_]*::/
    # names that objdump could not demangle
    guarded = guarded || name ~ /^_Z.*10microscale[0-9]+(backend_|isa[a-z0-9_]*_(avx|f))/
    next
  }
  /%zmm|%ymm|%k[0-7]|\tv[a-z]/ {
    if (guarded) inside++
    else if (!(name in seen)) { seen[name] = 1; print "AVX instructions in " name ": " $0; outside++ }
  }
  END {
    printf "%d AVX instructions in guarded functions, %d functions with some elsewhere\n", inside, outside
    exit outside > 0 || inside == 0
  }'
