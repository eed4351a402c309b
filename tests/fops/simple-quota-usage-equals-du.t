#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# features/simple-quota: the usage of a namespace equals the figure of du on the brick after storms of all operations
# and after SIGKILL during them and during recounts. Limits hold to the block, also during a recount, df shows them,
# and the keys and errors are those of GlusterFS 11.
#
# KILN_QUOTA_ROUNDS (default 4) is the number of storms. Every second storm has a kill, two of four have a recount. With more than
# four the blocks beyond the end of a file with a hole are tested, too, which takes a minute.
# Covers: xlators/features/simple-quota

. "$(dirname "$0")/../lib/kiln.sh"

export BRICK_QUOTA_OPTIONS="pass-through false"
rounds=${KILN_QUOTA_ROUNDS:-4}
mount_ns=$T/provisioner

# A namespace: NAME [LIMIT].
make_ns() {
    mkdir "$mount_ns/$1"
    setfattr -n trusted.glusterfs.namespace -v true "$mount_ns/$1"
    [[ -z ${2:-} ]] || setfattr -n trusted.gfs.squota.limit -v "$2" "$mount_ns/$1"
}

used() {
    getfattr --only-values -n trusted.gfs.squota.size "$mount_ns/$1" 2>/dev/null | tr -d '\0'
}

on_brick() {
    du -sB1 "$T/q/b0/$1" | cut -f 1
}

usage_is_du() {
    local used du
    used=$(used "$1")
    du=$(on_brick "$1")
    [[ $used == "$du" ]] || { echo "used $used, du $du"; return 1; }
}

df_of() {
    df -B1 --output=size,used "$T/mnt/$1" | tail -n 1 | awk '{ print $1, $2 }'
}

mkdir "$T/q"
place_xfs "$T/q-disk" 1g
mkdir "$T/q-disk/q"
mount --bind "$T/q-disk/q" "$T/q"
volume_new q 1x1
volume_start q
mount_volume q "$T/mnt" plain --attribute-timeout=0 --entry-timeout=0
mount_volume q "$mount_ns" plain --client-pid=-14 --attribute-timeout=0 --entry-timeout=0

# ---- keys and errors -------------------------------------------------------------------------

t "a folder gets the mark of a namespace and a limit" make_ns one 1048576
t "other users may not set the mark" fails_with "not permitted" setfattr -n trusted.glusterfs.namespace -v true "$T/mnt"
t "the brick refuses the removal of the mark" fails_with "not supported" setfattr -x trusted.glusterfs.namespace "$mount_ns/one"
mkdir "$T/mnt/plain"
t "the brick refuses a limit for an ordinary folder" fails_with "not permitted" setfattr -n trusted.gfs.squota.limit -v 5 "$T/mnt/plain"
t "the brick refuses a total for an ordinary folder" fails_with "not permitted" setfattr -n glusterfs.quota.total-usage -v 5 "$T/mnt/plain"
is "$(df_of one)" "1048576 0" "df shows the limit and no usage"

# ---- a limit ---------------------------------------------------------------------------------

