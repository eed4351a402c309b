#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Whole sessions of an operator run command by command, once over stock bricks and once over kilnd's, each in its own
# sandbox with its own glusterd. The script compares what each command prints, its exit status, and the contents of
# the bricks afterwards. The sessions cover xattrs that a mount reads and sets; options with right and wrong values;
# bricks that are killed, emptied, moved away, marked as another volume's, reset and replaced; the health check; and
# all of that multiplexed, with glusterd and the brick process killed in every order. Ports, process ids, times and
# gfids are masked.
#
# A session is a function here. `say CMD...` is a step whose output is compared.
#
# Covers: bricks/management.c, bricks/brick-ops.c, bricks/bricks.c, xlators/storage/posix/health.c

session=${2:-}
. "$(dirname "$0")/../lib/kiln.sh"

M=$T/mnt B=$T/bricks H=$glusterd_host G="gluster --mode=script"
export M B H G

masked() {
    sed -E "s,tmp-kiln-test\.\w+,TT,g; s,/?tmp/kiln-test\.\w+,TT,g; s/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/UUID/g
        s/[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:.]+( \+0000)?/TIME/g; s/[0-9a-f]{16}\.socket/SOCKET/; s/gfid2path\.[0-9a-f]{16}/gfid2path.HASH/
        s/^(s\/\S+) +[0-9]+ +0 +Y +[0-9]+/\1 PORT Y PID/; s/(on localhost) +N\/A +N\/A +[YN] +\S+/\1/
        s/ N +[0-9]+ *$/ N N\/A/; s/ +/ /g; s/ +$//"
}

# `volume status` shows a failed brick that shares its process with the process's id until it is detached, half a minute later.
say() {
    local status=0 out
    out=$(timeout 100 bash -c "$*" 2>&1 </dev/null) || status=$?
    printf '### %s\n' "$*" | masked
    masked <<<"$out"
    echo "status $status"
} >&3

online() { wait_for 120 "$2 bricks of $1" bricks_all_online "$1" "$2" || echo "never were $2 bricks of $1 online" >&3; }
reached() { wait_for 60 "the mount of $1" gl_mount_reaches "$M" "$1" "$2" || echo "the mount never reached $1" >&3; }
healed() { wait_for 60 "heal of $1" entries_are_gone "$1" "$2" || echo "$1 was never healed" >&3; }
entries_are_gone() { [[ $(gl volume heal "$1" info | grep -c '^Number of entries: 0$') == "$2" ]]; }
mounted() {
    gl_mount "$1" "$M" "${@:3}"
    reached "$1" "$2"
}
brick_pid() { cat /run/gluster/vols/"$1"/*bricks-"$2.pid"; }
brick_kill() {
    kill "-$3" "$(brick_pid "$1" "$2")"
    online "$1" "$4"
}
processes() { echo "brick processes: $(pgrep -cx glusterfsd)" >&3; }
glusterd_again() {
    rm -f "$T/glusterd.pid"
    glusterd -N -l "$T/log/glusterd.log" -p "$T/glusterd.pid" >>"$T/log/glusterd.out" 2>&1 </dev/null &
    glusterd_pid=$!
    wait_for 240 "glusterd to answer" gluster --mode=script volume list
}
glusterd_kill() {
    kill -KILL "$glusterd_pid"
    wait_for 120 "glusterd to end" process_gone "$glusterd_pid"
}

session_xattrs() {
    local name file
    say "$G volume create v replica 2 $H:$B/v0 $H:$B/v1 force"
    say "$G volume start v"
    online v 2
    say "$G volume start v"
    mounted v 1x2
    say "cd $M; mkdir -p d/e; echo text >d/f; ln d/f d/g; ln -s f d/s; echo U >UPPER"
    for name in trusted.glusterfs.node-uuid glusterfs.ancestry.path glusterfs.ancestry.dentry glusterfs.get_real_filename:upper \
        glusterfs.get_real_filename:nope glusterfs.gfid2path glusterfs.gfid.string trusted.glusterfs.list-node-uuids \
        trusted.glusterfs.volume-id trusted.gfid glusterfs.open-fd-count glusterfs.inodelk-count glusterfs.entrylk-count \
        glusterfs.posixlk-count glusterfs.parent-entrylk link-count trusted.glusterfs.get-link-count glusterfs.lockinfo user.none \
        trusted.glusterfs.quota.size list-xattr glusterfs.posix.acl system.posix_acl_access security.selinux trusted.afr.v-client-0 \
        trusted.glusterfs.mdata trusted.glusterfs.dht glusterfs.content glusterfs.unknown trusted.unknown replica.split-brain-status; do
        for file in . d d/f; do
            say "cd $M; getfattr --absolute-names -n $name $file"
        done
    done
    # GlusterFS 11 stores the name but does not show it (doc/gluster-versions.md).
    [[ -n ${KILN_STOCK_VERSION:-} ]] || shown_by_10=trusted.SGI_ACL_FILE
    for name in trusted.glusterfs.volume-id trusted.gfid trusted.glusterfs.dht trusted.pgfid.x trusted.afr.v-client-0 glusterfs.x trusted.x \
        user.x system.x security.x trusted.glusterfs.x ${shown_by_10:-} trusted.glusterfs.quota.x user.glusterfs.x \
        trusted.gfid2path.x trusted.io-stats-dump user.DOSATTRIB security.capability trusted.ec.size unknown.x; do
        for file in d d/f; do
            say "cd $M; setfattr -n $name -v abc $file; getfattr --absolute-names -n $name $file; setfattr -x $name $file"
        done
    done
    say "cd $M; getfattr --absolute-names -d -m . d/f d . | grep -v gfid"
    say "cd $B; getfattr -d -m . -e hex v0 v0/d v0/d/f | sed -E 's/0x.*/HEX/'"
    say "cd $B; find . -path '*/.glusterfs' -prune -o -printf '%p %y %m %n %s\n' | sort"
    umount "$M"
    say "$G volume stop v"
    say "$G volume delete v"
}

