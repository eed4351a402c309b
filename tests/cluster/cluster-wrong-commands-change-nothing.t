#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A typing error in any argument of a command about volumes of several hosts is refused with a text that names the wrong
# word and the right word or a command, and neither the store nor a brick changes. A host that returns with an old state
# folder follows the store, and so does a host whose state folder is on a full disk.
# Covers: volumes/cluster/cluster-change.c, volumes/cluster/cluster-bricks.c, volumes/cluster/cluster-jobs.c, volumes/verbs/verbs-change.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

cluster_net 3
etcd_start
mkdir -p "$T/h3/state"
mount -t tmpfs -o size=256k,mode=700 kiln-test "$T/h3/state"
for h in h1 h2 h3; do
    mkdir "$T/$h/srv/root"
    host_start "$h" --brick-root /srv/root
done
kiln_of h1 volume create v replica 3 h1:/srv/v h2:/srv/v h3:/srv/v >/dev/null
kiln_of h1 volume create d h1:/srv/d h2:/srv/d >/dev/null
kiln_of h1 volume start v >/dev/null
# The volumes, hosts and jobs of the store, and the bricks without the folder that their healer makes.
all() {
    store get --prefix /kiln/volumes/
    store get --prefix /kiln/hosts/
    store get --prefix /kiln/jobs/
    find "$T"/h?/srv -path '*/.glusterfs*' -prune -o -print | sort
}
all >"$T/before"

refused() { # WRONG HINT COMMAND...
    local wrong=$1 hint=$2 said
    shift 2
    if said=$(kiln_of h2 "$@" 2>&1); then
        echo "succeeded: kiln $*"
        return 1
    fi
    [[ $said == *"$wrong"* && $said == *"$hint"* && $said =~ (expected|try:) ]] || { echo "$said"; return 1; }
}
# Each line: the text of the error that names the wrong word, the text that helps, and the command.
while IFS=';' read -r wrong hint command; do
    # shellcheck disable=SC2086
    t "refused with a text that helps: kiln $command" refused "$wrong" "$hint" $command
