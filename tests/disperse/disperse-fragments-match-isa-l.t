#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The erasure code of dispersed volumes and ISA-L compute the same fragments of random bytes, and each decodes the other's, for all
# geometries from 2+1 to 16+15 and with each instruction set of the processor.
# Covers: xlators/cluster/disperse/codec.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -e /usr/include/isa-l.h ]] || skip_all "there is no /usr/include/isa-l.h: install libisal-dev"

t "the program is compiled with ISA-L" gcc -std=gnu17 -O2 -Wall -Wextra -D_GNU_SOURCE -I"$source_dir" -I"$source_dir/libglusterfs" \
    "$source_dir/tests/disperse/isal-fragments.c" "$source_dir/xlators/cluster/disperse/codec.c" -o "$T/fragments" -lisal
for seed in 1 2 3; do
    t "all fragments and bytes are equal with the seed $seed" "$T/fragments" "$seed"
done
