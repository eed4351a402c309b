#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A volume of two copies gets a third brick while a stock client still has the volfile of before: the self-heal daemon names the
# client and fills the new brick when the client has fetched the volfile. The new brick then has the client's writes of the
# meantime, which accuse no brick, also those of a file that another client has made on all three bricks.
# Covers: xlators/cluster/replicate/crawl-new-bricks.c, xlators/cluster/old-clients.c, xlators/protocol/server/roll.c,
# Covers: heal/answers.c, cli/show.c

. "$(dirname "$0")/../lib/kiln.sh"

get_volfile() {
    python3 "$kiln_lib/getspec.py" localhost 24007 /v "$1"
}
statistics_say() {
    kiln volume heal v statistics | grep -qE "$1"
}
pid_of_mount() {
    pgrep -f -- "^[^ ]*glusterfs .* $1\$"
}
is_healed() {
    kiln volume heal v info | grep -q '^Number of entries: 0$' && ! kiln volume heal v info | grep -q '^Number of entries: [1-9]'
}
kiln_mount_follows() {
    grep -qE "PC_NAME:v-client-2-.*\[login\]" "$T/log/kilnd.log"
}

mkdir -p "$T"/{b,slow,now}
front_start
kiln volume create v replica 2 "$T"/b/{1,2}
kiln volume start v
get_volfile "$T/served.vol"
python3 "$kiln_lib/volfile-server.py" 127.0.0.1 25000 "$T/served.vol" &
server_pid=$!
wait_for 240 "the volfile server" bash -c 'exec 3<>/dev/tcp/127.0.0.1/25000'
glusterfs --process-name fuse -l "$T/log/client-slow.log" -s 127.0.0.1 --volfile-server-port=25000 --volfile-id v "$T/slow"
wait_for 240 "the stock mount" mountpoint -q "$T/slow"
kiln volume mount v "$T/now"
mkdir "$T/now/d"
for f in a d/b; do
    echo before >"$T/now/$f"
done

kiln volume add-brick v replica 3 "$T/b/3"
t "kiln-mount follows" wait_for 240 "the login of kiln-mount" kiln_mount_follows
t "the heal waits for a client" wait_for 240 "the wait" statistics_say '^Waits for a client .*: process '
t "the statistics name the client's process and host" wait_for 240 "the stock client" \
    statistics_say "process $(pid_of_mount "$T/slow") on $(uname -n)\$"
mkdir "$T/now/e"
echo new >"$T/now/c"
echo new >"$T/now/e/f"
for f in a d/b c e/f; do
    echo "behind the back of the new brick" >"$T/slow/$f"
done
echo "behind its back" >"$T/slow/e/g"
sleep 3
is "$(cat "$T/b/3/a" "$T/b/3/d/b" 2>/dev/null)" "" "no file is filled meanwhile"

get_volfile "$T/new.vol"
mv "$T/new.vol" "$T/served.vol"
kill -HUP "$server_pid"
ls "$T/slow" >"$T/log/ls" # a stock client uses its new graph at its next call
t "the daemon fills the brick when the client follows" wait_for 240 "the file's contents" cmp -s "$T/b/1/a" "$T/b/3/a"
t "the heal ends" wait_for 240 "the end of the heal" is_healed
t_not "the statistics name no client" statistics_say '^Waits for'
for f in a d/b c e/f e/g; do
    is "$(cat "$T/b/3/$f")" "$(cat "$T/b/1/$f")" "the new brick has the client's $f"
done
is "$(cat "$T/b/3/a")" "behind the back of the new brick" "the contents are those of the client"
umount "$T/slow"
umount "$T/now"
