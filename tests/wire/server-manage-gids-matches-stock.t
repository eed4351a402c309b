#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# server.manage-gids: the script asks a brick of Kiln and a stock brick on the wire which files a caller may open by its
# groups. Both look groups up in the same /etc/passwd and /etc/group, and the answers are equal. Then users with more groups
# than a call can carry work through mounts that send no groups.
# Covers: xlators/protocol/server/groups.c

. "$(dirname "$0")/../lib/kiln.sh"

if ! command -v glusterfsd >/dev/null; then
    skip_all "there is no stock glusterfsd to compare with"
fi

# Replaces the system's accounts in this sandbox.
cp /etc/passwd /etc/group "$T"
printf '%s:x:%s:%s::/:/bin/sh\n' anna 5001 5001 many 5002 5002 admin 5003 5003 >>"$T/passwd"
{
    printf '%s:x:%s:%s\n' anna 5001 "" many 5002 "" a 6001 anna b 6002 anna
    for i in {7000..7199}; do echo "m$i:x:$i:many"; done
} >>"$T/group"
sed -i 's/^root:x:0:.*/root:x:0:admin/' "$T/group"
mount --bind "$T/passwd" /etc/passwd
mount --bind "$T/group" /etc/group
# In place: they are mounted.
set_groups() {
    sed "$@" "$T/group" >"$T/group.new"
    cat "$T/group.new" >"$T/group"
}

make_volume() {
    local g brick=$T/$1/b0
    BRICK_SERVER_OPTIONS=$3
    volume_new "$1" 1x1
    volume_assign "$1" "$2"
    for g in 0 5001 5002 6001 6002 6003 7000 7100 7199; do
        echo text >"$brick/g$g"
        chgrp "$g" "$brick/g$g"
        chmod 040 "$brick/g$g"
    done
    volume_start "$1"
}

answers() {
    local vol=$1 out=$2 port
    shift 2
    port=$(cat "$T/${brick_daemon[${volume_bricks[$vol]}]}.port" 2>/dev/null) || port=${daemon_port[${brick_daemon[${volume_bricks[$vol]}]}]}
    python3 "$tests_dir/wire/groups_answers.py" 127.0.0.1 "$port" "${volume_bricks[$vol]}" answer "$@" >"$out"
}

# NAME OPTIONS WORDS: compares the answers of both kinds of brick.
compare() {
    local what=$1 options=$2 vol=v$((++volumes))
    shift 2
    make_volume "${vol}s" stock "$options"
    make_volume "${vol}k" kiln "$options"
    cat "$T/group" >"$T/group.before"
    t "$what: stock answers" answers "${vol}s" "$T/stock" "$@"
    cat "$T/group.before" >"$T/group"
    t "$what: Kiln answers" answers "${vol}k" "$T/kiln" "$@"
    t "$what: both bricks give the same answers" diff "$T/stock" "$T/kiln"
    cat "$T/group.before" >"$T/group"
    volume_stop "${vol}s"
    volume_stop "${vol}k"
}
volumes=0
sed '/^a:x:6001/s/anna//; /^b:x:6002/s/anna/anna,admin/' "$T/group" >"$T/group.later"
asked=(5001:5001 5001:5001:6003 5001:6003 5001:6003:5002 5999:5999:6003 5999:6003 5002:5002 5003:5003 0:0 0:5001 1:1:6001)

compare "on" $'manage-gids on\ngid-timeout 1' "${asked[@]}" "run=cat $T/group.later >$T/group" "run=sleep 1.2" "${asked[@]}"
is "$(sed -n '1p; 5p; 7p' "$T/kiln" | paste -sd,)" \
    "answer 5001:5001: 5001 6001 6002,answer 5999:5999:6003: none,answer 5002:5002: 5002 7000 7100 7199" "the answers are as expected"
compare "off" "manage-gids off" "${asked[@]}"
compare "all users squashed" $'manage-gids on\nall-squash on\nanonuid 5001\nanongid 5001' 5002:5002 5999:5999:6003 0:0
compare "root squashed" $'manage-gids on\nroot-squash on\nanonuid 5001\nanongid 5001' 5002:5002 5999:5999:6003 0:0 0:6003

# Here a user's program has all its groups, but the kernel's call to the mount names no groups, and a mount sends at most 93
# groups.
make_volume m "$BRICKD" "manage-gids on"
chmod 1777 "$T/m/b0"
mount_volume m "$T/mnt" plain --xlator-option '*-client-0.send-gids=false'
as_many() {
    setpriv --reuid 5002 --regid 5002 --init-groups -- "$@"
}
t "a user in 200 groups reads a file of the last group" as_many cat "$T/mnt/g7199"
t_not "the user reads no file of a foreign group" as_many cat "$T/mnt/g6001"
mount_end "$T/mnt"
if [[ $BRICKD == kiln ]]; then
    mount_kiln m "$T/mnt" --xlator-option='*.send-gids=off'
    t "the user reads a file of the last group through kiln-mount" as_many cat "$T/mnt/g7199"
    t_not "the user reads no file of a foreign group through kiln-mount" as_many cat "$T/mnt/g6001"
    mount_end "$T/mnt"
fi
volume_stop m