done <<'EOT'
host h9;one of h1, h2, h3;volume create n replica 2 h1:/srv/n h9:/srv/n
expected a brick;kiln volume create NAME [replica N;volume create n replica 2 h1 h2
2 bricks with replica 3;a multiple of 3 bricks;volume create n replica 3 h1:/srv/n h2:/srv/n
exists already;kiln volume info v;volume create v h1:/srv/n
volume v has its brick;a folder that no volume uses;volume create n h1:/srv/v
twice;a folder of its own for each brick;volume create n replica 2 h1:/srv/n h1:/srv/n
not a valid limit;such as 500M;volume create n h1:/srv/n size 10X
not absolute;an absolute path;volume create n h1:srv/n
no volume vv;kiln volume list;volume start vv
is started already;kiln volume status v;volume start v
is not started;kiln volume start d;volume stop d
is started;kiln volume stop v;volume delete v
no volume vv;kiln volume list;volume delete vv
there is no option;kiln volume get v all;volume set v no.such.option on
read-only;expected on or off;volume set v features.read-only maybe
there is no option;kiln volume info v;volume reset v no.such.option
no volume vv;kiln volume list;volume limit vv 1G
not a valid limit;such as 500M;volume limit v 1Q
has no limit;kiln volume limit v 10G;volume limit v none
not a folder;such as /home/ann;volume quota v set home 1G
No such file;the path of a folder;volume quota v set /home 1G
no volume vv;kiln volume list;volume rebalance vv start
one set of bricks;kiln volume add-brick v;volume rebalance v start
is not started;kiln volume start d;volume rebalance d start
rebalance begin is not known;kiln volume rebalance v status;volume rebalance v begin
no running rebalance;kiln volume info v;volume rebalance v stop
host h9;one of h1, h2, h3;volume add-brick v replica 4 h9:/srv/x
h1:/srv/v;a folder of its own for each brick;volume add-brick v h1:/srv/v h1:/srv/x h2:/srv/x
/srv/x is no brick of volume d;kiln volume info d;volume remove-brick d h1:/srv/x force
h9:/srv/v is no brick of volume v;kiln volume info v;volume replace-brick v h9:/srv/v h1:/srv/x
host h9;one of h1, h2, h3;volume replace-brick v h1:/srv/v h9:/srv/x
not drained;kiln volume remove-brick d BRICK... start;volume remove-brick d h1:/srv/d commit
/srv/x is no brick of volume v;kiln volume info v;volume reset-brick v h1:/srv/x start
no volume vv;kiln volume list;volume heal vv
'inof': expected full, info, statistics or split-brain;kiln volume heal NAME [full | info;volume heal v inof
no volume vv;kiln volume list;volume status vv
no volume vv;kiln volume list;volume profile vv info
host h9;kiln host list;host remove h9
is up;systemctl disable --now kilnd;host remove h3
host h9;kiln host list;host drain h9
/nope cannot be run;kiln upgrade --rolling;upgrade --rolling /nope
/etc/hosts cannot be run;kiln upgrade --rolling;upgrade --rolling /etc/hosts
no job;kiln job list;job stop 77
job stop: wrong number of arguments;kiln job stop JOB;job stop
there is no option '--roling';kiln upgrade [PROGRAM | --rolling [PROGRAM];upgrade --roling
host add: wrong number of arguments;kiln host add HOST ADDRESS [FILE];host add
no authority;kiln tls init;host add h4 10.9.0.14
cannot be the name;1 to 64 letters;host add h,4 10.9.0.14
host add: wrong number of arguments;kiln host add HOST ADDRESS [FILE];host add h4
neither etcd;kiln store move etcd://HOST:PORT HOST;store move etc://10.9.0.1:2379 h2
a host of a store needs a name;kiln store move etcd://HOST:PORT HOST;store move etcd://10.9.0.1:2379
the volumes are in the store;kiln store move DIR;store move etcd://10.9.0.1:2379 h2
has another host;kiln host remove h1;store move /tmp/none
'gluster' is not known;kiln export glusterd DIR;export gluster /tmp/none
tls take: wrong number of arguments;kiln tls take FILE;tls take
'imprt' is not known;export [FILE] | import FILE;store imprt x
'h2' is not the absolute path of a program;kiln upgrade [PROGRAM;upgrade --rolling h2
'begin': expected a brick;start|status|stop|commit;volume remove-brick d h1:/srv/d begin
EOT
t "neither the store nor a brick has changed" diff "$T/before" <(all)

cp -a "$T/h2/state" "$T/h2/old-state"
mkdir "$T/m"
t "kiln-mount mounts the volume" cluster_mount v "$T/m"
t_here "the second host ends" host_stop h2
t "an option changes meanwhile" kiln_of h1 volume set v features.read-only on
t "a volume is deleted meanwhile" kiln_of h1 --yes volume delete d
rm -rf "$T/h2/state"
mv "$T/h2/old-state" "$T/h2/state"
t_here "the second host returns with its old state folder" host_start h2
follows() {
    [[ $(kiln_of h2 volume get v features.read-only | tail -n 1) =~ on$ && $(kiln_of h2 volume list) == v ]]
}
t "the host with an old state folder follows the store" wait_for 60 "the store's volumes" follows
t "its copy follows, too" wait_for 60 "the copy" eval 'grep -q read-only "$T/h2/state/volumes/v.json" || grep -rq read-only "$T/h2/state"'

dd if=/dev/zero of="$T/h3/state/full" bs=4k 2>/dev/null || true
t "an option changes while a state folder is on a full disk" kiln_of h1 volume set v features.read-only off
writes() { echo x >"$T/m/f"; }
t "all three bricks have the option" wait_for 60 "a write" writes
t "the third brick has the file" wait_for 60 "the file" test -s "$T/h3/srv/v/f"
t "the log of the host with the full disk says so" grep -q cluster-copy "$T/log/kilnd-h3.log"
t "a volume with a brick on that host is refused and undone" fails_with "No space left" kiln_of h1 volume create n h2:/srv/n h3:/srv/n
t "no folder of that volume is left" test ! -e "$T/h2/srv/n"
is "$(kiln_of h2 volume list)" v "no half volume is in the list"
rm "$T/h3/state/full"
t "with free space the volume is created" kiln_of h1 volume create n h2:/srv/n h3:/srv/n

# Keys and texts that no kilnd writes.
store put "/kiln/volumes/$(printf 'x%.0s' {1..300})" '{}' >/dev/null
store put /kiln/volumes/w "$(store get --print-value-only /kiln/volumes/n | sed 's/"n"/"w"/; s/"options": *{/&"storage.gfid2path-separator":"x\\n\\toption\\tdirectory\\t\/etc",/')" >/dev/null
t "beside foreign keys of the store an option is set on all hosts" kiln_of h1 volume set v features.read-only on
t "the second host has the option, too" wait_for 20 "the store's volumes" eval '[[ $(kiln_of h2 volume get v features.read-only | tail -n 1) =~ on$ ]]'
t "a volume whose option would add a line to volfiles is refused" wait_for 20 "the refusal" grep -q "volume w: .*control characters" "$T/log/kilnd-h2.log"

t_here "the second host ends again" host_stop h2
store put /kiln/volumes/v "$(store get --print-value-only /kiln/volumes/v)"$'\xff' >/dev/null
t_here "the second host starts, and the store has lost the text of a volume" host_start h2
t "that host says so" wait_for 20 "the log" grep -q "does not follow volume v: " "$T/log/kilnd-h2.log"
t "that host keeps the volume" eval '[[ $(kiln_of h2 volume list) == *v* && -d $T/h2/srv/v/.glusterfs ]]'
