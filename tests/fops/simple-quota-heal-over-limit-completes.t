#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# features/simple-quota on replicas: while a brick was down, a limit was raised and files were written beyond the old
# limit. The heal of the volume completes, the healed brick counts the healed data and has the new limit, and users
# are held to it. The healer of stock fails with EDQUOT for ever.
# Covers: xlators/features/simple-quota

. "$(dirname "$0")/../lib/kiln.sh"

export BRICK_QUOTA_OPTIONS="pass-through false"
volume_split=yes
volume_new r 1x2
volume_start r
mount_volume r "$T/mnt" plain --client-pid=-14 --attribute-timeout=0 --entry-timeout=0
mount_volume r "$T/user" plain --attribute-timeout=0 --entry-timeout=0
mkdir "$T/mnt/ns"
setfattr -n trusted.glusterfs.namespace -v true "$T/mnt/ns"
setfattr -n trusted.gfs.squota.limit -v 524288 "$T/mnt/ns"

daemon_stop r-r1
mount_settle "$T/mnt"
mount_settle "$T/user"
t "a limit is raised while a replica is down" setfattr -n trusted.gfs.squota.limit -v 4194304 "$T/mnt/ns"
t "2 MiB are written while a replica is down" dd if=/dev/urandom of="$T/user/ns/file" bs=64k count=32 conv=fsync status=none
mkdir "$T/mnt/later"
setfattr -n trusted.glusterfs.namespace -v true "$T/mnt/later"
setfattr -n trusted.gfs.squota.limit -v 1048576 "$T/mnt/later"
dd if=/dev/urandom of="$T/user/later/file" bs=64k count=8 conv=fsync status=none
daemon_start r-r1
mount_settle "$T/mnt"
mount_settle "$T/user"
shd_start r
t "the heal ends" wait_for 120 "the heal" nothing_pending "$T/r/b0"
t "the file is whole on the healed brick" cmp "$T/r/b0/ns/file" "$T/r/b1/ns/file"
limit_of() { getfattr --only-values -n trusted.gfs.squota.limit "$1" 2>/dev/null | tr -d '\0'; }
used_of() { getfattr --only-values -n trusted.gfs.squota.size "$1" 2>/dev/null | tr -d '\0'; }
# The self-heal daemon of 11 copies no limits, that of 10 copies all xattrs.
raised=4194304 later=1048576
[[ -z ${KILN_STOCK_VERSION:-} ]] || raised=524288 later=
is "$(limit_of "$T/r/b1/ns")" "$raised" "the healed brick has the raised limit if the healer copies limits"
is "$(limit_of "$T/r/b1/later")" "$later" "the healed brick has the limit that a folder got meanwhile if the healer copies limits"
counts() { [[ $(used_of "$T/r/b1/$1") == "$(du -sB1 "$T/r/b1/$1" | cut -f 1)" ]]; }
t "the healed brick counts the healed data" wait_for 30 "the count" counts ns
t "the healed brick counts the data of the new folder" wait_for 30 "the count" counts later
daemon_stop r-r0
mount_settle "$T/user"
t_not "the healed brick alone refuses writes above the raised limit" dd if=/dev/zero of="$T/user/ns/more" bs=64k count=48 conv=fsync status=none
[[ -z $later ]] ||
    t_not "the healed brick alone refuses writes above the new limit" dd if=/dev/zero of="$T/user/later/more" bs=64k count=12 conv=fsync status=none
daemon_start r-r0
mount_settle "$T/user"
