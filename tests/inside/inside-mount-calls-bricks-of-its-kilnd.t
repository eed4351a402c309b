#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# `kiln mount -o inside` has kilnd mount a volume in its own process. Fops go to the bricks as calls and not as bytes, the
# POSIX tour passes, and a stock mount of the volume sees the same files. The rules of the bricks hold: a squashed root
# makes files of nobody. A synchronous write is on both replicas when it returns. A volume that is stopped and started
# again serves the open mount. A kilnd that follows a killed one mounts again. Without a kilnd the mount fails with the
# reason. The mounts of two volumes come and go independently.
# Covers: rpc/server/inside.c, rpc/transport/fop-path.c, rpc/client/rpc-fop.c, mount/inside.c, cli/mount.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/front.sh"
. "$(dirname "$0")/../lib/measure.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"
[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

export KILN_SOCKET=$T/kilnd.socket
mnt=$T/mnt stock=$T/stock
mkdir -p "$T/b/"{1,2,3,4} "$mnt" "$stock"

t_not "without a kilnd the mount fails" "$KILN_MOUNT" --inside="$KILN_SOCKET" -s localhost --volfile-id demo "$mnt"
"$KILN_MOUNT" --inside="$KILN_SOCKET" -s localhost --volfile-id demo "$mnt" 2>"$T/why" || true
t "the failed mount says that no kilnd takes mounts" grep -q "no kilnd takes mounts at $KILN_SOCKET" "$T/why"

front_start --management-socket="$KILN_SOCKET" --inside-mounts
kiln volume create demo replica 2 "$T/b/"{1,2,3,4} >/dev/null
kiln volume start demo >/dev/null
t "kilnd mounts the volume" kiln mount demo "$mnt" -o inside

# Prints the number of clients in kilnd with `inside=$1`.
clients_inside() {
    grep -c "^inside=$1" "$(dump_take "$front_pid" "$T")"
}
is "$(clients_inside 1)" 4 "the mount calls four bricks inside of kilnd"

front_mount demo "$stock"
mkdir "$mnt/tour"
include "the POSIX tour ends well" python3 "$tests_dir/fops/posix_tour.py" "$mnt/tour"

echo one >"$mnt/file"
is "$(<"$stock/file")" one "a stock mount reads the file"
echo two >"$stock/other"
is "$(cat "$mnt/other")" two "the mount reads a file of the stock mount"
replicas_have() {
    local brick n=0
    for brick in "$T/b/"*; do
        [[ ! -e $brick/$1 || $(<"$brick/$1") != "$2" ]] || n=$((n + 1))
    done
    [[ $n -eq 2 ]]
}
dd of="$mnt/synced" oflag=sync status=none <<<"durable"
t "a synchronous write is on both replicas at its return" replicas_have synced durable
dd if=/dev/urandom of="$T/large" bs=1M count=5 status=none
cp "$T/large" "$mnt/large"
t "5 MiB come back through the mount" cmp "$T/large" "$mnt/large"
t "5 MiB come back through the stock mount" cmp "$T/large" "$stock/large"

# ---- the rules of the bricks
mkdir -m 777 "$mnt/open"
kiln volume set demo server.root-squash on >/dev/null
squashed() {
    rm -f "$mnt/open/"* && : >"$mnt/open/new" && [[ $(stat -c %u "$mnt/open/new") == 65534 ]]
}
t "root becomes nobody when the volume squashes root" wait_for 60 "the squash" squashed
kiln volume set demo server.root-squash off >/dev/null

# ---- bricks that go and come
exec 7<"$mnt/large"
kiln --yes volume stop demo >/dev/null
kiln volume start demo >/dev/null
t "a file that was open before the volume stopped can be read" cmp "$T/large" /dev/fd/7
exec 7<&-
is "$(<"$mnt/file")" one "the mount serves after the volume was started again"
is "$(clients_inside 1)" 4 "the bricks are called inside of kilnd again"

# ---- a kilnd that dies
umount "$stock"
front_kill
front_start --management-socket="$KILN_SOCKET" --inside-mounts
reads() { [[ $(cat "$mnt/file" 2>/dev/null) == one ]]; }
t "the next kilnd mounts the volume again" wait_for 240 "the mount to be back" reads
is "$(clients_inside 1)" 4 "the new mount calls its bricks inside of kilnd"

# ---- a second volume
mkdir -p "$T/far/b"
kiln volume create far replica 2 "$T/far/b" "$T/b/near" >/dev/null
kiln volume start far >/dev/null
t "a second volume is mounted in the same process" bash -c "mkdir -p $T/mnt2 && $KILN mount far $T/mnt2 -o inside"
echo both >"$T/mnt2/file"
is "$(<"$T/far/b/file") $(<"$T/b/near/file")" "both both" "its files are on both replicas"
t "the second volume is unmounted" umount "$T/mnt2"
still_there() { reads && kiln list >/dev/null; }
t "the other mount and kilnd stay" still_there

t_here "kilnd ends with a mount" front_stop
t_not "and leaves no mount" findmnt -n --mountpoint "$mnt"
