#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Three hosts whose clocks are 600 s apart create a volume, heal, and prove themselves. Two hosts
# that cannot reach each other, but the third host and the store, write through mounts of their own, and no acknowledged
# write is lost. A host with a full disk misses writes and gets them when the disk has room. A second machine with the name
# of a host is refused. The brick of a host that returns with the disk of an earlier day is refused, mounts read the newer
# data of the others, and after replace-brick it is healed. So is a brick whose disk goes back by seconds before an orderly
# end. A host makes etcd forget former values.
# Covers: volumes/cluster/store-history.c, volumes/cluster/brick-age.c, volumes/cluster/cluster.c, volumes/cluster/cluster-register.c, volumes/cluster/host-proof.c, volumes/heal/heal-watch.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

gcc -shared -fPIC -O1 -o "$T/skew.so" "$source_dir/tests/cluster/skew.c"
cluster_net 3
etcd_start
# 1,200 former values of another program's key, of which the store has to forget the first half
python3 - <<'END'
import base64, http.client, json
etcd = http.client.HTTPConnection("127.0.0.1", 2379)
key = base64.b64encode(b"other").decode()
for i in range(1200):
    etcd.request("POST", "/v3/kv/put", json.dumps({"key": key, "value": key}))
    etcd.getresponse().read()
END
skewed_start() { # HOST [ARG...]
    local plain=$KILND host=$1
    local -A skew=([h1]=-300 [h2]=0 [h3]=300)
    printf '#!/bin/sh\nLD_PRELOAD=%s KILN_SKEW=%s exec %s "$@"\n' "$T/skew.so" "${skew[$host]}" "$plain" >"$T/kilnd-$host"
    chmod +x "$T/kilnd-$host"
    KILND=$T/kilnd-$host host_start "$@"
}
mkdir -p "$T"/h{1,2,3}/usr/lib/ssl "$T"/h{1,2,3}/etc/ssl "$T"/h{1,2,3}/etc/kiln "$T/m"
for h in h1 h2 h3; do
    mkdir "$T/$h/srv/root"
    mount -t tmpfs -o size=64m kiln-test "$T/$h/srv/root"
    mkdir "$T/$h/srv/root/v"
done
on h1 "$KILN" tls init h1 10.9.0.11 >/dev/null
t_here "the first host starts, 300 s late" skewed_start h1 --brick-root /srv/root
for h in h2 h3; do
    t "host $h is added" on h1 "$KILN" --socket="$T/h1/socket" host add "$h" "10.9.0.1${h#h}" "$T/$h.pem"
    on "$h" "$KILN" tls take "$T/$h.pem" >/dev/null
    t_here "host $h starts" skewed_start "$h" --brick-root /srv/root
