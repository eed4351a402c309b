#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A hostile volfile server sends a volfile that contains a mount/fuse layer with a mount point of the server's choice,
# in plain words or in a quoted name; or uses the name of the mount's own layer; or nests 200 or 20,000 layers.
# kiln-mount refuses each volfile by name within seconds and mounts nothing, also when such a volfile arrives while
# the mount runs.
# Covers: libglusterfs/graph/volfile.c, mount/volume.c, mount/types.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_new v 1x1
volume_start v
volfile_bare v "$(volume_specs v)" >"$T/good.vol"
mnt=$T/mnt
log=$T/log/mount.log
victim=$T/etc
mkdir "$mnt" "$victim"
echo secret >"$victim/passwd"
top=$(awk '$1 == "volume" { name = $2 } END { print name }' "$T/good.vol")

inner_mount() {
    cat "$T/good.vol"
    printf 'volume inner\n type mount/fuse\n option mountpoint %s\n subvolumes %s\nend-volume\n' "$victim" "$top"
}

# Another layer stands above, which may be had.
inner_mount_below() {
    inner_mount
    printf 'volume outer\n type features/utime\n subvolumes inner\nend-volume\n'
}

# The name spans further lines, which would be read as sections if the name were pasted into text.
in_a_name() {
    cat "$T/good.vol"
    printf 'volume "%s\\\nend-volume\\\nvolume inner\\\ntype mount/fuse\\\noption mountpoint %s\\\nsubvolumes %s"\n' "$top" "$victim" "$top"
    printf ' type features/utime\n subvolumes %s\nend-volume\n' "$top"
}

own_name() {
    cat "$T/good.vol"
    printf 'volume kiln-mount\n type features/utime\n subvolumes %s\nend-volume\n' "$top"
}

nested() {
    cat "$T/good.vol"
    awk -v top="$top" -v count="$1" 'BEGIN {
        for (i = 0; i < count; i++) {
            printf "volume n%d\n type features/utime\n subvolumes %s\nend-volume\n", i, top
            top = "n" i
        }
    }'
}

mount_bad() {
    timeout -k 5 60 "$KILN_MOUNT" -l "$log" -s 127.0.0.1 --volfile-id v "$mnt"
}

nothing_is_mounted() {
    ! findmnt -n --mountpoint "$victim" && ! findmnt -n --mountpoint "$mnt" && [[ $(<"$victim/passwd") == secret ]]
}

# DESC REGEX COMMAND...: the volfile that the command writes is refused with a message that matches.
refused_at_mount() {
    local what=$1 words=$2
    "${@:3}" >"$T/v.vol"
    : >"$log"
    local status=0
    mount_bad >"$T/refused.out" 2>&1 || status=$?
    is "$status" 1 "$what: kiln-mount exits with 1"
    t "$what: the message names the cause" grep -qE "$words" "$T/refused.out"
    t "$what: nothing is mounted" nothing_is_mounted
}

python3 "$kiln_lib/volfile-server.py" 127.0.0.1 24007 "$T/v.vol" >>"$T/log/server.log" 2>&1 &
server=$!
wait_for 120 "the server to listen" port_answers 24007

own='the type mount/fuse is kiln-mount.s own'
refused_at_mount "a mount/fuse on top" "$own" inner_mount
refused_at_mount "a mount/fuse below another layer" "$own" inner_mount_below
refused_at_mount "the name of the mount's own layer" 'a volume is named kiln-mount' own_name
refused_at_mount "200 nested layers" 'stands on 128 layers: 127 at most' nested 200
refused_at_mount "20,000 nested layers" 'more than 16384 volumes' nested 20000

# A name that looks like sections is a name.
in_a_name >"$T/v.vol"
mount_bad || true
t_not "sections inside a quoted name mount nothing" findmnt -n --mountpoint "$victim"
! findmnt -n --mountpoint "$mnt" >/dev/null || umount "$mnt"

# While a mount runs.
news() {
    [[ $(grep -c '\[mount-volfile\]' "$log") == "$1" ]]
}

cp "$T/good.vol" "$T/v.vol"
: >"$log"
t "a valid volfile is mounted" "$KILN_MOUNT" -l "$log" -p "$T/mount.pid" -s 127.0.0.1 --volfile-id v "$mnt"
pid=$(<"$T/mount.pid")
echo before >"$mnt/file"
count=0
for bad in inner_mount inner_mount_below own_name "nested 200"; do
    $bad >"$T/v.vol"
    kill -HUP "$server"
    t "the running mount refuses $bad" wait_for 120 "the line" news $((++count))
    t_not "the running mount mounts nothing for $bad" findmnt -n --mountpoint "$victim"
done
in_a_name >"$T/v.vol"
kill -HUP "$server"
t "a quoted name that looks like sections is taken as a layer's name" wait_for 120 "the change" grep -q 'mount-switched\|mount-options' "$log"
t_not "the running mount mounts nothing for the quoted name" findmnt -n --mountpoint "$victim"
is "$(cat "$mnt/file")" before "the mount still serves its volume"
umount "$mnt"
wait_for 240 "kiln-mount to end" process_gone "$pid"
is "$(<"$victim/passwd")" secret "the victim directory is unchanged"
kill "$server"
wait "$server" || true
