#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Debian's NFS-Ganesha exports a volume with Kiln's libgfapi: a client of libnfs writes, lists and reads files by NFS 4, the
# files are right on the bricks. Ganesha keeps attributes for 600 s: with upcalls NFS shows another client's change at once,
# and without upcalls (enable_upcall = false) NFS still shows the old size after the change. Writing and reading work with bricks of GlusterFS, too, and with its library on these bricks.
# Covers: api/object.c, api/upcall.c, api/request.c, api/gfapi.map

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/gfapi.sh"

has_ganesha || skip_all "no NFS-Ganesha, or no nfs-ls, nfs-cp and nfs-cat"
mkdir "$T/b"
# The write of Debian's nfs-cp fails for 6,000 bytes, also with GlusterFS's library.
head -c 3000 /dev/urandom >"$T/file"

works() { # WHAT
    t "a file is copied to $1" nfs-cp "$T/file" "$(nfs_url file)"
    t "the file is read from $1" eval 'nfs-cat "$(nfs_url file)" | cmp - "$T/file"'
    is "$(cmp -s "$T/b/v-0/file" "$T/file" && cmp -s "$T/b/v-1/file" "$T/file" && echo equal)" equal "both replicas of $1 are equal to the file"
    is "$(nfs-ls "$(nfs_url '')" | awk '{ print $NF, $5 }')" "file 3000" "the list of $1 has the name and the size"
}

size_by_nfs() { # PATH
    nfs-ls "$(nfs_url "${1%/*}")" | awk -v name="${1##*/}" '$NF == name { print $5 }'
}

size_is() { # PATH SIZE
    [[ $(size_by_nfs "$1") == "$2" ]]
}

# Changes a file whose old size NFS has shown. The caller looks for the new size.
change_by_mount() { # FILE
    echo old >"$T/mnt/dir/$1"
    t "NFS shows the size of $1" wait_for 30 "the file" size_is "dir/$1" 4
    echo longer >"$T/mnt/dir/$1"
    is "$(stat -c %s "$T/b/v-0/dir/$1" "$T/b/v-1/dir/$1" | xargs)" "7 7" "the bricks have the new size of $1"
}

seen_by_nfs() {
    [[ $(nfs-cat "$(nfs_url "$1")" 2>/dev/null) == "$2" ]]
}

if [[ $BRICKD == kiln ]]; then
    front_start
    kiln volume create v replica 2 "$T/b/v-0" "$T/b/v-1" >/dev/null
    kiln volume set v features.cache-invalidation on >/dev/null
    kiln volume start v >/dev/null
    t_here "NFS-Ganesha exports a volume of kilnd" ganesha_start kiln v localhost
    works "kilnd's volume"
    mkdir "$T/mnt"
    "$KILN_MOUNT" -s localhost --volfile-id v -l "$T/log/mount.log" "$T/mnt"
    mkdir "$T/mnt/dir"
    echo first >"$T/mnt/dir/other"
    t "NFS shows a file of another client" wait_for 30 "the file" seen_by_nfs dir/other first
    echo second, longer >"$T/mnt/dir/other"
    t "NFS shows the other client's change" wait_for 30 "the change" seen_by_nfs dir/other "second, longer"
    mv "$T/mnt/dir/other" "$T/mnt/dir/renamed"
    t "NFS shows the other client's rename" wait_for 30 "the name" seen_by_nfs dir/renamed "second, longer"
    change_by_mount with-upcalls
    t "with upcalls NFS shows the new size, although attributes are kept for 600 s" wait_for 60 "the size" size_is dir/with-upcalls 7
    ganesha_stop
    t_here "NFS-Ganesha exports the volume without upcalls" ganesha_start kiln v localhost false
    change_by_mount without-upcalls
    is "$(size_by_nfs dir/without-upcalls)" 4 "without upcalls NFS shows the old size, so the part with upcalls tells upcalls from a refresh"
    ganesha_stop
    rm "$T/mnt/file"
    umount "$T/mnt"
    front_stop
    rm -rf "$T/b"/*
fi
BRICKD=stock glusterd_bricks_start
gl volume create v replica 2 "$glusterd_host:$T/b/v-0" "$glusterd_host:$T/b/v-1" force >/dev/null
gl volume start v >/dev/null
wait_for 120 "the bricks" bricks_all_online v 2
for library in kiln stock; do
    t_here "NFS-Ganesha exports GlusterFS's volume by $library's library" ganesha_start "$library" v "$glusterd_host"
    works "GlusterFS's volume by $library's library"
    ganesha_stop
    mkdir -p "$T/clean"
    gl_mount v "$T/clean"
    rm "$T/clean/file"
    umount "$T/clean"
done
gl volume stop v >/dev/null