t "half of the limit is written" dd if=/dev/zero of="$T/mnt/one/a" bs=64k count=8 conv=fsync status=none
is "$(df_of one)" "1048576 524288" "df shows the usage"
t "a write above the limit is refused" fails_with "quota exceeded" dd if=/dev/zero of="$T/mnt/one/b" bs=64k count=20 conv=fsync
# XFS allots more space than is written, and frees the surplus when the file is closed.
written() { find "$T/q/b0/$1" -type f -printf '%s\n' | awk '{ n += $1 } END { print n }'; }
t "the brick has no data beyond the limit" test "$(written one)" -le 1048576
t "the limit could be used up" test "$(written one)" -ge $((1048576 - 65536))
t "usage equals du" usage_is_du one
t "a write in place succeeds" dd if=/dev/zero of="$T/mnt/one/a" bs=64k count=8 conv=notrunc,fsync status=none
t "fallocate is refused" fails_with "quota exceeded" fallocate -l 1M "$T/mnt/one/a"
t "a rename out of the namespace is EXDEV" fails_with "cross-device" python3 -c '
import os, sys; os.rename(sys.argv[1], sys.argv[2])' "$T/mnt/one/a" "$T/mnt/plain/a"
t "a link into the namespace is EXDEV" fails_with "cross-device" python3 -c '
import os, sys; open(sys.argv[1], "w").close(); os.link(sys.argv[1], sys.argv[2])' "$T/mnt/plain/x" "$T/mnt/one/x"
t "a file is removed" rm "$T/mnt/one/b"
t "a write succeeds after the removal" dd if=/dev/zero of="$T/mnt/one/c" bs=64k count=4 conv=fsync status=none
t "a client sets a total of all bricks above the limit" setfattr -n glusterfs.quota.total-usage -v 2000000 "$T/mnt/one"
t "a write above the total is refused" fails_with "quota exceeded" dd if=/dev/zero of="$T/mnt/one/d" bs=64k count=1 conv=fsync
t "a client sets a lower total" setfattr -n glusterfs.quota.total-usage -v 4096 "$T/mnt/one"
install -d -o 1234 -g 1234 "$T/mnt/one/a-users"
for command in disable-check total-usage reset; do
    t "an ordinary user gives no command $command" fails_with "not permitted" \
        setpriv --reuid=1234 --regid=1234 --clear-groups setfattr -n "glusterfs.quota.$command" -v 1 "$T/mnt/one/a-users"
done
t "checks are switched off" setfattr -n glusterfs.quota.disable-check -v 1 "$T/mnt/one"
t "a write above the limit succeeds while checks are off" dd if=/dev/zero of="$T/mnt/one/e" bs=64k count=20 conv=fsync status=none
t "checks are switched on" setfattr -n glusterfs.quota.disable-check -v 0 "$T/mnt/one"
t "a write is refused while checks are on" fails_with "quota exceeded" dd if=/dev/zero of="$T/mnt/one/e2" bs=64k count=1 conv=fsync
t "the data above the limit is counted" usage_is_du one
t "the limit is removed" setfattr -x trusted.gfs.squota.limit "$mount_ns/one"
t "a write succeeds at once without a limit" dd if=/dev/zero of="$T/mnt/one/g" bs=64k count=1 conv=fsync status=none
mkdir "$T/mnt/one/sub"
dd if=/dev/zero of="$T/mnt/one/sub/old" bs=64k count=3 conv=fsync status=none
t "a folder with contents in a namespace gets the mark" setfattr -n trusted.glusterfs.namespace -v true "$mount_ns/one/sub"
inner_counts() {
    [[ $(used one/sub) == "$(on_brick one/sub)" && $(($(used one) + $(used one/sub))) == "$(on_brick one)" ]]
}
t "the contents count for the inner namespace afterwards" wait_for 60 "the walks" inner_counts
inner_counts ||
    diag "used: one $(used one), one/sub $(used one/sub); du: $(on_brick one), $(on_brick one/sub)"

# ---- a write behind blocks that do not count ---------------------------------------------------

# XFS allots blocks beyond a file's end and frees them when the file is closed, so they do not count. A write behind them makes
# them a part of the file. The script imitates XFS.
make_ns skipped 1310720
exec 7>"$T/mnt/skipped/file"
head -c 1M /dev/zero >&7
fallocate -n -o 1M -l 512K "$T/q/b0/skipped/file"
behind() { dd if=/dev/zero of="$T/mnt/skipped/file" bs=64k seek=24 count=1 conv=notrunc,fsync status=none; }
t "a write that makes more blocks a part of the file than the limit leaves is refused" fails_with "quota exceeded" behind
exec 7>&-
truncate -s 1M "$T/q/b0/skipped/file"
t "the same write succeeds without such blocks" behind
t "usage equals du after a write that leaves a hole" wait_for 60 "usage to equal du" usage_is_du skipped
is "$(on_brick skipped)" 1114112 "the brick holds no more than was written"

# ---- an unlinked file ------------------------------------------------------------------------