session_options() {
    local pair
    say "$G volume create v replica 2 $H:$B/v0 $H:$B/v1 force"
    say "$G volume start v"
    online v 2
    mounted v 1x2
    for pair in "max-hardlinks 3" "create-mask 0640" "force-create-mode 0020" "create-directory-mask 0750" "force-directory-mode 0005" \
        "build-pgfid on" "gfid2path off" "node-uuid-pathinfo on" "owner-uid 77" "owner-gid 78"; do
        say "$G volume set v storage.$pair"
    done
    wait_for 60 "the options to act" owner_is 77:78 || true
    say "cd $M; echo a >h0; for i in 1 2 3 4; do ln h0 h\$i; done; stat -c '%a %h' h0; mkdir d; mknod p p; stat -c %a d p; stat -c %u:%g ."
    say "cd $B; getfattr -d -m . v0/h0 | sed -E 's/=.*/=/; s/pgfid.*/pgfid/'"
    say "cd $M; getfattr --absolute-names -n trusted.glusterfs.pathinfo h0 | grep -o 'POSIX[^>]*' | sort"
    say "$G volume reset v"
    for pair in "storage.max-hardlinks -1" "storage.create-mask 99999" "storage.reserve 101" "storage.batch-fsync-mode nothing" \
        "storage.batch-fsync-delay-usec x" "storage.owner-uid -2" "network.inode-lru-limit 10" "performance.io-thread-count 65" \
        "server.allow-insecure maybe" "diagnostics.brick-log-level LOUD" "diagnostics.brick-log-level TRACE" \
        "diagnostics.brick-log-format no-msg-id" "features.barrier enable" "features.barrier disable" "features.read-only yes" \
        "features.read-only no" "features.uss enable" "features.uss disable" "features.shard on" "network.ping-timeout 5" \
        "server.outstanding-rpc-limit 64" "server.event-threads 1025" "user.key value" "auth.allow not!valid" "auth.allow $H" \
        "auth.reject 192.0.2.1" "features.cache-invalidation on" "features.acl disable" "features.acl enable" "group nothing" "group virt" \
        "group metadata-cache" "nothing.such on"; do
        say "$G volume set v $pair"
    done
    for pair in "cluster.max-bricks-per-process 4" "cluster.server-quorum-ratio 51" "cluster.op-version 99999" "storage.reserve 3" \
        "cluster.brick-multiplex maybe" "glusterd.x y"; do
        say "$G volume set all $pair"
    done
    online v 2
    say "$G volume info v"
    say "$G volume get all all"
    say "$G volume get v all"
    say "cd $M; echo serves >s && cat s; stat -f -c '%T %s' ."
    say "$G volume reset v force"
    say "$G volume reset all"
    say "$G volume info v"
    say "cd $M; echo serves >s && cat s"
    umount "$M"
    say "$G volume stop v"
    say "$G volume stop v"
    say "$G volume delete v"
}
owner_is() { [[ $(stat -c %u:%g "$M") == "$1" ]]; }

