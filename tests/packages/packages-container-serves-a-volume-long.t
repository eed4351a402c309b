#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The image of extras/container is built from the packages. In it kilnd serves a volume without systemd, as a user
# other than root, with exactly the capabilities that the container file names. Clients can change owners, devices,
# modes and xattrs, the volume returns after a restart, and a stop ends kilnd in order.
#
#   KILN_DEBS=DIR tests/packages/packages-container-serves-a-volume-long.t
#
# DIR holds the packages (dpkg-buildpackage -us -uc -b leaves them in the parent directory of the tree). The script
# needs root, the archive's mirror and `extras/install-deps.sh package`. mmdebstrap makes the base image, so no
# container registry is used; KILN_BASE=FILE.tar is a base image that exists already. The output is TAP. The container
# has its own network. Images are kept in one directory of /var/tmp, which the script removes.
# Covers: extras/container, debian

set -u
if [[ -z ${KILN_IN_NETWORK:-} ]]; then
    for program in podman runc mmdebstrap mount.glusterfs setfattr; do
        command -v "$program" >/dev/null || { echo "1..0 # SKIP no $program: extras/install-deps.sh package test"; exit 0; }
    done
    [[ $EUID -eq 0 ]] || { echo "1..0 # SKIP not root"; exit 0; }
    [[ -n ${KILN_DEBS:-} ]] || { echo "1..0 # SKIP KILN_DEBS is not set: the folder of the packages"; exit 0; }
fi
top=$(readlink -f "$(dirname "$0")/../..")
n=0 failed=0

result() { # STATUS NAME
    n=$((n + 1))
    if [[ $1 -eq 0 ]]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        failed=1
        tail -n 30 "$log" | sed 's/^/# /'
    fi
}

t() { # NAME COMMAND...
    local name=$1
    shift
    "$@" >"$log" 2>&1 </dev/null
    result $? "$name"
}

until_true() { # SECONDS COMMAND...
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        [[ $SECONDS -lt $until ]] || return 1
        sleep 0.5
    done
}

# podman with a private storage.
podman() {
    command podman --root "$dir/storage" --runroot "$dir/run" --runtime "$dir/runtime" --cgroup-manager cgroupfs "$@"
}

