#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# glusterfs-by-kiln.sh: stands in for /usr/sbin/glusterfs. kiln-mount does FUSE mounts; for other tasks (the
# self-heal daemon, rebalance, gfproxy, nfs, snapd, --version ...) the stock program runs with the same arguments. So
# `mount -t glusterfs`, fstab and scripts that call glusterfs mount by Kiln.
#
#   dpkg-divert --local --rename --divert /usr/sbin/glusterfs.distrib --add /usr/sbin/glusterfs
#   install -m 755 extras/glusterfs-by-kiln.sh /usr/sbin/glusterfs
#
# and back: `rm /usr/sbin/glusterfs`, and dpkg-divert with --remove in place of --add.
#
# A mount with options that kiln-mount lacks (gfids as names, as geo-replication needs; worm; selinux) is done by the stock program,
# too. KILN_MOUNT and GLUSTERFS_STOCK name the two programs, if they are elsewhere.
set -euo pipefail

: "${KILN_MOUNT:=/usr/sbin/kiln-mount}"
: "${GLUSTERFS_STOCK:=/usr/sbin/glusterfs.distrib}"

# Sets `place` to the last word, if it is no option and no option's value, and `is_fuse` to whether that is to be mounted.
look() {
    local word previous=
    place=
    is_fuse=yes
    for word in "$@"; do
        place=
        case $word in
            --process-name=fuse | --process-name=fuse.* | --*=no | --*=off | --*=false | --*=disable) ;;
            --process-name=*) is_fuse=no ;;
            -S* | --socket-file* | --print-* | -V | --version | -\? | --help | --usage) is_fuse=no ;;
            --aux-gfid-mount* | --worm* | --selinux* | --capability* | --enable-ino32* | --dump-fuse* | --thin-client*) is_fuse=no ;;
            -*) ;;
            *)
                if [[ $previous == --process-name ]]; then
                    [[ $word == fuse || $word == fuse.* ]] || is_fuse=no
                elif ! takes_value "$previous"; then
                    place=$word
                fi
                ;;
        esac
        previous=$word
    done
    [[ -n $place ]] || is_fuse=no
}

# Options whose value may stand in the next word.
takes_value() {
    case $1 in
        -[fslLpSen]) ;;
        --volfile | --volfile-server | --volfile-server-port | --volfile-server-transport | --volfile-id | --volume-name) ;;
        --log-file | --log-level | --log-format | --log-buf-size | --log-flush-timeout | --logger | --pid-file | --process-name) ;;
        --xlator-option | --subdir-mount | --attribute-timeout | --entry-timeout | --negative-timeout | --gid-timeout | --client-pid) ;;
        --lru-limit | --inode-table-size | --invalidate-limit | --background-qlen | --congestion-threshold | --oom-score-adj | --fuse-mountopts) ;;
        --volfile-max-fetch-attempts | --halo-* | --fuse-dev-eperm-ratelimit-ns) ;;
        *) return 1 ;;
    esac
}

look "$@"
if [[ $is_fuse == yes && -x $KILN_MOUNT ]]; then
    exec -a glusterfs "$KILN_MOUNT" "$@"
fi
exec -a glusterfs "$GLUSTERFS_STOCK" "$@"