done
dates=$(for h in h1 h3; do grep -o '^\[[0-9-]* [0-9:]*' "$T/log/kilnd-$h.log" | tail -n 1 | tr -d '[' | xargs -I{} date -d {} +%s; done | xargs)
t "the logs show clocks 600 s apart" test $((${dates#* } - ${dates% *})) -gt 550
all_up() { [[ $(kiln_of h2 host list | grep -c ' up ') -eq 3 ]]; }
t "all hosts are up" wait_for 60 "three hosts" all_up
t "a volume is created" kiln_of h1 volume create v replica 3 h1:/srv/root/v h2:/srv/root/v h3:/srv/root/v
t "the volume starts" kiln_of h3 volume start v
t "kiln-mount mounts the volume" cluster_mount v "$T/m"
is_healed() { [[ $(kiln_of h2 volume heal v info | grep -c '^Number of entries: 0$') -eq 3 ]]; }
same_bricks() {
    local h
    for h in h2 h3; do
        [[ $(cd "$T/$h/srv/root/v" && find . -name '.glusterfs*' -prune -o -type f -exec md5sum {} + | sort) == \
            "$(cd "$T/h1/srv/root/v" && find . -name '.glusterfs*' -prune -o -type f -exec md5sum {} + | sort)" ]] || return 1
    done
}

t_here "the third host ends" host_stop h3
for i in 1 2 3 4 5; do echo "late $i" >"$T/m/late$i"; done
t_here "the third host returns" skewed_start h3 --brick-root /srv/root
t "its brick is healed with clocks 600 s apart" wait_for 120 "the heal" is_healed
t "the bricks are equal" wait_for 60 "equal bricks" same_bricks
sleep 20
t "no lease ends by the clocks" all_up

# Hosts 1 and 2 do not reach each other.
for h in h1 h2; do
    mkdir "$T/mnt-$h"
    on "$h" "$KILN_MOUNT" -s "$h" --volfile-id=v --log-file="$T/log/mount-$h.log" "$T/mnt-$h"
done
mount_pid() { pgrep -f "kiln-mount -s $1 --volfile-id"; }
pair() { # add|del
    ip -n h1 route "$1" blackhole 10.9.0.12/32
    ip -n h2 route "$1" blackhole 10.9.0.11/32
}
writer() { # HOST: a process on that host, in the mount namespace of its kiln-mount
    local pid
    pid=$(mount_pid "$1")
    nsenter -t "$pid" --mount --net bash -c 'i=0; until [[ -e $1/stop ]]; do i=$((i + 1))
        echo "$2 $i" >"$1/mnt-$2/of-$2-$i" 2>/dev/null && sync "$1/mnt-$2/of-$2-$i" 2>/dev/null && echo "$i" >>"$1/written-$2"
        echo "$2 $i" >>"$1/mnt-$2/shared" 2>/dev/null && echo "$2 $i" >>"$1/appended"; done' bash "$T" "$1" || true
}
writer h1 &
one=$!
writer h2 &
two=$!
sleep 3
pair add
sleep 15
t "both hosts see three hosts while they cannot reach each other" all_up
t "a change works at the first host" kiln_of h1 volume set v network.ping-timeout 11
t "the second has the change" host_says h2 "network.ping-timeout: 11" volume info v
pair del
sleep 3
touch "$T/stop"
wait "$one" "$two"
t "the volume is healed after the cut" wait_for 240 "the heal" is_healed
lost=0
for h in h1 h2; do
    while read -r i; do
        [[ $(cat "$T/m/of-$h-$i") == "$h $i" ]] || lost=$((lost + 1))
    done <"$T/written-$h"
done
diag "$(cat "$T"/written-h? | wc -l) files, $(wc -l <"$T/appended") lines"
is "$lost" 0 "no acknowledged file is lost"
is "$(sort "$T/appended" | comm -23 - <(sort "$T/m/shared") | wc -l)" 0 "no acknowledged line of the shared file is lost"
t "the bricks are equal" wait_for 60 "equal bricks" same_bricks
kill "$(mount_pid h1)" "$(mount_pid h2)"

# The disk of host 3 is full.
dd if=/dev/zero of="$T/h3/srv/root/fill" bs=1M 2>/dev/null || true
t "a file is written while a disk is full" eval 'head -c 3000000 /dev/urandom >"$T/m/big" && sync "$T/m/big"'
rm "$T/h3/srv/root/fill"
t "the host gets the file when there is room" wait_for 240 "the heal" is_healed
room() { echo room >"$T/m/room" && sync "$T/m/room" && [[ -s $T/h3/srv/root/v/room ]]; }
t "clients write to the host again" wait_for 120 "room" room
t "the bricks are equal" wait_for 60 "equal bricks" same_bricks

# Two machines with one name
refused_twin() {
    local status=0
    on h3 timeout 60 "$KILND" --store "$cluster_store" --host h1 --state "$T/twin" -N -l "$T/log/twin.log" \
        --store-cert "$T/h1/usr/lib/ssl/glusterfs.pem" --store-key "$T/h1/usr/lib/ssl/glusterfs.key" \
        --management-socket "$T/twin.socket" --port 24008 || status=$?
    [[ $status -ne 0 && $status -ne 124 ]] && grep "host h1 is another machine of this store" "$T/log/twin.log"
}
t "a second machine with the name of a host is refused, also with its certificate" refused_twin

# The disk of a host goes back to the time before writes that all three bricks had
age_of() { cat "$T/$1/srv/root/v/.glusterfs/kiln-age"; }
is_older() { [[ $(age_of h2) -gt $1 ]]; }
t "the bricks have ages" wait_for 240 "the age" age_of h2
t_here "the second host ends" host_stop h2
age=$(age_of h2)
cp -a "$T/h2/state" "$T/old-state"
mkdir "$T/old-brick"
cp -a "$T/h2/srv/root/v" "$T/old-brick/"
t_here "the second host starts" skewed_start h2 --brick-root /srv/root
t "the volume is healed" wait_for 120 "the heal" is_healed
t "the age of its brick grows" wait_for 120 "the age" is_older "$age"
knows_age() { store get /kiln/ages/h2 | grep -q ":$(age_of h2)[,}]"; }
t "the store knows the age" wait_for 60 "the store" knows_age
echo changed >"$T/m/late1"
rm "$T/m/late2"
echo new >"$T/m/new"
sync "$T/m/new"
has_change() { [[ $(cat "$T/h2/srv/root/v/late1") == changed ]] && is_healed; }
t "the second brick has the changes, and no brick accuses it" wait_for 120 "the change" has_change
t_here "the second host dies" host_kill h2
t "a volume is made meanwhile" kiln_of h1 volume create w replica 2 h1:/srv/root/w h3:/srv/root/w
rm -rf "$T/h2/state" "$T/h2/srv/root/v"
cp -a "$T/old-state" "$T/h2/state"
cp -a "$T/old-brick/v" "$T/h2/srv/root/"
t_here "the second host returns with its old disk" skewed_start h2 --brick-root /srv/root
t "the host with its old disk has the volumes of the store" wait_for 60 "the volumes" eval '[[ $(kiln_of h2 volume list | sort | xargs) == "v w" ]]'
t "its brick is refused" grep -q "the disk of this brick was set back" "$T/log/kilnd-h2.log"
t "the status shows the brick as offline" host_says h1 "^Brick h2:/srv/root/v .* N " volume status v
t "a forced start goes on without the brick, and says why" host_says h1 "host h2: brick /srv/root/v: the disk of this brick was set back" volume start v force
t "the brick is offline still" host_says h1 "^Brick h2:/srv/root/v .* N " volume status v
truth=$(printf 'new\nchanged\n0')
mkdir "$T/fresh"
cluster_mount v "$T/fresh"
is "$(cat "$T/fresh/new" "$T/fresh/late1"; ls "$T/fresh" | grep -c '^late2')" "$truth" "a new mount reads the changes"
t "another folder replaces the brick" kiln_of h1 volume replace-brick v h2:/srv/root/v h2:/srv/root/v2
rm -rf "$T/h2/srv/root/v"
ln -s v2 "$T/h2/srv/root/v" # for the functions that compare
t "the brick is healed" wait_for 240 "the heal" is_healed
t "the bricks are equal" wait_for 60 "equal bricks" same_bricks
is "$(cat "$T/m/new" "$T/m/late1"; ls "$T/m" | grep -c '^late2')" "$truth" "no change is lost, and no removed file returns"

# A host whose disk goes back while the store is away: the brick serves first, and ends when the store is back.
t "the new brick has an age" wait_for 120 "the age" age_of h2
t "the store knows the age" wait_for 120 "the store" knows_age
t_here "the second host ends" host_stop h2
age=$(age_of h2)
cp -a "$T/h2/srv/root/v2" "$T/old-brick/"
t_here "the second host starts" skewed_start h2 --brick-root /srv/root
t "the age of its brick grows" wait_for 120 "the age" is_older "$age"
t "the store knows the age" wait_for 60 "the store" knows_age
t_here "the second host dies" host_kill h2
etcd_stop
rm -rf "$T/h2/srv/root/v2"
cp -a "$T/old-brick/v2" "$T/h2/srv/root/"
t_here "the second host returns without its store" skewed_start h2 --brick-root /srv/root
etcd_start
t "its brick ends when the store is back" wait_for 240 "the end" grep -q "volume v: brick /srv/root/v2 ends: the disk of this brick" "$T/log/kilnd-h2.log"
rm "$T/h2/srv/root/v/.glusterfs/kiln-age"
t "without its age the brick is taken as it is" kiln_of h2 volume start v force
t "the volume is healed" wait_for 240 "the heal" is_healed
t "the bricks are equal" wait_for 60 "equal bricks" same_bricks

# A disk that goes back by seconds, to a moment before the orderly end of kilnd
t "the brick has an age" wait_for 60 "the age" age_of h2
t "the store knows the age" wait_for 60 "the store" knows_age
echo before >"$T/m/seconds"
sync "$T/m/seconds"
t "the volume is healed" wait_for 240 "the heal" is_healed
rm -rf "$T/old-brick/v2"
cp -a "$T/h2/srv/root/v2" "$T/old-brick/"
echo after >"$T/m/seconds"
sync "$T/m/seconds"
t_here "the second host ends" host_stop h2
rm -rf "$T/h2/srv/root/v2"
cp -a "$T/old-brick/v2" "$T/h2/srv/root/"
t_here "the second host returns with a disk that is seconds older" skewed_start h2 --brick-root /srv/root
t "its brick is refused" host_says h1 "^Brick h2:/srv/root/v2 .* N " volume status v
rm -rf "$T/h2/srv/root/v2"
t "an empty folder takes the place of the brick" kiln_of h1 volume reset-brick v h2:/srv/root/v2 h2:/srv/root/v2 commit force
t "the brick is healed" wait_for 240 "the heal" is_healed
t "the bricks are equal" wait_for 60 "equal bricks" same_bricks
t "the age of a brick that nobody writes comes to rest" wait_for 120 "the same age for 30 s" \
    eval 'age=$(age_of h2); sleep 30; [[ $(age_of h2) == "$age" ]]'

t "the store has forgotten former values" fails_with "required revision has been compacted" store get --rev=600 other

umount "$T/fresh"
umount "$T/m"
