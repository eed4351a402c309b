#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The volume has cache-invalidation on, at the bricks and for its mounts. kiln-mount lets the kernel cache attributes
# for the volume's md-cache-timeout, and still shows the changes of other clients, because the bricks send
# invalidations. The script runs on kilnd and on stock bricks. When a brick goes down, its invalidations are lost, so
# the mount stops trusting cached attributes.
# Covers: xlators/mount/fuse/news.c, xlators/mount/fuse/attr.c, xlators/features/upcall,
# xlators/protocol/client/client.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/measure.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

told=(--xlator-option='*-md-cache.cache-invalidation=on' --xlator-option='*-md-cache.md-cache-timeout=600')
names=(--entry-timeout=600)
xlator_options=('*-upcall.cache-invalidation=on' '*-upcall.cache-invalidation-timeout=600')
volume_split=brick

figures() {
    stat -c '%s %a %u %h %Y' "$1"
}

# PATH FIGURES: succeeds when the path shows these figures, within a moment and without a call each time
shows() {
    [[ $(figures "$1") == "$2" ]]
}

sent() {
    calls_take "${mount_pid[$1]}" "$T/sent"
    awk '$1 == "stat" || $1 == "fstat" { n += $2 } END { print n + 0 }' "$T/sent"
}

# HOW, the other mount's folder, COMMAND...: this mount shows the command's change
change() {
    local how=$1 there=$2
    shift 2
    figures "$here/f" >"$T/before"
    "$@"
    t_here "$kind: $how by $(basename "$there") is seen on the first mount" wait_for 5 "the change" shows "$here/f" "$(figures "$there/f")"
    t "$kind: $how by $(basename "$there") was a change" test "$(cat "$T/before")" != "$(figures "$here/f")"
}

for kind in kiln stock; do
    BRICKD=$kind
    volume_new $kind 2x2
    volume_start $kind
    here=$T/$kind-here
    mount_kiln $kind "$here" "${told[@]}" "${names[@]}"
    mount_kiln $kind "$T/$kind-kiln" --attribute-timeout=0 --entry-timeout=0
    mount_volume $kind "$T/$kind-stock" plain --attribute-timeout=0 --entry-timeout=0
    mkdir "$here/d"
    echo text >"$here/f"
    group=0 # of the mode, so that each mode differs from the one before
    for there in "$T/$kind-kiln" "$T/$kind-stock"; do
        group=$((group + 1))
        change "a write" "$there" bash -c "echo more >>'$there/f'"
        is "$(sha256sum <"$here/f")" "$(sha256sum <"$there/f")" "$kind: the changed contents are seen on the first mount"
        change "chmod" "$there" chmod "6$group$((RANDOM % 8))" "$there/f"
        change "chown" "$there" chown "$((1 + RANDOM % 1000))" "$there/f"
        change "a link" "$there" ln "$there/f" "$there/f.$(basename "$there")"
        change "truncate" "$there" truncate -s "$((100 + RANDOM))" "$there/f"
        change "touch" "$there" touch -d "@$((RANDOM + 1000000))" "$there/f"
        stat -c %Z "$here/d" >"$T/folder"
        sleep 0.01
        mkdir "$there/d/$(basename "$there")"
        t_here "$kind: mkdir by $(basename "$there") updates the directory's times" wait_for 5 "the new times" \
            bash -c "[[ \$(stat -c %.9Z '$here/d') == \$(stat -c %.9Z '$there/d') ]]"
    done

    # No client changes the files, so the mount asks no brick.
    for ((i = 0; i < 20; i++)); do
        echo "$i" >"$here/d/f$i"
    done
    stat "$here"/d/* >/dev/null
    before=$(sent "$here")
    sleep 2
    stat "$here"/d/* >/dev/null
    stat "$here"/d/* >/dev/null
    is "$(($(sent "$here") - before))" 0 "$kind: attributes are cached for longer than a second"

    # A brick of each set dies, and its invalidations are lost.
    read -ra bricks <<<"${volume_bricks[$kind]}"
    before=$(sent "$here")
    daemon_kill "${brick_daemon[${bricks[0]}]}"
    daemon_kill "${brick_daemon[${bricks[2]}]}"
    asks() {
        stat "$here"/d/* >/dev/null
        [[ $(($(sent "$here") - before)) -gt 0 ]]
    }
    t_here "$kind: attributes are requested again after a brick has died" wait_for 20 "requests for attributes" asks
    for mnt in "$here" "$T/$kind-kiln" "$T/$kind-stock"; do
        t_here "$kind: $(basename "$mnt") is unmounted" mount_end "$mnt"
    done
done
BRICKD=kiln

# A mount goes while bricks have a lot to say.
volume_new flood 1x2
volume_start flood
mount_kiln flood "$T/busy" --attribute-timeout=0 --entry-timeout=0
touch "$T/busy"/f{0..9}
(while [[ ! -e $T/enough ]]; do
    touch "$T/busy"/f{0..9}
done) &
busy=$!
for ((i = 0; i < 12; i++)); do
    mount_kiln flood "$T/comes" "${told[@]}" "${names[@]}"
    stat "$T/comes"/f* >"$T/seen"
    sleep 0.05
    t_here "mount $i starts and ends" mount_end "$T/comes"
done
touch "$T/enough"
wait "$busy"
t_not "no mount logged an error" grep -lE ' [EC] \[' "$T"/log/kiln-mount-comes.log
t_here "the busy mount is unmounted" mount_end "$T/busy"
volume_stop flood

# A user who wants less has less.
volume_new own 1x1
volume_start own
mount_kiln own "$T/own" "${told[@]}" "${names[@]}" --attribute-timeout=0
touch "$T/own/f"
before=$(sent "$T/own")
stat "$T/own/f" >/dev/null
stat "$T/own/f" >/dev/null
t "a mount without caching requests the attributes of each object" test "$(($(sent "$T/own") - before))" -ge 2
t_here "the mount without caching is unmounted" mount_end "$T/own"
volume_stop own
