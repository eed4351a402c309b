# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# glusterd: a stock management daemon inside the sandbox, with its state in the sandbox's empty /var/lib/glusterd.
#
#   glusterd_start               starts glusterd; afterwards `gluster` works, the host's name is $glusterd_host
#   glusterd_bricks_start        puts kilnd in the place of glusterfsd (not with BRICKD=stock), and starts glusterd
#   glusterd_brick_pids          the brick processes that glusterd started
#   gl ARG...                    gluster --mode=script ARG...
#   gl_create VOL LAYOUT [disperse]   a volume of bricks $T/bricks/VOL-0 ...; LAYOUT DxR, or Dx2+1 whose every third brick is an arbiter;
#                                with `disperse` LAYOUT is DxK+M: files are dispersed over K+M bricks, of which any K are enough
#   gl_brick_host NUMBER         the host of a volume's brick of that number; scripts with several hosts redefine the function
#   bricks_online VOL            the number of a volume's bricks that glusterd shows online; `all`: of all volumes
#   gl_mount VOL MNT [ARG...]    mounts a volume by name with the stock client; ARG for glusterfs(8)
#   gl_mount_reaches MNT VOL LAYOUT   succeeds when the mount's client is connected to all bricks
#   system_cover                 lets a script change /usr/sbin, /usr/libexec and dpkg's state, in this sandbox alone
#   use_kiln on|off|status       extras/use-kiln.sh, with the kilnd under test; after system_cover

glusterd_host=10.99.0.1

glusterd_start() {
    ip addr add "$glusterd_host/32" dev lo
    glusterd -N -l "$T/log/glusterd.log" -p "$T/glusterd.pid" >>"$T/log/glusterd.out" 2>&1 </dev/null &
    glusterd_pid=$!
    wait_for 240 "glusterd to answer" gluster --mode=script volume list
}

glusterd_bricks_start() {
    if [[ $BRICKD == kiln ]]; then
        system_cover
        use_kiln on
    fi
    glusterd_start
}

gl() {
    gluster --mode=script "$@"
}

gl_brick_path() { # VOL N: where gl_create puts that brick; the harness has another
    echo "$T/bricks/$1-$2"
}

gl_create() {
    local vol=$1 layout=$2 replicas=$((${2#*x})) i
    local -a bricks=() replica=()
    mkdir -p "$T/bricks"
    for ((i = 0; i < $(volume_brick_count "$layout"); i++)); do
        bricks+=("$(gl_brick_host "$i"):$(gl_brick_path "$vol" "$i")")
    done
    if [[ ${3:-} == disperse ]]; then
        replica=(disperse "$replicas" redundancy "${layout#*+}")
    else
        [[ $replicas -eq 1 ]] || replica=(replica "$replicas")
        [[ $layout != *+1 ]] || replica+=(arbiter 1)
    fi
    gl volume create "$vol" "${replica[@]}" "${bricks[@]}" force
}

gl_brick_host() {
    echo "$glusterd_host"
}

bricks_online() {
    gl volume status "$1" --xml | python3 -c '
import sys, xml.etree.ElementTree as xml
nodes = xml.parse(sys.stdin).iter("node")
print(sum(n.findtext("path", "").startswith("/") and n.findtext("status") == "1" for n in nodes))'
}

gl_mount() {
    local vol=$1 mnt=$2
    shift 2
    mkdir -p "$mnt"
    glusterfs --process-name fuse -s "$glusterd_host" --volfile-id "$vol" -l "$T/log/mount-$vol.log" "$@" "$mnt"
    wait_for 120 "the mount of $vol" is_glusterfs_mount "$mnt"
}

gl_mount_reaches() {
    # An arbiter counts as a replica.
    client_is_settled "$1" "$2" "${3%x*}x$((${3#*x}))" "$(pgrep -f -- "--volfile-id $2 .* $1\$")" ""
}

glusterd_brick_pids() {
    pgrep -x glusterfsd || true
}

system_cover() {
    local dir layers
    for dir in /usr/sbin /usr/libexec /var/lib/dpkg; do
        layers=$T/cover${dir//\//-}
        mkdir -p "$layers/upper" "$layers/work" "$dir"
        mount -t overlay kiln-test -o "lowerdir=$dir,upperdir=$layers/upper,workdir=$layers/work" "$dir"
    done
}

use_kiln() {
    local -a args=("$@")
    [[ $1 != on ]] || args+=("$KILND")
    "$source_dir/extras/use-kiln.sh" "${args[@]}"
}
