#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kilnd and kiln-mount replace kadalu's glusterfsd and glusterfs. Pools of each type are served from kadalu's volfiles
# and command lines, and mounted without a glusterd by kiln-mount and by the stock client. The bricks serve the client
# volfile.
# Covers: rpc/server/volfile-serve.c, glusterfsd/options.c, mount/spec.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$kiln_lib/kadalu.sh"

kadalu_programs

works() {
    local mnt=$1 name=$2
    mkdir -p "$mnt/$name" && seq 1000 >"$mnt/$name/file" && cmp <(seq 1000) "$mnt/$name/file" &&
        [[ $(ls "$mnt/$name") == file ]] && rm -r "${mnt:?}/$name"
}

for type in Replica1 Replica2 Replica3 Arbiter Disperse; do
    pool=pool-${type,,}
    kadalu_pool "$pool" "$type"
    t_here "$type: the bricks start without a glusterd" kadalu_bricks_start "$pool"
    t "$type: kiln-mount mounts the pool" kadalu_mount "$pool" "$T/$pool-kiln" kiln
    t "$type: the stock client mounts the pool" kadalu_mount "$pool" "$T/$pool-stock" stock
    is "$(findmnt -n -o SOURCE --mountpoint "$T/$pool-kiln")" "kadalu:$pool" "$type: the mount table names the pool"
    t "$type: files can be made and removed through kiln-mount" works "$T/$pool-kiln" a
    t "$type: files can be made and removed through the stock client" works "$T/$pool-stock" b
    umount "$T/$pool-kiln" "$T/$pool-stock"
    t_here "$type: the bricks end with status 0 on SIGTERM" kadalu_bricks_stop
done
