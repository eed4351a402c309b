#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Limits of volumes and directories work without a glusterd: `kiln volume create ... size`, `kiln volume limit`, `kiln
# quota`. They hold for one brick, for replicas and for the sum of several subvolumes, also with bricks that are added
# later. status, /metrics and df on both kinds of mounts show limit and usage.
# Covers: volumes/quota.c, xlators/features/simple-quota

. "$(dirname "$0")/../lib/kiln.sh"

field() {
    kiln_json status "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["volumes"][0][sys.argv[1]])' "$2"
}
df_of() { df -B1 --output=size,used "$1" | tail -n 1 | awk '{ print $1, $2 }'; }
quota_of() {
    kiln_json quota "$1" list | python3 -c 'import json, sys
print(*[str(o["limit"]) + ":" + str(o["used"]) for o in json.load(sys.stdin)["limits"] if o["path"] == sys.argv[1]])' "$2"
}
write() { dd if=/dev/zero of="$1" bs=64k count="$2" conv=fsync status=none; }
used_is() { [[ $(field "$1" used) -eq $2 ]]; }
# The sum of du over the bricks: the root with all files and folders below, without .glusterfs.
du_of() {
    local sum=0 brick
    for brick in "$@"; do
        sum=$((sum + $(du -sB1 --exclude=.glusterfs "$brick" | cut -f 1)))
    done
    echo "$sum"
}
usage_is_du() {
    local name=$1
    shift
    [[ $(field "$name" used) -eq $(du_of "$@") ]] || { echo "used $(field "$name" used), du $(du_of "$@")"; return 1; }
}

