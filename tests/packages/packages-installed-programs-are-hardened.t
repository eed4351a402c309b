#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# `make install` of a build with default options installs programs hardened as Debian's packages are: loaded at random
# addresses, with a stack protector, checked string functions, and relocations that are resolved at start and
# read-only afterwards.
# Covers: configure.ac

. "$(dirname "$0")/../lib/kiln.sh"

[[ -f $KILN_BUILD/Makefile ]] || skip_all "$KILN_BUILD is no configured build"
! grep -qE '^KILN_LDFLAGS = *$' "$KILN_BUILD/Makefile" || skip_all "$KILN_BUILD is a build without hardening"

t "make install succeeds" make -C "$KILN_BUILD" install DESTDIR="$T/root"

is_moved() { [[ $(readelf -hW "$1") =~ Type:\ +DYN ]]; }
has_relro() { [[ $(readelf -lW "$1") == *GNU_RELRO* ]]; }
binds_early() { [[ $(readelf -dW "$1") =~ FLAGS[^$'\n']*NOW ]]; }
has_canaries() { [[ $(readelf --dyn-syms -W "$1") == *UND\ __stack_chk_fail* ]]; }
has_checked_functions() { [[ $(readelf --dyn-syms -W "$1") =~ UND\ __[a-rt-z][a-z]*_chk@ ]]; }

count=0
while IFS= read -r -d '' file; do
    [[ $(head -c 4 "$file" | tail -c 3) == ELF ]] || continue
    name=${file#"$T/root"} count=$((count + 1))
    t "$name is position independent" is_moved "$file"
    t "$name has read-only relocations" has_relro "$file"
    t "$name binds all symbols at its start" binds_early "$file"
    t "$name has a stack protector" has_canaries "$file"
    # The pool library calls no function that has a checked form.
    [[ $name == *libkiln-mempool* ]] || t "$name calls checked functions" has_checked_functions "$file"
done < <(find "$T/root" -type f \( -perm -100 -o -name '*.so*' \) -print0)
t "kilnd, kiln, kiln-mount and the library have been checked" test "$count" -ge 4