make_ns held
exec 7>"$T/mnt/held/file"
head -c 262144 /dev/zero >&7
rm "$T/mnt/held/file"
held_is() { [[ $(used held) -ge $1 && $(used held) -le $2 ]]; }
t "an unlinked file counts while it is open" held_is 262144 1048576
exec 7>&-
t "a closed unlinked file no longer counts" wait_for 60 "the last close" held_is 0 4096

# ---- blocks beyond a file's end ---------------------------------------------------------------

# The script imitates XFS, which frees blocks beyond a file's end some minutes after the last close: the next process of the brick
# finds such blocks, and they are freed while the process serves.
make_ns beyond
dd if=/dev/zero of="$T/mnt/beyond/file" bs=1M count=2 conv=fsync status=none
daemon_kill "${brick_daemon[$T/q/b0]}"
fallocate -n -o 2M -l 1M "$T/q/b0/beyond/file"
volume_start q
mount_settle "$T/mnt"
mount_settle "$mount_ns"
is "$(used beyond)" "$(on_brick beyond)" "blocks beyond a file's end count after a kill"
truncate -s 2M "$T/q/b0/beyond/file"
t "freed blocks beyond a file's end no longer count" wait_for 60 "usage to equal du" usage_is_du beyond
# The same of a file that nobody was changing, after a kill in the middle of a recount.
fallocate -n -o 2M -l 1M "$T/q/b0/beyond/file"
setfattr -n glusterfs.quota.reset -v 1 "$mount_ns/beyond"
daemon_kill "${brick_daemon[$T/q/b0]}"
volume_start q
mount_settle "$T/mnt"
mount_settle "$mount_ns"
setfattr -n glusterfs.quota.reset -v 1 "$mount_ns/beyond"
t "a recount after a kill counts blocks beyond a file's end" wait_for 60 "usage to equal du" usage_is_du beyond
truncate -s 2M "$T/q/b0/beyond/file"
t "the same blocks no longer count when they are freed" wait_for 60 "usage to equal du" usage_is_du beyond

# A few blocks beyond the end of a small file, which XFS frees by its scan every five minutes.
exec 7>"$T/mnt/beyond/small"
head -c 262144 /dev/zero >&7
fallocate -n -o 256K -l 32K "$T/q/b0/beyond/small"
head -c 4096 /dev/zero | dd of="$T/mnt/beyond/small" conv=notrunc,fsync status=none
exec 7>&-
is "$(used beyond)" "$(on_brick beyond)" "a few blocks beyond a small file's end count"
sleep 7 # the file's last close makes the layer stat the file for 5 s
truncate -s 256K "$T/q/b0/beyond/small"
is "$(used beyond)" "$(on_brick beyond)" "the same blocks no longer count as soon as they are freed"

# ---- a name without a handle -----------------------------------------------------------------

# A kill within the removal of a last name, or within the creation of an object, leaves a name without a handle. The script
# removes the handle of a file that was being changed when the brick was killed.
make_ns torn
python3 - "$T/mnt/torn" <<'EOS' &
import itertools, sys
for i in itertools.count():
    with open("%s/%d" % (sys.argv[1], i), "wb") as file:
        file.write(b"x" * 65536)
EOS
writer=$!
has_files() { [[ $(find "$T/q/b0/torn" -name '1*' | wc -l) -ge 20 ]]; }
wait_for 60 "files" has_files
daemon_kill "${brick_daemon[$T/q/b0]}"
torn=$T/q/b0/torn/10
handle=$(getfattr --absolute-names -n trusted.gfid -e hex "$torn" | sed -n 's/.*=0x//p')
handle=$T/q/b0/.glusterfs/${handle:0:2}/${handle:2:2}/${handle:0:8}-${handle:8:4}-${handle:12:4}-${handle:16:4}-${handle:20}
t "the file has blocks and a handle" test "$torn" -ef "$handle" -a -s "$torn"
rm "$handle"
volume_start q
mount_settle "$T/mnt"
mount_settle "$mount_ns"
kill "$writer" || true
wait "$writer" || true
t "a file whose handle is lost counts after a kill" wait_for 60 "usage to equal du" usage_is_du torn
t "the start has made the handle again" test "$torn" -ef "$handle"

