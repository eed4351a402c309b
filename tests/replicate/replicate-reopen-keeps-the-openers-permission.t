#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Two files are opened while one of two replicas is down: one by a user who has access only through a supplementary
# group, the other by a user whose permission is revoked afterwards. The replica returns, and the mount opens the
# files there too. Later writes reach both replicas without a heal.
# Covers: xlators/cluster/replicate/open-files.c, xlators/protocol/client/remote-fd.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_split=brick
volume_new v 1x2
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
mnt=$T/mnt log=$T/log/kiln-mount-mnt.log
chmod 711 "$T"

is_up() {
    [[ $(grep -c "v-client-1: logged in" "$log") -ge $1 ]]
}

is_down() {
    grep -q "v-client-1: the connection.*is lost" "$log"
}

# Opens the file, and appends the data from the pipe of the name.
holds_open() {
    mkfifo "$T/$1.pipe"
    chmod 666 "$T/$1.pipe"
    setpriv --reuid 2001 --regid 2001 --groups 4242 bash -c 'exec 7>>"$1" && while read -r line; do echo "$line" >&7; done <"$2"' _ \
        "$mnt/$1" "$T/$1.pipe" &
}

has_text() {
    [[ $(<"$1") == "$2" ]]
}

mount_kiln v "$mnt" --attribute-timeout=0 --entry-timeout=0
wait_for 100 "both" is_up 1
wait_for 100 "the volume" test -d "$mnt/."
touch "$mnt/by-group" "$mnt/by-mode"
chown 0:4242 "$mnt/by-group"
chmod 060 "$mnt/by-group"
chmod 666 "$mnt/by-mode"
daemon_kill "${brick_daemon[${bricks[1]}]}"
wait_for 100 "the loss" is_down
holds_open by-group
holds_open by-mode
exec 8>"$T/by-group.pipe" 9>"$T/by-mode.pipe" # both files are open then
daemon_start "${brick_daemon[${bricks[1]}]}" 8>&- 9>&-
wait_for 100 "its coming" is_up 2
chmod 600 "$mnt/by-mode"
echo text >&8
echo text >&9
for each in by-group by-mode; do
    for brick in "${bricks[@]}"; do
        t "$each is written on ${brick##*/}" wait_for 20 "the write" has_text "$brick/$each" text
    done
done
exec 8>&- 9>&-
t "no heal is pending" wait_for 20 "the marks to go" nothing_pending "${bricks[@]}"
t_here "the volume is unmounted" mount_end "$mnt"
