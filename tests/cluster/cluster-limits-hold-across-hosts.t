#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Limits of volumes and folders hold on three hosts that share a store: for the copies of a replicated volume, and for
# the sum of subvolumes on different hosts. A host that was down gets a limit, and loses a removed one, when it returns.
# Covers: volumes/cluster/cluster-quota.c, volumes/cluster/quota-hosts.c, volumes/quota-rows.c, volumes/cluster/cluster-identity.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

cluster_net 3
etcd_start
mkdir "$T/m1" "$T/m2"
for h in h1 h2 h3; do
    host_start "$h"
done
write() { dd if=/dev/zero of="$1" bs=64k count="$2" conv=fsync status=none; }
limit_of() { # HOST BRICK FOLDER: the limit that the folder has on the brick
    getfattr --only-values -n trusted.gfs.squota.limit "$T/$1/srv/$2/$3" 2>/dev/null || echo none
}
has_limit() { [[ $(limit_of "$1" "$2" "$3") == "$4" ]]; }
field() { kiln_of "$1" --json volume status "$2" | python3 -c 'import json, sys; print(json.load(sys.stdin)["volumes"][0][sys.argv[1]])' "$3"; }
used_is_above() {
    local used
    used=$(field "$1" "$2" used)
    [[ $used != None && $used -gt $3 ]]
}
listed() { kiln_of "$1" --json volume quota "$2" list | python3 -c 'import json, sys
print(*[str(o["limit"]) + ":" + str(o["used"]) for o in json.load(sys.stdin)["limits"] if o["path"] == sys.argv[1]])' "$3"; }

# two copies on h1 and h2; h3 has no brick
t "a volume with bricks and a limit is created" kiln_of h3 volume create r replica 2 h1:/srv/r h2:/srv/r size 4M
kiln_of h3 volume start r >/dev/null
t "kiln-mount mounts the volume" cluster_mount r "$T/m1"
is "$(limit_of h1 r .) $(limit_of h2 r .)" "4194304 4194304" "both bricks have the limit"
t "2 MiB can be written" write "$T/m1/a" 32
t_not "3 MiB more cannot be written" write "$T/m1/b" 48
rm -f "$T/m1/b"
is "$(field h3 r limit)" 4194304 "a host without bricks shows the limit"
t "a host without bricks shows the usage" wait_for 60 "the usage" used_is_above h3 r 2000000
t "any host raises the limit" kiln_of h2 volume limit r 16M
t "4 MiB more can be written" write "$T/m1/b" 64
mkdir -p "$T/m1/home/ann"
t "a folder of a wrong path is refused" fails_with "home/eve" kiln_of h3 volume quota r set /home/eve 1M
t "a wrong size is refused" fails_with "is not a valid limit" kiln_of h3 volume quota r set /home/ann many
t "a folder gets a limit" kiln_of h3 volume quota r set /home/ann 1M
is "$(limit_of h1 r home/ann) $(limit_of h2 r home/ann)" "1048576 1048576" "both bricks have the folder's limit"
t_not "2 MiB cannot be written there" write "$T/m1/home/ann/x" 32
rm -f "$T/m1/home/ann/x"
is "$(listed h3 r /home/ann | cut -d : -f 1)" 1048576 "a host without bricks lists the folder"

t_here "the second host ends" host_stop h2
t "the first host counts the dead host as down" wait_for 60 "h2 to be down" host_is h2 down
t "a limit of a folder needs all hosts" fails_with "host h2 is down" kiln_of h1 volume quota r set /home/ann 2M
is "$(limit_of h1 r home/ann)" 1048576 "the refused limit changes no brick"
t "the limit of the volume is removed meanwhile" kiln_of h1 volume limit r none
t_here "the second host returns" host_start h2
t "the returned host has lost the limit" wait_for 60 "no limit" has_limit h2 r . none
is "$(limit_of h1 r .)" none "the first host has lost the limit"
t "a removed limit of a folder is gone" kiln_of h2 volume quota r remove /home/ann
is "$(limit_of h1 r home/ann) $(limit_of h2 r home/ann)" "none none" "both bricks have lost the limit of the folder"

# three subvolumes on three hosts
kiln_of h1 volume create d h1:/srv/d h2:/srv/d h3:/srv/d >/dev/null
kiln_of h1 volume start d >/dev/null
t "kiln-mount mounts the distributed volume" cluster_mount d "$T/m2" --hard=2
t "a started volume gets a limit" kiln_of h2 volume limit d 12M
is "$(limit_of h1 d .) $(limit_of h2 d .) $(limit_of h3 d .)" "12582912 12582912 12582912" "all bricks have the limit"
for i in 1 2 3 4 5 6 7 8; do
    write "$T/m2/f$i" 16
done
for h in h1 h2 h3; do
    t "host $h knows the usage of all hosts" wait_for 60 "the usage" used_is_above "$h" d 8000000
done
# Each brick alone is far below the limit: only the sum is above.
fill() {
    local i
    for i in {10..60}; do
        write "$T/m2/f$i" 16 || return 0
        sleep 0.1
    done
    return 1
}
t "writes to all hosts end at the limit of the sum" fill
sum=$(du -scB1 --exclude=.glusterfs "$T"/h?/srv/d | tail -n 1 | cut -f 1)
t "the sum is not far above the limit" test "$sum" -lt 20000000

# A host that restarts while another one is down has its own brick's usage only, far below the limit.
small=$(find "$T/h1/srv/d" -maxdepth 1 -type f -name 'f*' -size +0 | head -n 1)
t_here "the third host ends" host_stop h3
t "the first host counts the dead host as down" wait_for 60 "h3 to be down" host_is h3 down
t_here "the first host ends" host_stop h1
t_here "the first host returns" host_start h1
is_back() { test -s "$T/m2/${small##*/}"; }
t "its brick serves the mount" wait_for 60 "the mount" is_back
t "the limit holds there" fails_with "quota exceeded" write "$T/m2/${small##*/}" 64