session_trouble() {
    local id
    say "$G volume create v replica 3 $H:$B/v0 $H:$B/v1 $H:$B/v2 force"
    say "$G volume set v storage.health-check-interval 20"
    say "$G volume start v"
    online v 3
    mounted v 1x3
    say "cd $M; for i in 1 2 3 4 5; do echo \$i >f\$i; done; mkdir d; echo x >d/x"
    say "ls /run/gluster/vols/v /var/log/glusterfs/bricks"
    brick_kill v v0 KILL 2
    say "$G volume status v"
    say "cd $M; echo more >f1; echo new >new; rm f5; echo y >d/y"
    for words in "heal v info summary" "heal v statistics heal-count" "heal v" "clear-locks v / kind all posix" \
        "clear-locks v /f1 kind all inode" "clear-locks v /f1 kind granted entry" "log v rotate $H:$B/v0" "log v rotate" "log rotate v" \
        "barrier v enable" "barrier v disable" "statedump v" "start v" "start v force"; do
        say "$G volume $words"
    done
    online v 3
    reached v 1x3
    healed v 3
    brick_kill v v1 TERM 2
    say "$G volume status v"
    say "$G volume start v force"
    online v 3
    reached v 1x3

    # Looked at in a second from now, not when the twenty seconds are over.
    say "$G volume set v storage.health-check-interval 1"
    sleep 3
    mv "$B/v2" "$B/away"
    wait_for 12 "a moved brick to be noticed" health_failed v2 && echo "noticed" >&3
    online v 2
    say "$G volume status v"
    say "$G volume start v force"
    sleep 3
    say "$G volume status v; ls -A $B"
    # The empty mount point of a missing disk: the command marks the folder, and the brick must not start there.
    mkdir "$B/v2"
    say "$G volume start v force"
    sleep 3
    say "$G volume status v; ls -A $B/v2; getfattr -d -m . $B/v2 | sed 's/=.*//'"
    rmdir "$B/v2"
    mv "$B/away" "$B/v2"
    say "$G volume start v force"
    online v 3
    reached v 1x3

    brick_kill v v2 KILL 2
    id=$(getfattr -n trusted.glusterfs.volume-id -e hex "$B/v2" 2>/dev/null | sed -n 's/.*=//p')
    setfattr -n trusted.glusterfs.volume-id -v 0x00112233445566778899aabbccddeeff "$B/v2"
    say "$G volume start v force"
    sleep 3
    say "$G volume status v"
    setfattr -n trusted.glusterfs.volume-id -v "$id" "$B/v2"
    say "$G volume start v force"
    online v 3
    reached v 1x3

    say "$G volume reset-brick v $H:$B/v1 start"
    online v 2
    say "$G volume status v"
    rm -rf "$B/v1"
    mkdir "$B/v1"
    say "$G volume reset-brick v $H:$B/v1 $H:$B/v1 commit"
    say "$G volume reset-brick v $H:$B/v1 $H:$B/v1 commit force"
    online v 3
    reached v 1x3
    healed v 3
    say "ls -R $B/v1"
    say "$G volume replace-brick v $H:$B/v1 $H:$B/n1 commit"
    say "$G volume replace-brick v $H:$B/v1 $H:$B/n1 commit force"
    online v 3
    reached v 1x3
    healed v 3
    say "ls -R $B/n1; getfattr -d -m . $B/v1 | sed 's/=.*//'"
    say "$G volume remove-brick v replica 2 $H:$B/n1 force"
    online v 2
    say "$G volume add-brick v replica 3 $H:$B/v1"
    say "$G volume add-brick v replica 3 $H:$B/v1 force"
    online v 3
    reached v 1x3
    healed v 3
    say "ls -R $B/v1"
    say "$G volume info v"
    glusterd_kill
    kill -KILL "$(brick_pid v v0)"
    glusterd_again
    online v 3
    say "$G volume status v"
    umount "$M"
    say "$G volume stop v"
    say "$G volume delete v"
}
health_failed() { grep -qE "health.?check.* failed|going down" /var/log/glusterfs/bricks/*bricks-"$1".log; }

session_multiplexed() {
    local vol first second
    say "$G volume set all cluster.brick-multiplex on"
    for vol in a b c; do
        say "$G volume create $vol replica 2 $H:$B/${vol}0 $H:$B/${vol}1 force"
        say "$G volume start $vol"
    done
    for vol in a b c; do online $vol 2; done
    processes
    mounted a 1x2
    say "$G volume status all"
    for round in 1 2 3 4 5; do
        gl volume stop b >/dev/null 2>&1 &
        first=$!
        gl volume start c force >/dev/null 2>&1 &
        second=$!
        wait $first || true
        wait $second || true
        gl volume start b >/dev/null 2>&1 || true
    done
    say "$G volume start b force"
    online b 2
    processes
    say "$G volume set b features.read-only on"
    say "echo x >$M/x; cat $M/x"
    say "$G volume set b features.read-only off"
    kill -KILL "$(brick_pid a a0)"
    online a 0
    say "$G volume status a"
    say "$G volume start a force"
    online a 2
    say "$G volume status b"
    for vol in b c; do
        say "$G volume start $vol force"
        online $vol 2
    done
    processes
    glusterd_kill
    glusterd_again
    for vol in a b c; do online $vol 2; done
    processes
    glusterd_kill
    pgrep -x glusterfsd | xargs kill -KILL
    glusterd_again
    for vol in a b c; do online $vol 2; done
    processes
    reached a 1x2
    say "cat $M/x; echo y >$M/y"
    say "$G volume stop b"
    mv "$B/b1" "$B/away"
    mkdir "$B/b1"
    say "$G volume start b"
    sleep 3
    say "$G volume status b; ls -A $B/b1"
    say "$G volume start b force"
    sleep 3
    say "$G volume status b; ls -A $B/b1"
    rmdir "$B/b1"
    mv "$B/away" "$B/b1"
    say "$G volume start b force"
    online b 2
    processes
    say "$G volume set b storage.health-check-interval 1"
    sleep 3
    mv "$B/b1" "$B/away"
    online b 1
    say "$G volume status b"
    say "$G volume status a"
    mv "$B/away" "$B/b1"
    say "$G volume start b force"
    online b 2
    say "ls /run/gluster/vols/*/"
    say "$G volume set all cluster.max-bricks-per-process 1"
    say "$G volume set all cluster.brick-multiplex off"
    say "$G volume stop b"
    say "$G volume start b"
    online b 2
    umount "$M"
    for vol in a b c; do
        say "$G volume stop $vol force"
        say "$G volume delete $vol"
    done
    wait_for 60 "the processes to end" no_bricks
    processes
    say "ls -A $B/a0; getfattr -d -m . $B/a0 | sed 's/=.*//'"
    say "$G volume create a $H:$B/a0 $H:$B/a1"
    say "$G volume create a $H:$B/a0 $H:$B/a1 force"
}
no_bricks() { ! pgrep -x glusterfsd; }