# ---- a recount -------------------------------------------------------------------------------

make_ns recounted
mkdir "$T/mnt/recounted/d"
for ((i = 0; i < 2000; i++)); do
    echo x >"$T/mnt/recounted/d/$i"
done
t "usage of many files equals du" wait_for 60 "usage to equal du" usage_is_du recounted
full=$(on_brick recounted)
setfattr -n trusted.gfs.squota.limit -v $((full + 65536)) "$mount_ns/recounted"
recount() { setfattr -n glusterfs.quota.reset -v 1 "$mount_ns/recounted"; }
beyond() { dd if=/dev/zero of="$T/mnt/recounted/a" bs=128k count=1 conv=fsync; }
recount
t "a write above the limit is refused when a recount has just begun" fails_with "quota exceeded" beyond
t "usage does not fall while the recount runs" test "$(used recounted)" -ge "$full"
recount
daemon_kill "${brick_daemon[$T/q/b0]}"
volume_start q
mount_settle "$T/mnt"
t "a write above the limit is refused after a kill during a recount" fails_with "quota exceeded" beyond
mount_settle "$mount_ns"
t "usage equals du after the recount" wait_for 60 "usage to equal du" usage_is_du recounted

# ---- a file with a hole ------------------------------------------------------------------------

# The file has fewer blocks beyond its end than its hole lacks. XFS frees them minutes later; the script frees them after a
# minute, because the layer stats any file for so long.
holed() {
    make_ns holed
    exec 7>"$T/mnt/holed/file"
    truncate -s 1M "$T/mnt/holed/file"
    fallocate -n -o 1M -l 32K "$T/q/b0/holed/file"
    head -c 262144 /dev/zero >&7
    exec 7>&-
    is "$(used holed)" "$(on_brick holed)" "blocks beyond the end of a file with a hole count"
    local before
    before=$(on_brick holed)
    sleep 65
    truncate -s 1M "$T/q/b0/holed/file"
    t "the blocks beyond the end of the file with a hole are freed" test "$(on_brick holed)" -lt "$before"
    t "the freed blocks no longer count" wait_for 30 "usage to equal du" usage_is_du holed
}
((rounds <= 4)) || holed

# ---- storms and kills ------------------------------------------------------------------------

make_ns storm 8000000
settled() { wait_for 90 "usage to equal du" usage_is_du storm || usage_is_du storm; }
for ((round = 1; round <= rounds; round++)); do
    "$tests_dir/fops/quota_storm.py" "$T/mnt/storm" "$round" 250 >"$T/storm.out" &
    storm=$!
    # Recounts run beside the changes, and some kills hit them.
    if ((round % 4 == 0 || round % 4 == 3)); then
        sleep "0.$((RANDOM % 9))"
        setfattr -n glusterfs.quota.reset -v 1 "$mount_ns/storm"
    fi
    if ((round % 2 == 0)); then
        sleep "0.$((RANDOM % 9))"
        daemon_kill "${brick_daemon[$T/q/b0]}"
        volume_start q
    fi
    wait "$storm" || true
    mount_settle "$T/mnt"
    mount_settle "$mount_ns"
    t "round $round: usage equals du ($(cat "$T/storm.out") operations)" settled
    t "round $round: the brick holds no more than the limit" test "$(on_brick storm)" -le 8000000
done
daemon_stop "${brick_daemon[$T/q/b0]}"
is "$(getfattr --only-values -n trusted.gfs.squota.size "$T/q/b0/storm" 2>/dev/null | tr -d '\0')" "$(on_brick storm)" \
    "the xattr on the disk equals du after the stop"
volume_start q
mount_settle "$mount_ns"
t "usage equals du after the start" usage_is_du storm
t "a recount is accepted" setfattr -n glusterfs.quota.reset -v 1 "$mount_ns/storm"
t "usage equals du after the recount" settled
