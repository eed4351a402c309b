#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Two bricks of one distributed volume lie on two file systems, and kilnd has mounted the volume in its own process. The
# script freezes a file system (fsfreeze) while processes write to it: their calls hang in the kernel, in the threads that
# have read them from the mount. Files of the other brick are served through the same mount and through another mount of the
# same process, with several requests at once. After the thaw every write has arrived.
# Covers: rpc/server/inside.c, xlators/mount/fuse/fuse.c, libglusterfs/event/worker.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/measure.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"
[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

writers=12
volume_daemon=all
kilnd_options=(--management-socket="$T/kilnd.socket" --inside-mounts)
BRICK_POSIX_OPTIONS="health-check-interval 0"
place_xfs "$T/frozen" 512m
place_xfs "$T/free" 512m
volume_new cold 1x1 "$T/frozen"
volume_new warm 1x1 "$T/free"
volume_start cold
pid=${daemon_pid[all]}

# A distributed volume of both bricks, and a volume of the warm brick alone.
volfile_bare cold "$(volume_specs cold)" >"$T/cold.vol"
volfile_bare warm "$(volume_specs warm)" >"$T/warm.vol"
sed 's/^volume /&c-/; s/subvolumes /&c-/' "$T/cold.vol" >"$T/both.vol"
sed 's/^volume /&w-/; s/subvolumes /&w-/' "$T/warm.vol" >>"$T/both.vol"
top() { awk '/^volume / { name = $2 } END { print name }' "$1"; }
printf 'volume both\n    type cluster/distribute\n    subvolumes c-%s w-%s\nend-volume\n' \
    "$(top "$T/cold.vol")" "$(top "$T/warm.vol")" >>"$T/both.vol"
for name in both warm; do
    mkdir -p "$T/mnt-$name"
    t "kilnd mounts the volume $name" "$KILN_MOUNT" --inside="$T/kilnd.socket" -f "$T/$name.vol" "$T/mnt-$name"
done

end_mounts() {
    fsfreeze -u "$T/frozen" 2>/dev/null
    umount -l "$T/mnt-both" "$T/mnt-warm" 2>/dev/null
}
at_end+=(end_mounts)

# Distribute puts a file on the brick that its name's hash chooses.
mkdir "$T/mnt-both/d"
for ((i = 0; i < 8 * writers; i++)); do
    : >"$T/mnt-both/d/file$i"
done
files_of() {
    find "$1/b0/d" -type f -perm /0444 -printf '%f\n' | sort | head -n "$writers"
}
mapfile -t of_cold < <(files_of "$T/frozen")
mapfile -t of_warm < <(files_of "$T/free")
t "both bricks have files" test "${#of_cold[@]}" -eq "$writers" -a "${#of_warm[@]}" -eq "$writers"

fsfreeze -f "$T/frozen"
pids=()
for file in "${of_cold[@]}"; do
    dd if=/dev/zero of="$T/mnt-both/d/$file" bs=4096 count=1 conv=notrunc,fsync 2>/dev/null &
    pids+=($!)
    setfattr -n user.a -v b "$T/mnt-both/d/$file" 2>/dev/null &
    pids+=($!)
done
calls_hang() {
    [[ $(grep -l '^State:.*D' /proc/"$pid"/task/*/status 2>/dev/null | wc -l) -ge 8 ]]
}
t "calls to the frozen brick hang" wait_for 240 "workers in the kernel" calls_hang

# Several requests at a time, so that some are behind a request that hangs.
serves() {
    local dir=$1 file
    shift
    for file in "$@"; do
        (echo "$file" >"$dir/$file" && [[ $(<"$dir/$file") == "$file" ]] && setfattr -n user.b -v c "$dir/$file") || return 1
    done
}
both_serve() {
    local pids=() one
    serves "$T/mnt-both/d" "${of_warm[@]:4}" &
    pids+=($!)
    serves "$T/mnt-warm/d" "${of_warm[@]:0:4}" &
    pids+=($!)
    for one in "${pids[@]}"; do
        wait "$one" || return 1
    done
}
export T
export -f serves both_serve
declare -p of_warm >"$T/names"
t "the other brick serves through the same mount and through another one" \
    timeout 600 bash -c ". $T/names; both_serve"
t "the calls still hang" calls_hang
t "kilnd answers signals" test -s "$(dump_take "$pid" "$T")"

fsfreeze -u "$T/frozen"
all_end_well() {
    local one
    for one in "${pids[@]}"; do # of several, wait tells the status of the last one alone
        wait "$one" || return
    done
}
t_here "every writer succeeds after the thaw" all_end_well
is "$(find "$T/frozen/b0/d" -type f -size 4096c | wc -l)" "$writers" "every file is whole"
t "the mounts are unmounted" umount "$T/mnt-both" "$T/mnt-warm"