mkdir -p "$T/b"
place_xfs "$T/b" 1g
front_start --metrics-address 127.0.0.1:9101
t "an invalid size is refused" fails_with "is not a valid limit" kiln volume create bad "$T/b/bad" size many
kiln volume create idle replica 2 "$T/b/idle-1" "$T/b/idle-2"
kiln volume start idle
healer_has_looked() { kiln_json heal idle statistics | grep -q '"ended"'; }
t "kiln-heal looks at an idle volume" wait_for 60 "the look" healer_has_looked
t_not "/metrics has figures of calls for bricks that only kiln-heal has called" eval 'curl -s http://127.0.0.1:9101/metrics | grep -q "^kiln_brick_fop_calls"'
t "a volume is created with a limit" kiln volume create one "$T/b/one" size 4M
kiln volume start one
front_mount one "$T/stock"
t "kiln-mount mounts the volume" "$KILN_MOUNT" -l "$T/log/kiln-mount.log" localhost:/one "$(mkdir -p "$T/kiln" && echo "$T/kiln")"
is "$(field one limit)" 4194304 "status shows the limit"
is "$(df_of "$T/kiln" | cut -d ' ' -f 1)" 4194304 "df on kiln-mount shows the limit"
is "$(df_of "$T/stock" | cut -d ' ' -f 1)" 4194304 "df on a stock mount shows the limit"
t "2 MiB can be written" write "$T/kiln/a" 32
t "3 MiB more cannot be written" fails_with "quota exceeded" write "$T/stock/b" 48
# XFS allots more space than is written, and frees the surplus when the brick closes the file.
surplus_is_freed() { usage_is_du one "$T/b/one" && [[ $(field one used) -le 4194304 ]]; }
t "the volume's usage equals du" wait_for 60 "usage" surplus_is_freed
used=$(field one used)
t "df shows the usage" test "$(df_of "$T/kiln" | cut -d ' ' -f 2)" -eq "$used"
t "kiln status shows the usage" eval 'kiln volume status one | grep -q "Limit: 4194304 bytes, used: $used"'
metrics() { curl -s http://127.0.0.1:9101/metrics; }
t "/metrics has the limit" eval 'metrics | grep "^kiln_volume_limit_bytes{volume=\"one\"} 4194304"'
t "/metrics has the usage" eval 'metrics | grep "^kiln_volume_used_bytes{volume=\"one\"} $used"'
t "the limit is raised" kiln volume limit one 8M
t "a write above the old limit succeeds" write "$T/stock/c" 48
t "the limit is removed" kiln volume limit one none
is "$(field one limit)" None "status shows no limit"
t "a write succeeds without a limit" write "$T/stock/d" 80
exec 7>"$T/kiln/removed"
head -c 3M /dev/zero >&7
rm "$T/kiln/removed"
t "a volume with files gets a limit" kiln volume limit one 64M
head -c 1M /dev/zero >&7
open_counts() { [[ $(field one used) -eq $(($(du_of "$T/b/one") + 4194304)) ]]; }
t "a removed file that is still open counts" wait_for 60 "usage" open_counts
exec 7>&-
t "a removed file that is closed no longer counts" wait_for 60 "usage" usage_is_du one "$T/b/one"
t "the limit counts the old files" wait_for 60 "the count" usage_is_du one "$T/b/one"

# ---- folders ---------------------------------------------------------------------------------

mkdir -p "$T/stock/home/ann"
t "a folder gets a limit" kiln quota one set /home/ann 1M
t "the folder's limit holds" fails_with "quota exceeded" write "$T/kiln/home/ann/x" 32
t "the list has the folder's limit as JSON" eval '[[ $(quota_of one /home/ann) == 1048576:* ]]'
t "the list has the folder's limit as text" eval 'kiln quota one | grep -q "^/home/ann  *1048576 "'
is "$(df_of "$T/stock/home/ann" | cut -d ' ' -f 1)" 1048576 "df of the folder shows the limit"
t "a limit for a file is refused" fails_with "the path of a folder" kiln quota one set /a 1M
t "a limit for a missing path is refused" fails_with "the path of a folder" kiln quota one set /away 1M
t "a path that does not begin at the root is refused" fails_with "from the volume's root" kiln quota one set home 1M
kill -9 "$front_pid"
wait "$front_pid" 2>/dev/null || true
front_start --metrics-address 127.0.0.1:9101
t "the limits are present after kill -9" eval '[[ $(quota_of one /home/ann) == 1048576:* && $(quota_of one /) == 67108864:* ]]'
t "the usage is right after kill -9" wait_for 60 "usage" eval '[[ $(($(quota_of one / | cut -d : -f 2) + $(quota_of one /home/ann | cut -d : -f 2))) -eq $(du_of "$T/b/one") ]]'
t "the folder's limit is removed" kiln quota one remove /home/ann
t "a write above the folder's old limit succeeds" wait_for 30 "the mount" write "$T/stock/home/ann/y" 32
umount "$T/stock" "$T/kiln"

# ---- several bricks --------------------------------------------------------------------------

t "a replicated volume is created with a limit" kiln volume create two replica 2 "$T/b/two1" "$T/b/two2" size 2M
kiln volume start two
front_mount two "$T/two"
t "the replicated volume holds its limit" fails_with "quota exceeded" write "$T/two/a" 40
# The last write may have fitted on one of the two bricks only; the volume's usage is that of the fuller one.
is_of_fuller() { usage_is_du two "$T/b/two1" || usage_is_du two "$T/b/two2"; }
t "the replicated volume counts each file once" wait_for 60 "usage" is_of_fuller
t "a distributed volume is created with a limit" kiln volume create many "$T/b/many1" "$T/b/many2" size 8M
kiln volume start many
front_mount many "$T/many"
mkdir -p "$T/many-kiln"
"$KILN_MOUNT" -l "$T/log/kiln-mount-many.log" localhost:/many "$T/many-kiln"
for i in 1 2 3 4 5 6 7 8 9; do
    write "$T/many/$i" 8
done
t "the distributed volume counts the sum of its bricks" wait_for 60 "usage" usage_is_du many "$T/b/many1" "$T/b/many2"
is "$(df_of "$T/many-kiln" | cut -d ' ' -f 1)" 8388608 "df on kiln-mount shows the limit of the distributed volume once"
t "df on kiln-mount shows the usage of both bricks" test "$(df_of "$T/many-kiln" | cut -d ' ' -f 2)" -eq "$(du_of "$T/b/many1" "$T/b/many2")"
# Four processes write to both bricks as fast as they can.
fill() {
    local i n pids=() err=0
    for n in 1 2 3 4; do
        (for i in $(seq 40); do write "$T/many/$n.$i" 4 || exit 1; done) &
        pids+=($!)
    done
    for n in "${pids[@]}"; do
        wait "$n" || err=1
    done
    return $err
}
t "the distributed volume holds its limit for the sum" fails_with "quota exceeded" fill
sum=$(du_of "$T/b/many1" "$T/b/many2")
t "writes to both bricks at once exceed the limit by at most one write to each: $sum bytes" test "$sum" -le $((8388608 + 131072))
t "the distributed volume could be filled up to its limit" test "$sum" -ge $((8388608 - 262144))

# ---- a missing brick -------------------------------------------------------------------------

used_is_known() { [[ $(field many used) -ge 8126464 ]]; }
t "the usage is known" wait_for 60 "the usage" used_is_known
small=$(find "$T/b/many1" -maxdepth 1 -type f -name '1.*' -size +0 | head -n 1)
sleep 1.5 # kilnd tells its bricks the sum once a second
kill -9 "$front_pid"
wait "$front_pid" 2>/dev/null || true
mv "$T/b/many2" "$T/b/away"
front_start --metrics-address 127.0.0.1:9101
is_back() { test -s "$T/many/${small##*/}"; }
t "one brick is back" wait_for 60 "the mount" is_back
t "a limit holds after a restart without the other brick" fails_with "quota exceeded" write "$T/many/${small##*/}" 32
mv "$T/b/away" "$T/b/many2"
kiln volume start many force
t "the other brick is back" wait_for 60 "the usage" used_is_known

# ---- added bricks ----------------------------------------------------------------------------

t "the limit is raised" kiln volume limit many 64M
make_team() { mkdir -p "$T/many/team"; }
t "the mount reaches both bricks again" wait_for 60 "the mount" make_team
t "a folder of the distributed volume gets a limit" kiln quota many set /team 2M
t "a brick is added" kiln volume add-brick many "$T/b/many3"
brick_limit() { getfattr --only-values -n trusted.gfs.squota.limit "$1" 2>/dev/null | tr -d '\0'; }
limit_is() { [[ $(brick_limit "$1") == "$2" ]]; }
t "the added brick has the volume's limit" wait_for 60 "the limit" limit_is "$T/b/many3" 67108864
# A mount that knows the new brick makes the old folder there.
reaches_team() { mkdir -p "$T/many-kiln/team/sub" && ls "$T/many-kiln/team" >/dev/null && test -d "$T/b/many3/team"; }
t "the folder comes to the added brick" wait_for 60 "the folder" reaches_team
t "the folder's limit comes to the added brick" wait_for 60 "the limit" limit_is "$T/b/many3/team" 2097152
mkdir "$T/many-kiln/team/fresh"
is_spread() { wait_for 60 "the folder" test -d "$T/b/many3/team/fresh"; }
t "a new folder is on the added brick" is_spread
fill_team() { for i in $(seq 60); do write "$T/many-kiln/team/fresh/$i" 2 || return 1; sleep 0.1; done; }
t "the folder's limit holds for the sum of old and added bricks" fails_with "quota exceeded" fill_team
t "the added brick holds files of the folder" test -n "$(find "$T/b/many3/team/fresh" -type f -size +0)"
sum=$(du_of "$T/b/many1/team" "$T/b/many2/team" "$T/b/many3/team")
t "the folder could be filled up to its limit, and by one write to each brick beyond: $sum bytes" test "$sum" -ge 1572864 -a "$sum" -le $((2097152 + 393216))
team_is_du() { [[ $(quota_of many /team | cut -d : -f 2) -eq $(du_of "$T/b/many1/team" "$T/b/many2/team" "$T/b/many3/team") ]]; }
t "kiln quota lists the usage on all bricks" wait_for 60 "usage" team_is_du
