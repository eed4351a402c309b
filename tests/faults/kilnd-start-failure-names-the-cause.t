#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# When kilnd cannot serve a brick, it ends at once with the exit status that glusterd expects and a message that names
# the cause, and leaves no files behind.
# Covers: glusterfsd/kilnd.c, glusterfsd/options.c, xlators/storage/posix/entry/takeover.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"

volume_new v 1x1
brick=$T/v/b0
vol=$T/v.vol
log=$T/log/kilnd.log
id=${volume_id[v]}
volfile_brick v "$brick" "$id" >"$vol"

# refuses STATUS PATTERN DESC ARG...: kilnd ends within two minutes with STATUS, having said PATTERN.
refuses() {
    local want=$1 pattern=$2 desc=$3 status=0
    shift 3
    : >"$log"
    rm -f "$T/port"
    timeout 120 "$KILND" -N -l "$log" -p "$T/pid" --port-file "$T/port" "$@" >"$T/said" 2>&1 </dev/null || status=$?
    is "$status" "$want" "$desc: exit status $want"
    t "$desc: the message names the cause" grep -Eiq -- "$pattern" "$T/said" "$log"
    t "$desc: kilnd has not listened" test ! -s "$T/port"
}
changed() {
    sed "$1" "$vol" >"$T/changed.vol"
}

refuses 64 'volfile|-f' "no volfile"
refuses 64 'no-such-option' "an unknown option" -f "$vol" --no-such-option
refuses 64 'port' "a port that is no number" -f "$vol" --brick-port many
refuses 1 'none\.vol.*No such file' "a volfile that is not there" -f "$T/none.vol"

echo 'volume half' >"$T/half.vol"
refuses 1 'half\.vol:[0-9]+' "a volfile cut short (file and line)" -f "$T/half.vol"
changed '3s/option/opshun/'
refuses 1 'changed\.vol:3.*opshun' "a word that is no keyword (file and line)" -f "$T/changed.vol"
changed 's/subvolumes v-trash$/subvolumes v-trush/'
refuses 1 'changed\.vol:[0-9]+.*v-trush' "a subvolume that does not exist" -f "$T/changed.vol"
changed 's|type features/locks|type features/no-such-thing|'
refuses 1 'features/no-such-thing' "an unknown type" -f "$T/changed.vol"
: >"$T/empty.vol"
refuses 1 'empty\.vol' "an empty volfile" -f "$T/empty.vol"

listens_or_ended() {
    [[ -s $T/port ]] || process_gone "$1"
}
for option in 'worm off/worm on' 'read-only off/read-only on' 'server-quota off/server-quota on' \
    'bitrot disable/bitrot enable' 'leases off/leases on' 'cache-invalidation off/cache-invalidation on'; do
    # With --strict-features an option that needs a layer which is not built is refused by name; one that is built may start.
    changed "s/option ${option%/*}\$/option ${option#*/}/"
    name=${option%% *}
    rm -f "$T/port"
    "$KILND" -N --strict-features -f "$T/changed.vol" -l "$log" -p "$T/pid" --brick-port 0 --port-file "$T/port" \
        >"$T/said" 2>&1 </dev/null &
    pid=$!
    wait_for 120 "kilnd to listen or end" listens_or_ended "$pid"
    listens=no
    if [[ -s $T/port ]]; then
        listens=yes
        kill -TERM "$pid"
    fi
    status=0
    wait "$pid" || status=$?
    if [[ $listens == yes ]]; then
        diag "${option#*/} is built in"
        is "$status" 0 "${option#*/}, which is built: kilnd serves and ends with status 0"
    else
        is "$status" 1 "${option#*/}, which is not built: exit status 1"
        t "${option#*/}: the message names the layer" grep -q -- "$name" "$T/said"
    fi
done

changed 's/transport.socket.ssl-enabled .*$/x off/; s/option transport-type tcp/option transport-type tcp\n    option transport.socket.ssl-enabled on/'
refuses 1 'glusterfs.pem: No such file' "TLS without a certificate" -f "$T/changed.vol" --brick-port 0

python3 -c '
import signal, socket
s = socket.socket(); s.bind(("0.0.0.0", 40404)); s.listen(); signal.pause()' &
wait_for 120 "the port to be taken" port_answers 40404
refuses 98 '40404' "a port that is taken" -f "$vol" --brick-port 40404

