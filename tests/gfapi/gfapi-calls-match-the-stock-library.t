#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A program makes 400 calls with GlusterFS's library and with Kiln's, on the same volume: paths, names, attributes, data, positions,
# locks, extended attributes, directories, objects and their handles, and calls as another user. All results and errors are equal, but for the known differences
# below. Both libraries have the same names and versions.
# Covers: api/path.c, api/names.c, api/attr.c, api/io.c, api/file.c, api/xattr.c, api/dir.c, api/object.c, api/request.c, api/gfapi.map

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/gfapi.sh"

stock=/usr/lib/x86_64-linux-gnu/libgfapi.so.0
[[ -e $stock ]] || skip_all "no $stock"
symbols() {
    nm -D --defined-only --with-symbol-versions "$1" | sed -n 's/.* T //p' | sort
}
is "$(symbols "$gfapi_dir/libgfapi.so.0" | diff - <(symbols "$stock"))" "" "both libraries have the same names and versions"

calls() {
    "$1" timeout 240 python3 "$(dirname "$0")/calls_work.py" localhost v "/$1" "$T/log/$1.log" >"$T/$1.out" 2>"$T/log/$1.err"
}
mkdir -p "$T/b"
front_start
kiln volume create v replica 2 "$T"/b/{1,2,3,4}
kiln volume start v
t "the program runs with Kiln's library" calls with_kiln
t "the program runs with GlusterFS's library" calls with_stock

# GlusterFS's library differs from Kiln's: the stock library takes an unknown transport for TCP, has no attributes of the path "//", passes
# over a slash behind a file or a link, moves a position below 0, lets programs change gfids, says ENOENT of an object that is
# gone (Kiln's: ESTALE), and has other errnos. Missing default ACLs: Kiln's library answers for kilnd's bricks as both libraries
# answer for GlusterFS's bricks.
cat >"$T/known" <<'EOS'
< server 0 0
> server 0 EINVAL
< stat d/f/ 0 0o100640 1 0 0 10 0
< lstat d/f/ 0 0o100640 1 0 0 10 0
> stat d/f/ ENOTDIR
> lstat d/f/ ENOTDIR
< stat // 0 0o0 0 0 0 - 0
< lstat // 0 0o0 0 0 0 - 0
> stat // 0 0o40755 - 0 0 - 0
> lstat // 0 0o40755 - 0 0 - 0
< lstat d/to-dir/ 0 0o120777 1 0 0 - 0
< readlink d/to-dir/ 1 b'e'
> lstat d/to-dir/ 0 0o40750 - 0 0 - 0
> readlink d/to-dir/ EINVAL 
< link . d d2 -> EISDIR
> link . d d2 -> EPERM
< rename . d/e d/f -> EISDIR
> rename . d/e d/f -> ENOTDIR
< lseek . -100 1 -> -92
> lseek . -100 1 -> EINVAL
< setxattr . x trusted.gfid 0123456789abcdef 16 0 -> 0
> setxattr . x trusted.gfid 0123456789abcdef 16 0 -> EPERM
< h_create_from_handle . 0123456789abcdef 16 . -> ENOENT
> h_create_from_handle . 0123456789abcdef 16 . -> ESTALE
< h_link 0 EEXIST EISDIR
> h_link 0 EEXIST EPERM
< h_stat an object without names ENOENT
< h_anonymous_read ENOENT
< h_create_from_handle . . 16 . -> ENOENT
> h_stat an object without names ESTALE
> h_anonymous_read ESTALE
> h_create_from_handle . . 16 . -> ESTALE
< acl file 16384 ENODATA
> acl file 16384 EACCES
< acl set file 16384 u::rwx,u:12:r-x,g::r-x,m::r-x,o::r-x EACCES ENODATA
> acl set file 16384 u::rwx,u:12:r-x,g::r-x,m::r-x,o::r-x EACCES EACCES
< acl set without entries file EINVAL ENODATA
> acl set without entries file EACCES EACCES
< acl folder 16384 ENODATA
> acl folder 16384 
< acl set without entries folder EINVAL user::rwx,user:12:r-x,group::r-x,mask::r-x,other::r-x
> acl set without entries folder 0 
EOS
diff "$T/with_stock.out" "$T/with_kiln.out" | grep '^[<>]' >"$T/differences" || true
is "$(diff "$T/known" "$T/differences")" "" "all results are equal, but for the known differences"

is "$(with_kiln timeout 240 python3 "$(dirname "$0")/calls_work.py" localhost v /ours "$T/log/ours.log" ours | sed '1,/----/d')" \
    "open . data 0 -> made
write . x 1 0 -> EBADF
close . -> 0
stat a ELOOP
stat a/x ELOOP
lstat a 0 0o120777 1 0 0 - 0
creat . a 2 384 -> ELOOP
h_lookupat . . x . 0 -> ENOTDIR
fini True" "loops of symbolic links, and writes to a file that is open for reading, are errors"