if [[ -n $session ]]; then
    exec 3>"$1"
    tap_finish() { :; }
    set +e
    mkdir "$M" "$B"
    glusterd_bricks_start
    session_"$session"
    exit 0
fi

blocks_compared() {
    python3 - "$1" "$2" <<'EOF'
import sys
def steps(path):
    return [s for s in ("\n" + open(path).read()).split("\n### ") if s]
stock, kiln = steps(sys.argv[1]), steps(sys.argv[2])
for i in range(max(len(stock), len(kiln))):
    a, b = (s[i] if i < len(s) else "(nothing)" for s in (stock, kiln))
    print("%s - %s" % ("ok" if a == b else "not ok", (a if a != "(nothing)" else b).split("\n")[0][:110]))
    if a != b:
        print("\n".join("# stock: " + line for line in a.split("\n")))
        print("\n".join("# other: " + line for line in b.split("\n")))
EOF
}

for name in xattrs options trouble multiplexed; do
    BRICKD=stock bash "$0" "$T/stock.text" "$name" >"$T/log/$name-stock.out" 2>&1 &
    stock=$!
    bash "$0" "$T/other.text" "$name" >"$T/log/$name-$BRICKD.out" 2>&1 &
    wait $stock
    wait $!
    t "session $name has more than 30 steps" test "$(grep -c '^###' "$T/stock.text")" -gt 30
    include "session $name" blocks_compared "$T/stock.text" "$T/other.text"
done