missing=$T/v/missing
volfile_brick v "$missing" "$id" >"$T/changed.vol"
refuses 1 "$missing" "a brick folder that is not there" -f "$T/changed.vol" --brick-port 0
t "the missing folder is not made" test ! -e "$missing"
touch "$T/v/file"
volfile_brick v "$T/v/file" "$id" >"$T/changed.vol"
refuses 1 "$T/v/file" "a brick that is no folder" -f "$T/changed.vol" --brick-port 0

volfile_brick v "$brick" 11111111-2222-3333-4444-555555555555 >"$T/changed.vol"
refuses 1 'volume-id' "the volume-id of another volume" -f "$T/changed.vol" --brick-port 0
mkdir -p "$T/v/plain/.glusterfs"
volfile_brick v "$T/v/plain" "$id" >"$T/changed.vol"
refuses 1 'volume-id' "a folder without a volume-id (its disk is not mounted)" -f "$T/changed.vol" --brick-port 0
brick_make "$T/v/gfid" "$id"
setfattr -n trusted.gfid -v 0x00000000000000000000000000000002 "$T/v/gfid"
volfile_brick v "$T/v/gfid" "$id" >"$T/changed.vol"
refuses 1 'gfid' "a root with another gfid" -f "$T/changed.vol" --brick-port 0

for list in '10.0.0.0/33' '/sub(10.0.0.1'; do
    BRICK_SERVER_OPTIONS="auth.addr.$brick.reject $list" volfile_brick v "$brick" "$id" >"$T/changed.vol"
    refuses 1 "auth.addr.$brick.reject" "a list of addresses that cannot be read, $list" -f "$T/changed.vol" --brick-port 0
done

# In a folder that others may write to, too.
mkdir -m 1777 "$T/open"
echo "not to be written" >"$T/target"
ln -s "$T/target" "$T/open/link.pid"
ln "$T/target" "$T/open/hard.pid"
mkfifo "$T/open/fifo.pid"
for name in link hard fifo; do
    refuses 1 "open/$name.pid" "a pid file that is somebody's $name" -f "$vol" --brick-port 0 -p "$T/open/$name.pid"
done
ln -s "$T/target" "$T/open/port.new"
ln -s "$T/target" "$T/open/port"
rm -f "$T/pid"
"$KILND" -N -f "$vol" -l "$log" -p "$T/pid" --brick-port 0 --port-file "$T/open/port" >"$T/said" 2>&1 </dev/null &
pid=$!
wait_for 120 "the port to be written" test -s "$T/open/port" -a ! -L "$T/open/port"
kill -TERM "$pid"
t_here "a port file where links lie: kilnd serves and ends with status 0" wait "$pid"
is "$(cat "$T/target")" "not to be written" "the target of the links is unchanged"

mkdir "$T/ramfs"
mount -t ramfs none "$T/ramfs"
mkdir -p "$T/ramfs/b/.glusterfs"
volfile_brick v "$T/ramfs/b" "$id" >"$T/changed.vol"
refuses 1 "xattr|extended attribute|not supported" "a file system without attributes" -f "$T/changed.vol" --brick-port 0

refuses 1 'twice|already|serves' "the same brick twice" -f "$vol" -f "$vol" --brick-port 0
chmod 755 "$T"
install -m 755 "$KILND" "$T/kilnd" # somewhere everybody may go
status=0
setpriv --reuid 65534 --regid 65534 --clear-groups timeout 120 "$T/kilnd" -N -f "$vol" --brick-port 0 \
    >"$T/said" 2>&1 </dev/null || status=$?
is "$status" 1 "not root: exit status 1"
t "not root: the message names the cause" grep -qi root "$T/said"

status=0
timeout 120 "$KILND" -f "$T/half.vol" -l "$log" -p "$T/pid" >"$T/said" 2>&1 </dev/null || status=$?
is "$status" 1 "a failed start in the background: the parent ends with the status"
status=0
timeout 120 "$KILND" -f "$vol" -l "$log" -p "$T/pid" --brick-port 0 --port-file "$T/port" >"$T/said" 2>&1 \
    </dev/null || status=$?
is "$status" 0 "a good start in the background: the parent ends with 0"
t "the port answers when the parent has ended" port_answers "$(cat "$T/port")"
status=0
timeout 120 "$KILND" -N -f "$vol" -l "$log" -p "$T/pid" --brick-port 0 >"$T/said" 2>&1 </dev/null || status=$?
is "$status" 1 "a second kilnd with the same pid file is refused"
kill -TERM "$(cat "$T/pid")"
