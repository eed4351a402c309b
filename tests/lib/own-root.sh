# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# own-root: the sandbox for attacks. A path escape leads out of a brick to the machine that runs the test, where a live fuzzer
# changes mode, owner and xattrs of `/`. So an attack runs in a separate root file system, and an escape reaches only that file
# system.
#
#     . "$(dirname "$0")/../lib/own-root.sh"     in the place of kiln.sh, which this file sources
#
# The root is a tmpfs, entered by pivot_root. The root holds /usr read-only, the source and build folders read-only, a copy of
# /etc whose secrets are made up, a /dev of five harmless nodes, a /proc whose dangerous files are covered, and these baits for an
# escape:
#
#   /etc/shadow, /victim/file, /victim/shut/file    hold $KILN_SECRET; /victim/shut has mode 0700
#   /victim/$KILN_SECRET                            so that a listing holds the secret too
#   /victim/fifo, /victim/zero                      a FIFO, the character device 1:5
#
# own_root_check [PREFIX], which also runs at the script's end, compares this root without $T, /proc and /tmp with its state
# before: contents, modes, owners, xattrs, names. It also compares the access times of the baits (the tmpfs keeps them strictly),
# so that it detects reading. kilnwire.py fails when a reply holds $KILN_SECRET.
#
# Device nodes on $T cannot be opened, because a fuzzer makes nodes with the numbers of this machine's disks. `mount -o
# remount,dev "$T"` allows opening.

own_root_lib=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
own_root_script=$(readlink -f "$0")

# Outside: starts the script again in new namespaces. The script's output goes through pipes, so that nothing below /proc leads to
# a file of this machine; the logs for KILN_KEEP come out as an archive.
own_root_leave() {
    [[ $EUID -eq 0 ]] || { echo "1..0 # SKIP needs root"; exit 0; }
    export KILN_SECRET="KILN-SECRET-$$-$RANDOM$RANDOM$RANDOM"
    set -o pipefail
    if [[ -n ${KILN_KEEP:-} ]]; then
        mkdir -p "$KILN_KEEP"
        exec 8> >(tar -x -C "$KILN_KEEP")
    fi
    KILN_OWN_ROOT=build unshare --mount --net --ipc --pid --fork --kill-child --propagation private -- \
        bash "$own_root_script" "$@" </dev/null 2>&1 | cat
    exit
}

own_root_bind() {
    local dir
    for dir in "$@"; do
        mkdir -p "$own_root$dir"
        mount --bind "$dir" "$own_root$dir"
        mount -o remount,bind,ro "$own_root$dir"
    done
}

own_root_dev() {
    local node
    mkdir "$own_root/dev"
    mount -t tmpfs -o mode=755,size=1m kiln-dev "$own_root/dev"
    for node in "null 3" "zero 5" "full 7" "random 8" "urandom 9"; do
        mknod -m 666 "$own_root/dev/${node% *}" c 1 "${node#* }"
    done
    ln -s /proc/self/fd "$own_root/dev/fd"
}

# The parts of /proc that reach beyond the namespaces are read-only or covered.
own_root_proc() {
    local path
    mkdir "$own_root/proc"
    mount -t proc proc "$own_root/proc"
    for path in sys sysrq-trigger irq bus fs acpi scsi; do
        [[ -e $own_root/proc/$path ]] || continue
        mount --bind "$own_root/proc/$path" "$own_root/proc/$path"
        mount -o remount,bind,ro "$own_root/proc/$path"
    done
    for path in kcore kmsg kpagecount kpageflags kpagecgroup; do
        [[ ! -e $own_root/proc/$path ]] || mount --bind "$own_root/dev/null" "$own_root/proc/$path"
    done
}

own_root_secrets() {
    local etc=$own_root/etc victim=$own_root/victim
    rm -f "$etc"/{shadow,gshadow}* "$etc"/ssh/ssh_host_*
    echo "root:\$6\$$KILN_SECRET:19000:0:99999:7:::" >"$etc/shadow"
    chmod 600 "$etc/shadow"
    mkdir -p "$victim/shut"
    echo "$KILN_SECRET" >"$victim/file"
    echo "$KILN_SECRET" >"$victim/shut/file"
    echo "$KILN_SECRET" >"$victim/$KILN_SECRET"
    chmod 700 "$victim/shut"
    mkfifo "$victim/fifo"
    mknod "$victim/zero" c 1 5
}

# In the new namespaces, still with the machine's files: builds the root, enters the root, starts the script once more.
own_root_enter() {
    local link source_dir build_dir tests_dir
    set -euo pipefail
    tests_dir=$(dirname "$own_root_lib")
    source_dir=$(dirname "$tests_dir")
    build_dir=$(dirname "$(readlink -f "${KILND:-${KILN_BUILD:-$source_dir/build}/kilnd}")")
    own_root=$(mktemp -d /tmp/kiln-root.XXXXXX)
    mount -t tmpfs -o size=2g,mode=755,nodev,strictatime kiln-root "$own_root"
    for link in bin sbin lib lib32 lib64 libx32; do
        if [[ -L /$link ]]; then
            cp -a "/$link" "$own_root/$link"
        elif [[ -d /$link ]]; then
            own_root_bind "/$link"
        fi
    done
    own_root_bind /usr "$source_dir"
    [[ $build_dir/ == "$source_dir"/* ]] || own_root_bind "$build_dir"
    cp -a /etc "$own_root/etc"
    mkdir -p "$own_root"/{root,run,tmp,var/lib,var/log,old}
    chmod 1777 "$own_root/tmp"
    own_root_dev
    own_root_proc
    own_root_secrets
    cd "$own_root"
    pivot_root . old
    rmdir "/old$own_root"
    umount -l /old
    rmdir /old
    cd /
    KILN_OWN_ROOT=yes KILN_SANDBOX=$$ exec bash "$own_root_script" "$@"
}

case ${KILN_OWN_ROOT:-} in
'') own_root_leave "$@" ;;
build) own_root_enter "$@" ;;
esac
unset KILN_OWN_ROOT

. "$own_root_lib/kiln.sh"

mount -o remount,nodev "$T"

sandbox_keep() {
    mkdir "$T/kept"
    sandbox_keep_in "$T/kept"
    tar -c -C "$T/kept" . >&8
}

# /var, /run and /tmp are the tests' own.
own_root_listing() {
    find / \( -path "$T" -o -path /proc -o -path /tmp -o -path /usr -o -path /var -o -path /run -o -path "$source_dir" \) -prune \
        -o -printf '%p %y %m %U:%G %n %l\n' | sort
    find /etc /victim /root -type f -exec sha256sum {} + | sort -k 2
    getfattr --absolute-names -h -d -m - / /etc /etc/shadow /root /dev /dev/* /victim /victim/* /victim/shut/*
}

# The times of access, contents, and attributes. The function reads no file, so it does not change the times.
own_root_times() {
    stat -c '%n %x %y %z' /etc/shadow /victim{,/file,/fifo,/zero,/shut,/shut/file,/"$KILN_SECRET"}
}

own_root_note() {
    own_root_listing >"$T/root-before"
    own_root_known_times=$(own_root_times)
}

# own_root_note makes the next check report new changes only.
own_root_check() {
    is "$(own_root_times)" "$own_root_known_times" "${1:-}nothing outside of the brick was read"
    own_root_listing >"$T/root-after"
    t "${1:-}nothing outside of the brick was changed, added or removed" diff "$T/root-before" "$T/root-after"
    own_root_note
}

own_root_note
at_end+=(own_root_check)
