#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# features.cache-invalidation is switched on while the volume serves. Two stock mounts cache attributes for ten
# minutes, and each sees the changes of the other at once, because the bricks send invalidations. With the option off
# a mount keeps the old attributes. With --stock the same script runs stock bricks.
# Covers: xlators/features/upcall, xlators/protocol/server/callback.c

. "$(dirname "$0")/../lib/kiln.sh"

glusterd_bricks_start
t "a volume is created" gl_create v 2x2
t "the volume is started" gl volume start v
all_online() { [[ $(bricks_online v) == 4 ]]; }
wait_for 240 "the bricks to be online" all_online
brick_pids=$(glusterd_brick_pids)

for option in features.cache-invalidation-timeout:600 performance.stat-prefetch:on performance.md-cache-timeout:600 \
    performance.cache-invalidation:on features.cache-invalidation:on performance.cache-samba-metadata:on \
    performance.quick-read:off performance.open-behind:off; do
    t "glusterd sets ${option/:/ }" gl volume set v "${option%:*}" "${option#*:}"
done
mounted() {
    mkdir -p "$T/$1"
    # The kernel caches nothing, so a mount shows the state of the client's layers.
    glusterfs --process-name fuse -s "$glusterd_host" --volfile-id v --attribute-timeout=0 --entry-timeout=0 --direct-io-mode=enable \
        -l "$T/log/$1.log" "$T/$1"
    wait_for 240 "$1" is_glusterfs_mount "$T/$1"
}
mounted one
mounted two
one=$T/one two=$T/two

# NAME: a file that both mounts have looked at.
fresh() {
    echo data >"$one/$1"
    stat "$two/$1" >/dev/null
    cat "$two/$1" >/dev/null
}

# DESC NAME FORMAT CHANGE...: after the change `stat` prints the same through both mounts.
same_after() {
    local what=$1 name=$2 format=$3
    shift 3
    stat -c "$format" "$two/$name" >/dev/null
    "$@"
    is_same() { [[ $(stat -c "$format" "$two/$name" 2>&1) == "$(stat -c "$format" "$one/$name" 2>&1)" ]]; }
    t "the second mount sees the change: $what" wait_for 60 "$what" is_same
}

fresh a
same_after "the size after a write" a "%s" bash -c "echo more >>'$one/a'"
same_after "the size after a truncation" a "%s" truncate -s 7 "$one/a"
same_after "the mode" a "%a" chmod 640 "$one/a"
same_after "the owner" a "%u %g" chown 77:78 "$one/a"
same_after "the time" a "%Y" touch -d 2001-02-03 "$one/a"
same_after "the link count" a "%h" ln "$one/a" "$one/b"
mkdir "$one/d"
stat "$two/d" >/dev/null
same_after "a folder's time" d "%Y.%y" touch "$one/d/x"
same_after "a folder's mode" d "%a" chmod 711 "$one/d"

fresh e
setfattr -n user.DOSATTRIB -v 1 "$one/e"
value() { getfattr --only-values --absolute-names -n user.DOSATTRIB "$1" 2>&1; }
is "$(value "$two/e")" 1 "an extended attribute is read through the second mount"
setfattr -n user.DOSATTRIB -v 2 "$one/e"
sees_value() { [[ $(value "$two/e") == "$(value "$one/e")" ]]; }
t "the second mount sees the change of the attribute" wait_for 60 "the value" sees_value
setfattr -n user.DOSATTRIB -v "$(head -c 20000 /dev/zero | tr '\0' x)" "$one/e"
t "the second mount sees a value too large for a callback" wait_for 60 "the large value" sees_value
setfattr -x user.DOSATTRIB "$one/e"
has_none() { ! value "$two/e" >/dev/null; }
t "the second mount sees the removal of the attribute" wait_for 60 "the value to be gone" has_none

fresh f
mv "$one/f" "$one/g"
t_not "the second mount sees no old name after a rename" stat "$two/f"
t "the second mount sees the new name after a rename" stat "$two/g"
rm "$one/g"
t_not "the second mount sees no removed name" stat "$two/g"
is "$(glusterd_brick_pids)" "$brick_pids" "no brick was restarted for the options"

# Without callbacks the second mount keeps old attributes, so the changes above came through the bricks' callbacks.
t "glusterd disables features.cache-invalidation" gl volume set v features.cache-invalidation off
round=0
is_not_told() {
    local was
    round=$((round + 1))
    fresh "z$round"
    was=$(stat -c %a "$two/z$round")
    chmod 604 "$one/z$round"
    [[ $(stat -c %a "$two/z$round") == "$was" ]]
}
t_here "the second mount shows old attributes with the option off" wait_for 60 "a change that is not seen" is_not_told
umount "$one" "$two"
t "the volume is stopped" gl volume stop v
