# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# gfapi: programs of Debian that open volumes themselves, with Kiln's libgfapi in the place of stock's.
#
#   with_kiln COMMAND...     runs a program with the library of the build
#   with_stock COMMAND...    runs a program with Debian's library

gfapi_dir=${KILN_BUILD:-$source_dir/build}
[[ -e $gfapi_dir/libgfapi.so.0 ]] || skip_all "there is no $gfapi_dir/libgfapi.so.0: build first"
! grep -q '^SAN_FLAGS = ..*' "$gfapi_dir/Makefile" || skip_all "a sanitizer belongs to the program, which is Debian's"

with_kiln() {
    LD_LIBRARY_PATH=$gfapi_dir "$@"
}

with_stock() {
    LD_LIBRARY_PATH='' "$@"
}
