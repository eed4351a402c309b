#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Hostile bricks report that every name exists, also names of 256 to 1,024 bytes, which the kernel passes to a FUSE
# server. They fail with numbers that are no errno, and they list names that no directory can have. kiln-mount answers
# ENAMETOOLONG, EIO or a listing error, sends no brick a name that is too long, and does not crash.
# Covers: xlators/mount/fuse/entry.c, xlators/mount/fuse/dir.c, rpc/client/rpc-fop.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_specs() {
    local brick
    for brick in ${volume_bricks[$1]}; do
        echo "127.0.0.1:$(cat "$T/$1.proxy"):$brick"
    done
}

# Prints the errno's name of each call, one a line. A child process makes the calls, so that a hanging call is
# noticed.
calls() {
    timeout -k 5 60 python3 - "$@" <<'END'
import errno, os, sys

kind, mnt = sys.argv[1:3]
calls = {}
if kind == "long":
    for size in 256, 1024:
        name = mnt + "/" + "n" * size
        calls.update({
            "stat %d" % size: lambda n=name: os.stat(n),
            "create %d" % size: lambda n=name: os.open(n, os.O_CREAT | os.O_WRONLY),
            "mkdir %d" % size: lambda n=name: os.mkdir(n),
            "mknod %d" % size: lambda n=name: os.mknod(n),
            "symlink %d" % size: lambda n=name: os.symlink("x", n),
            "link %d" % size: lambda n=name: os.link(mnt + "/file", n),
            "rename to %d" % size: lambda n=name: os.rename(mnt + "/file", n),
            "rename from %d" % size: lambda n=name: os.rename(n, mnt + "/file"),
            "unlink %d" % size: lambda n=name: os.unlink(n),
            "rmdir %d" % size: lambda n=name: os.rmdir(n),
            "setxattr %d" % size: lambda n=name: os.setxattr(n, "user.a", b"1"),
        })
else:
    calls = {"stat": lambda: os.stat(mnt + "/file"), "mkdir": lambda: os.mkdir(mnt + "/new"), "list": lambda: os.listdir(mnt),
             "statfs": lambda: os.statvfs(mnt), "getxattr": lambda: os.getxattr(mnt + "/file", "user.a")}
    calls = {name: lambda c=call: [c() for _ in range(20)] for name, call in calls.items()}
for name, call in calls.items():
    try:
        call()
        print(name, "succeeds")
    except OSError as error:
        print(name, errno.errorcode.get(error.errno, error.errno))
END
}

bad_names_listed() {
    timeout -k 5 60 python3 - "$1" <<'END'
import os, sys

lists = errors = 0
for _ in range(60):
    try:
        for name in os.listdir(os.fsencode(sys.argv[1])):
            assert 0 < len(name) < 256 and b"/" not in name, name
        lists += 1
    except OSError:
        errors += 1
print("# %d lists, %d errors" % (lists, errors))
END
}

for layout in 1x1 2x1 1x2; do
    vol=v$layout mnt=$T/mnt$layout dir=$T/proxy$layout
    mkdir "$dir"
    volume_new "$vol" "$layout"
    volume_start "$vol"
    python3 -B "$tests_dir/client/hostile_brick.py" "${daemon_port[$(volume_daemons "$vol")]}" "$T/$vol.proxy" --seed 7 --by "$dir" >"$T/log/proxy$layout" 2>&1 &
    proxy=$!
    wait_for 60 "the brick that lies" test -s "$T/$vol.proxy"
    mount_kiln "$vol" "$mnt" --attribute-timeout=0 --entry-timeout=0 --negative-timeout=0
    touch "$mnt/file"
    stat "$mnt/file" >/dev/null

    echo "found 100" >"$dir/mode"
    got=$(calls long "$mnt")
    is "$(cut -d' ' -f1 --complement <<<"$got" | grep -vc 'ENAMETOOLONG$')" 0 "$layout: each call with a name of 256 or 1,024 bytes fails with ENAMETOOLONG" || diag "$got"
    t_not "$layout: kiln-mount is alive" process_gone "${mount_pid[$mnt]}"

    echo "errno 100" >"$dir/mode"
    got=$(calls errno "$mnt")
    is "$(grep -cvE ' (EIO|EHWPOISON|EFTYPE|134|511|[0-9]+)$' <<<"$got")" 0 "$layout: an invalid errno is returned as an error, and no call hangs" || diag "$got"
    t_not "$layout: libfuse gets no number that it refuses" grep -q 'bad error value' "$T"/log/*

    echo "names 100" >"$dir/mode"
    t "$layout: a listing with impossible names fails" bad_names_listed "$mnt"
    t_not "$layout: kiln-mount is alive after the impossible names" process_gone "${mount_pid[$mnt]}"
    rm "$dir/mode"
    t "$layout: kiln-mount serves again when the brick behaves" wait_for 240 "the file" stat "$mnt/file"
    mount_end "$mnt"
    kill "$proxy"
    wait "$proxy" 2>/dev/null || true
    volume_stop "$vol"
done
