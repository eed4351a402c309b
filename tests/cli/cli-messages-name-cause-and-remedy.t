#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Messages that an operator meets name the object, the cause and the remedy: wrong commands, features that are not built,
# mounts that fail, clients that are refused.
# Covers: cli/kiln.c, cli/ask.c, cli/bench.c, cli/show.c, mount/spec.c, mount/helper.c, volumes/volume-options.c,
# volumes/shut-out.c, xlators/protocol/server/handshake.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/front.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"
[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

system_cover
ln -s "$KILN_MOUNT" /usr/sbin/mount.kiln
mkdir -p "$T/b" "$T/mnt" "$T/mnt2"
front_start
for vol in web rest; do
    kiln create "$vol" replica 2 "$T/b/$vol"{1,2} >"$T/log/kiln.out"
done
kiln set web cluster.self-heal-daemon off >>"$T/log/kiln.out"
kiln start web >>"$T/log/kiln.out"

# says TEXT COMMAND...: the command fails and prints the text
says() {
    local text=$1
    shift
    t "$*: $text" fails_with "$text" "$@"
}

# Commands.
says "did you mean volume?" kiln volum start web
says "did you mean start?" kiln volume strat web
says "all bricks of a kilnd without a glusterd are folders of its machine" kiln create x replica 2 "nohost.invalid:$T/b/x1" "nohost.invalid:$T/b/x2"
says "features.quota on is not built: " kiln set web features.quota on
says "kiln volume limit web 10G" kiln set web features.quota on
says "nfs.disable off: an NFS server is not built" kiln set web nfs.disable off
says "did you mean kiln --version?" kiln version
says "status: there is no option '--detail'" kiln status --detail
says "option cluster.quorum-type foo: expected one of none, auto, fixed" kiln set web cluster.quorum-type foo
says "kiln tls init" kiln set web server.ssl on
says "kiln volume create empty /srv/empty-1" kiln create empty
says "1 brick with replica 2" kiln create odd replica 2 "$T/b/odd"
: >"$T/b/file"
says "it is no folder; expected an empty folder" kiln create odd "$T/b/file"
t "kiln quota without limits says how to set one" grep -q 'kiln volume quota web set PATH SIZE' <(kiln quota web)
says "expected the absolute path of a kilnd" kiln upgrade /nofile
says "'abc' is no process id" kiln upgrade mounts abc
says "pgrep -a kiln-mount" kiln upgrade mounts 1
says "findmnt -t fuse.glusterfs" kiln pools mount "$T/nowhere"
says '"try": "kiln volume list"' kiln --json info nosuch
says "$T/nowhere does not exist" kiln mount web "$T/nowhere"
says "mkdir -p $T/nowhere" kiln mount web "$T/nowhere"
says "volume rest is not started" kiln mount rest "$T/mnt"
t "kiln bench shows the load of the machine" grep -q '^Load average of this machine before the measurement: ' <(kiln bench web 0.1)
kiln status >"$T/status"
t "the last line of kiln status is the sum" grep -qx 'All: 2 volumes, 1 started; 2 bricks of these, 2 online; 0 objects wait for heal' "$T/status"
dump=$(kiln statedump)
t "kiln statedump prints the name of the file" test -s "$dump"
t "kiln explain says that nothing is slow, or shows ten calls at most" test \
    "$(kiln explain "$dump" | awk '/^The ten slowest/ { is_slow = 1; next } /^[^ ]/ { is_slow = 0 } is_slow' | wc -l)" -le 10

# Mounts.
says "option foo: not known; the options: man kiln-mount" kiln mount web "$T/mnt" -o foo
says "host nohost.invalid is not known" mount -t kiln -o noshared nohost.invalid:/web "$T/mnt"
says "localhost has no volume nope; its volumes: kiln list" mount -t kiln -o noshared localhost:/nope "$T/mnt"
says "volume rest is not started; on localhost: kiln start rest" mount -t kiln -o noshared localhost:/rest "$T/mnt"
says "source web: expected HOST:/web, or the path of a volfile" mount.kiln web "$T/mnt"
is "$("$KILN_MOUNT" -f /nofile.vol "$T/mnt" 2>&1 | grep -c nofile)" 1 "kiln-mount reports a missing volfile once"
t "kiln-mount --version names the program" grep -q '^kiln-mount 0' <("$KILN_MOUNT" --version)
t "mount.kiln --help prints the usage" grep -q '^usage: mount.kiln SOURCE DIR' <(mount.kiln --help)

# Clients that would be shut out.
kiln mount web "$T/mnt" -o hard=1
kiln set web auth.allow 127.0.0.1 >"$T/log/set.out"
t "a list that lets all clients in is set" grep -q 'web: set' "$T/log/set.out"
says "auth.allow 10.0.0.1 would disconnect 1 connected client of volume web, among them 127.0.0.1" kiln set web auth.allow 10.0.0.1
says "auth.reject 127.0.0.* would disconnect 1 connected client" kiln set web auth.reject '127.0.0.*'
t "the client is connected as before" touch "$T/mnt/file"
is "$(kiln --json get web auth.allow | grep -c 127.0.0.1)" 1 "the refused list is not set"
t "--force sets the list" kiln set web auth.allow 10.0.0.1 --force
cut_off() {
    ! timeout 10 ls "$T/mnt"
}
t "the client is disconnected" wait_for 60 "the client to be cut off" cut_off
refusal_is_logged() {
    grep -q '127.0.0.1: login refused: authentication failed (Permission denied): auth.allow does not name the address' "$T/log/kilnd.log"
}
t "the log names the address and the option of the refused login" wait_for 60 "the line" refusal_is_logged
t "a list without a client to lose needs no --force" kiln set web auth.allow '*'
t "the client works again" wait_for 60 "the client" touch "$T/mnt/again"
kiln stop web >"$T/stopped"
t "kiln stop tells how many clients were connected" grep -qx '1 client was connected; calls there fail until: kiln start web' "$T/stopped"
umount "$T/mnt"

# At a terminal, commands that harm are asked about: answered ANSWER QUESTION COMMAND...: types the answer. The time limit is around
# the terminal: inside, a shell that forks (dash) would make timeout a process of the background, which may not read the terminal.
answered() {
    local answer=$1 question=$2 status=0
    shift 2
    SHELL=/bin/sh timeout 60 script -qec "$KILN $*" /dev/null <<<"$answer" >"$T/answered" || status=$?
    grep -q "$question" "$T/answered" || { cat "$T/answered" >&2; return 99; }
    return "$status"
}
refuses() {
    local status=0
    "$@" || status=$?
    [[ $status == 1 ]]
}
bricks_of() {
    kiln --json info web | grep -c "$T/b/web[12]\""
}
kiln start web >"$T/log/kiln.out"
t "no to kiln remove-brick replica keeps the copies" refuses answered n 'will keep fewer copies.*(y/n)' remove-brick web replica 1 "$T/b/web2" force
is "$(bricks_of)" 2 "both bricks are there"
t "no to kiln stop keeps the volume started" refuses answered n 'will lose it. Stop? (y/n)' stop web
t "yes to kiln remove-brick replica removes the brick" answered y 'will keep fewer copies.*(y/n)' remove-brick web replica 1 "$T/b/web2" force
is "$(bricks_of)" 1 "one brick is left"
t "yes to kiln stop stops the started volume" answered y 'will lose it. Stop? (y/n)' stop web
t "no to kiln delete keeps the volume" refuses answered n 'Delete? (y/n)' delete web
t "kiln knows the volume" kiln info web
t "yes to kiln delete deletes the volume" answered y 'Delete? (y/n)' delete web
says "there is no volume web" kiln info web
