#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A program with libgfapi writes and reads 64 and 128 MiB in one call, as qemu-io does; the stock client sends each
# call as one record. Both replicas have the data, no connection is cut, and no heal is pending.
# Covers: rpc/transport/receive.c, rpc/transport/limits.h, libglusterfs/mem/iobuf.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -e /usr/lib/x86_64-linux-gnu/libgfapi.so.0 ]] || skip_all "no libgfapi.so.0"
volume_new v 1x2
volume_start v
volume_client_volfile v default >"$T/client.vol"
read -ra bricks <<<"${volume_bricks[v]}"

cat >"$T/large.py" <<'END'
import ctypes, hashlib, os, sys

api = ctypes.CDLL("libgfapi.so.0", use_errno=True)
for name in ("glfs_new", "glfs_creat", "glfs_open"):
    getattr(api, name).restype = ctypes.c_void_p
for name in ("glfs_pwrite", "glfs_pread"):
    getattr(api, name).restype = ctypes.c_ssize_t


def must(result, what):
    if result is None or result == -1 or result == 0 and what.startswith("no"):
        sys.exit("%s: %s" % (what, os.strerror(ctypes.get_errno())))
    return result


fs = ctypes.c_void_p(must(api.glfs_new(b"v"), "glfs_new"))
must(api.glfs_set_volfile(fs, sys.argv[1].encode()), "glfs_set_volfile")
must(api.glfs_set_logging(fs, sys.argv[2].encode(), 7), "glfs_set_logging")
must(api.glfs_init(fs), "glfs_init")
for mib in 64, 128:
    size, name = mib << 20, b"/large-%d" % mib
    piece = os.urandom(1 << 20)
    data = b"".join(bytes([number]) + piece[1:] for number in range(mib))
    file = ctypes.c_void_p(must(api.glfs_creat(fs, name, os.O_RDWR, 0o600), "glfs_creat"))
    wrote = must(api.glfs_pwrite(file, data, ctypes.c_size_t(size), ctypes.c_int64(0), 0, None, None), "write of %d MiB" % mib)
    back = ctypes.create_string_buffer(size)
    got = must(api.glfs_pread(file, back, ctypes.c_size_t(size), ctypes.c_int64(0), 0, None), "read of %d MiB" % mib)
    must(api.glfs_close(file), "glfs_close")
    print(mib, wrote == size and got == size and back.raw == data, hashlib.sha256(data).hexdigest())
    sys.stdout.flush()
os._exit(0)  # glfs_fini() waits ten seconds for its last connections
END
writes() { timeout 300 python3 "$T/large.py" "$T/client.vol" "$T/log/gfapi.log" >"$T/said"; }
t_here "the program writes and reads 64 and 128 MiB" writes
for mib in 64 128; do
    read -r _ same digest < <(grep "^$mib " "$T/said" || echo "$mib no no")
    is "${same:-}" True "$mib MiB: the program reads the written bytes"
    for replica in 0 1; do
        is "$(sha256sum <"${bricks[replica]}/large-$mib" | cut -d' ' -f1)" "${digest:-}" "$mib MiB: replica $replica has the written bytes"
    done
done
pending() { find "${bricks[$1]}/.glusterfs/indices" -type f ! -name 'xattrop-*' ! -name 'entry-changes-*' ! -name 'dirty-*' | wc -l; }
for replica in 0 1; do
    is "$(pending $replica)" 0 "no heal is pending on replica $replica"
done
t_not "no connection was cut" grep -rq transport-record-too-long "$T/log"
