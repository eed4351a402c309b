#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# extras/glusterfs-by-kiln.sh takes the place of /usr/sbin/glusterfs. `mount -t glusterfs`, fstab and scripts that
# call glusterfs then mount a volume of a stock glusterd with kiln-mount and with their own options. The self-heal
# daemon, --version and mounts that kiln-mount does not support still run the stock program. Options with an effect
# that users would notice are refused by name.
# Covers: extras/glusterfs-by-kiln.sh, mount/options.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

system_cover
mv /usr/sbin/glusterfs /usr/sbin/glusterfs.distrib
cp "$source_dir/extras/glusterfs-by-kiln.sh" /usr/sbin/glusterfs
ln -s "$KILN_MOUNT" /usr/sbin/kiln-mount
BRICKD=stock
glusterd_start
gl_create v 1x2 >"$T/log/create.log"
gl volume start v >>"$T/log/create.log"
mnt=$T/mnt
mkdir "$mnt"

program_of_mount() {
    local pid
    pid=$(pgrep -f -- "^glusterfs .*$mnt\$") || return 1
    basename "$(readlink "/proc/$pid/exe")"
}

has_option() {
    [[ ,$(findmnt -n -o OPTIONS --mountpoint "$mnt"), == *,"$1",* ]]
}

no_client() {
    ! pgrep -f -- "^glusterfs .*$mnt\$" >/dev/null
}

unmounted() {
    umount "$mnt"
    wait_for 240 "the client to end" no_client
}

refused() {
    ! "$KILN_MOUNT" "$1" -l "$T/log/refused.log" "$glusterd_host:/v" "$mnt" >"$T/refused" 2>&1 && grep -e "$2" "$T/refused"
}

heals() {
    gl volume status v shd | grep -q "Self-heal Daemon on localhost *N/A *N/A *Y"
}

t "mount -t glusterfs mounts the volume" mount -t glusterfs "$glusterd_host:/v" "$mnt"
is "$(program_of_mount)" "kiln-mount" "kiln-mount serves the mount"
is "$(cat "/proc/$(pgrep -f -- "^glusterfs .*$mnt\$")/comm")" "glusterfs" "the process is found by the name glusterfs"
is "$(findmnt -n -o FSTYPE,SOURCE --mountpoint "$mnt" | tr -s ' ')" "fuse.glusterfs $glusterd_host:/v" "the mount table shows the volume"
mkdir "$mnt/sub"
echo text >"$mnt/sub/file"
t "a file can be read" grep -q text "$mnt/sub/file"
dump=$(dump_take "$(pgrep -f -- "^glusterfs .*$mnt\$")" /run/gluster)
t "the statedump is found under the stock name" grep -q pending_key "$dump"
is "${dump##*/glusterdump.*}" "" "the statedump's name begins with glusterdump"
t "umount ends the process" unmounted

# Options of a typical entry in fstab.
options=defaults,_netdev,noatime,nodev,exec,log-level=WARNING,log-file=$T/log/fstab.log,backup-volfile-servers=10.99.0.9
options+=,direct-io-mode=disable,attribute-timeout=2,entry-timeout=2,negative-timeout=1,gid-timeout=5,use-readdirp=no,acl
options+=,background-qlen=32,congestion-threshold=24,lru-limit=1000,invalidate-limit=10,fopen-keep-cache,event-history=no
options+=,oom-score-adj=-10,reader-thread-count=2,auto-invalidation=no,fetch-attempts=3,resolve-gids,x-systemd.automount
options+=,kernel-writeback-cache=no,attr-times-granularity=1,fuse-flush-handle-interrupt=no,io-engine=default,process-name=fuse
echo "$glusterd_host:/v/sub $mnt glusterfs ${options#defaults,} 0 0" >"$T/fstab"
t "a line of fstab with options of the stock client mounts" mount -T "$T/fstab" "$mnt"
is "$(program_of_mount)" "kiln-mount" "kiln-mount serves the mount of fstab"
is "$(cat "$mnt/file")" text "a subdirectory of the volume is the root"
t "noatime takes effect" has_option noatime
t "nodev takes effect" has_option nodev
t "acl takes effect" setfacl -m u:nobody:rw "$mnt/file"
t "the mount of fstab is unmounted" unmounted

# A script's command line. Each option of the stock client's --help is in one of the two lists.
t "a script's options with values in the next argument mount" glusterfs --process-name fuse --volfile-server "$glusterd_host" --volfile-id v \
    --volfile-server-transport tcp --log-level INFO --log-file "$T/log/script.log" --client-pid=-1 --volume-name v \
    --global-threading=off --global-timer-wheel=on --mac-compat=off --log-buf-size=5 --log-flush-timeout=120 --log-format=with-msg-id \
    --logger=gluster-log --localtime-logging --mem-accounting --halo-max-latency=5 --halo-max-replicas 2 --halo-min-replicas 1 \
    --fuse-dev-eperm-ratelimit-ns=1 --brick-mux --enable-ino32=no --no-root-squash=off --secure-mgmt=off --volfile-check \
    --volfile-max-fetch-attempts 2 --fuse-mountopts=nosuid,exec,noatime --direct-io-mode "$mnt"
is "$(program_of_mount)" "kiln-mount" "kiln-mount serves the script's mount"
t "nosuid in the option list takes effect" has_option nosuid
t "a file can be created" touch "$mnt/made"
t "the script's mount is unmounted" unmounted

for option in --dump-fuse=/tmp/f --no-root-squash --socket-file=/tmp/s --print-exports=/f --volume-name=v-client-0; do
    name=${option%%=*}
    t "$option is refused by name" refused "$option" "${name#--}"
    t_not "no refused option leaves a mount" mount_is_listed "$mnt"
done

options_of() {
    grep -Eo -- '--[a-z][a-z0-9-]+' "$1" | sort -u
}
glusterfs --help >"$T/stock.help"
options_of "$T/stock.help" >"$T/stock.options"
{
    "$KILN_MOUNT" --help
    echo "--aux-gfid-mount --worm --selinux --capability --dump-fuse --socket-file --enable-ino32 --no-root-squash"
    echo "--print-exports --print-netgroups --print-libexecdir --print-logdir --print-statedumpdir --print-xlatordir"
} >"$T/kiln.help"
options_of "$T/kiln.help" >"$T/kiln.options"
is "$(comm -23 "$T/stock.options" "$T/kiln.options")" "" "kiln-mount knows all options of the stock client's --help"

t "the self-heal daemon starts through the wrapper" wait_for 240 "the self-heal daemon" heals
is "$(basename "$(readlink "/proc/$(pgrep -f 'process-name glustershd')/exe")")" glusterfsd "the self-heal daemon is the stock program"
t "--version prints the stock program's version" grep -q "^glusterfs ${KILN_STOCK_VERSION:-10}" <(glusterfs --version)
t "a mount with gfids as names works" mount -t glusterfs -o aux-gfid-mount "$glusterd_host:/v" "$mnt"
is "$(program_of_mount)" glusterfsd "the stock program serves the mount with gfids as names"
t "the mount with gfids as names is unmounted" unmounted