# runc. Where root may set no limits (no CAP_SYS_RESOURCE, bit 24), a wrapper removes the limits that podman always
# requests.
make_runtime() {
    local eff
    eff=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
    if [[ $(((16#$eff >> 24) & 1)) -eq 1 ]]; then
        ln -s "$(command -v runc)" "$dir/runtime"
        return
    fi
    cat >"$dir/runtime" <<'END'
#!/bin/bash
for ((i = 1; i <= $#; i++)); do
    next=$((i + 1)) file=
    case ${!i} in
    --bundle) file=${!next}/config.json ;;
    --process) file=${!next} ;;
    esac
    [[ -z $file ]] || python3 -c '
import json, sys
config = json.load(open(sys.argv[1]))
config.get("process", config).pop("rlimits", None)
json.dump(config, open(sys.argv[1], "w"))' "$file" || exit 1
done
exec runc "$@"
END
    chmod +x "$dir/runtime"
}

cleanup() {
    umount -l "$dir/mnt" 2>/dev/null
    podman rm -f -t 10 kilnd >/dev/null 2>&1
    umount -l "$dir/storage/overlay" 2>/dev/null
    rm -rf --one-file-system "$dir"
}

if [[ -z ${KILN_IN_NETWORK:-} ]]; then
    dir=$(mktemp -d /var/tmp/kiln-container.XXXXXX) || exit 1
    log=$dir/log
    trap cleanup EXIT
    trap 'exit 1' INT TERM
    mkdir "$dir/debs" "$dir/bricks" "$dir/mnt"
    make_runtime
    cp "$KILN_DEBS"/kiln_*.deb "$dir/debs" || { echo "Bail out! no package kiln in $KILN_DEBS"; exit 1; }
    base=${KILN_BASE:-$dir/base.tar}
    [[ -s $base ]] || mmdebstrap --variant=apt bookworm "$base" >"$log" 2>&1 || { echo "Bail out! no bare Debian"; exit 1; }
    # Made with the machine's network, used without.
    { podman import -q "$base" localhost/bookworm && podman build --isolation chroot --network=host -t kilnd \
        --build-arg BASE=localhost/bookworm -f "$top/extras/container/Containerfile" "$dir/debs"; } >"$log" 2>&1 ||
        { tail -n 20 "$log" | sed 's/^/# /'; echo "Bail out! the image could not be made"; exit 1; }
    KILN_IN_NETWORK=$dir unshare --net --mount --propagation slave "$0"
    exit
fi
dir=$KILN_IN_NETWORK log=$dir/log
ip link set lo up

# ---- in a network of its own -----------------------------------------------------------------

wanted=CHOWN,DAC_OVERRIDE,FOWNER,FSETID,MKNOD,SETFCAP,SYS_ADMIN
run() { # CAPABILITIES ARG...
    local capabilities=$1
    shift
    podman run --network=host --cap-drop=all --cap-add="$capabilities" -v kiln-state:/var/lib/kiln -v "$dir/bricks:/bricks" "$@"
}
inside() {
    podman exec kilnd "$@"
}
is_user() {
    inside grep -E '^Uid:[[:space:]]24007[[:space:]]24007' /proc/1/status
}
# These bits and no other: the line of the kernel's is compared.
has_only_wanted() {
    inside grep -E '^CapBnd:[[:space:]]000000008820001b$' /proc/1/status
}
work() {
    cd "$dir/mnt" && echo hello >file && mknod dev c 1 3 && chown 1000:1000 file && chmod 4755 file && setfattr -n user.x -v y file &&
        mkdir d && chmod 2775 d && [[ -u file && -c dev && -g d ]]
    local status=$?
    cd /
    return "$status"
}
# Beside the filters of the container's runtime, which a program inside has, too.
has_a_filter() {
    local of_kilnd of_others
    of_kilnd=$(inside awk '$1 == "Seccomp_filters:" { print $2 }' /proc/1/status)
    of_others=$(inside awk '$1 == "Seccomp_filters:" { print $2 }' /proc/self/status)
    echo "kilnd: $of_kilnd, other programs: $of_others"
    [[ $of_kilnd -gt $of_others ]] # two with --state: one is for clone3(2)
}
serves() {
    inside kiln --json status demo | grep -oE '"online": *true' | wc -l | grep -qx 2
}

t "the container starts" run "$wanted" -d --name kilnd kilnd
t "kilnd answers in the container" until_true 120 inside kiln list
t "kilnd does not run as root" is_user
t "kilnd has only the named capabilities" has_only_wanted
t "kilnd has a sandbox of its own in the container" inside grep -E '^NoNewPrivs:[[:space:]]1$' /proc/1/status
t "kilnd has a filter of system calls in the container" has_a_filter
t "kiln creates a volume in the container" inside kiln volume create demo replica 2 /bricks/b1 /bricks/b2
t "kiln starts the volume" inside kiln volume start demo
t "the stock client mounts the volume" mount -t glusterfs localhost:/demo "$dir/mnt"
t "the volume accepts all operations of clients" work
t "both bricks have the file" cmp "$dir/bricks/b1/file" "$dir/bricks/b2/file"
t "the self-heal daemon runs" until_true 120 inside kiln volume heal demo
t "the container is restarted" podman restart -t 60 kilnd
t "both bricks are served again" until_true 120 serves
t "the file is read after the restart" until_true 120 grep -q hello "$dir/mnt/file"
t "the volume is unmounted" umount "$dir/mnt"
t "the container is stopped" podman stop -t 60 kilnd
t "the container ends with status 0" grep -qx 0 <(podman inspect kilnd --format '{{.State.ExitCode}}')
t "kilnd can be run with its capabilities" run "$wanted" --rm kilnd --version
t "kilnd cannot be run without one of its capabilities" eval '! run "${wanted//,MKNOD/}" --rm kilnd --version'

echo "1..$n"
exit "$failed"
