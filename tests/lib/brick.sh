# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# brick: comparisons of the bricks' own file systems.
#
#   brick_listing DIR             every object a client may see: kind, mode, owner, link count, size, checksum or target
#   bricks_equal DIR1 DIR2        succeeds when the two listings are the same
#   bricks_get_equal DIR1 DIR2    waits until the listings are the same; else prints the difference
#   brick_pending DIR             the names in the brick's heal index: none when no object waits for heal
#   brick_handles_hold DIR        every file's and folder's handle below .glusterfs exists and is the right handle. A folder that
#                                 the trash has made below .trashcan has no gfid until a client looks it up

brick_listing() {
    (
        cd "$1"
        find . -path ./.glusterfs -prune -o -type f -printf '%P %y %m %U:%G %n %s ' -exec sh -c \
            'sha256sum <"$1" | cut -c 1-64' sh {} \; -o -not -name .glusterfs -printf '%P %y %m %U:%G %l\n' | sort
    )
}

bricks_equal() {
    diff <(brick_listing "$1") <(brick_listing "$2")
}

bricks_get_equal() {
    wait_for 240 "equal replicas" bricks_equal "$@" || bricks_equal "$@"
}

brick_pending() {
    find "$1"/.glusterfs/indices/xattrop "$1"/.glusterfs/indices/dirty -type f -not -name 'xattrop-*' \
        -not -name 'dirty-*' 2>/dev/null | sed 's|.*/||'
}

nothing_pending() {
    local brick
    for brick in "$@"; do
        [[ -z $(brick_pending "$brick") ]] || return 1
    done
}

brick_handles_hold() {
    python3 - "$1" <<'EOF'
import collections, os, stat, sys, uuid
root = sys.argv[1]
bad = 0
def complain(path, text):
    global bad
    bad += 1
    print(path, text)
def handle_of(gfid):
    return os.path.join(root, ".glusterfs", gfid[:2], gfid[2:4], gfid)
def gfid_of(path):
    return str(uuid.UUID(bytes=os.getxattr(path, "trusted.gfid", follow_symlinks=False)))
def is_of(handle, gfid):
    try:
        return gfid_of(handle) == gfid # the handle of a folder has no gfid of its own
    except OSError:
        return False
def count_folders():
    counts = collections.Counter()
    for folder, folders, files in os.walk(root):
        if folder == root:
            folders.remove(".glusterfs")
        for name in folders:
            try:
                counts[gfid_of(os.path.join(folder, name))] += 1
            except (OSError, ValueError):
                pass # is complained of below
    return counts
copies = count_folders()
# True for a folder whose gfid another object has: a client that may move both folders can give the gfid to another folder, and
# after the removal of that folder any client can make a file with the gfid. Of two folders the handle leads to the folder that
# was looked up last, or nowhere when the path of that folder has changed as well. No object below the folder is reached by gfids,
# but a LOOKUP by path still finds the right object: see tests/wire/live_fuzz.py --look.
def is_superseded(handle, gfid):
    return copies[gfid] > 1 or is_of(handle, gfid)
def forget(path):
    for folder, folders, files in os.walk(path):
        for name in folders + files:
            if not is_of_trash(os.path.join(folder, name)):
                known.add(handle_of(gfid_of(os.path.join(folder, name))))
def is_of_trash(path):
    in_trash = path.startswith(os.path.join(root, ".trashcan") + "/")
    return in_trash and stat.S_ISDIR(os.lstat(path).st_mode) and "trusted.gfid" not in os.listxattr(path)
known = set()
for folder, folders, files in os.walk(root):
    if folder == root:
        folders.remove(".glusterfs")
    for name in folders + files:
        path = os.path.join(folder, name)
        if is_of_trash(path):
            continue
        try:
            gfid = gfid_of(path)
        except (OSError, ValueError) as error:
            complain(path, "gfid: %s" % error)
            continue
        handle = handle_of(gfid)
        known.add(handle)
        info = os.lstat(path)
        if stat.S_ISDIR(info.st_mode):
            if os.path.islink(handle) and os.path.exists(handle) and os.stat(handle).st_ino == info.st_ino:
                continue
            if is_superseded(handle, gfid):
                folders.remove(name)
                forget(path)
            elif not os.path.lexists(handle):
                complain(path, "no handle")
            elif not os.path.islink(handle):
                complain(path, "the folder's handle is no symlink")
            else:
                complain(path, "the folder's handle leads elsewhere: %s" % os.readlink(handle))
        elif not os.path.lexists(handle):
            complain(path, "no handle")
        elif os.lstat(handle).st_ino != info.st_ino:
            complain(path, "the handle is another file")
store = os.path.join(root, ".glusterfs")
for one in os.listdir(store):
    if len(one) != 2:
        continue
    for two in os.listdir(os.path.join(store, one)):
        for gfid in os.listdir(os.path.join(store, one, two)):
            handle = os.path.join(store, one, two, gfid)
            # The root, and the hidden folder of replicate (its gfid is random, but the walk above has found the folder).
            if handle not in known and not gfid.startswith("00000000-0000-0000-0000-"):
                complain(handle, "a handle of nothing: %s" % (os.readlink(handle) if os.path.islink(handle) else str(os.lstat(handle))))
sys.exit(bad != 0)
EOF
}
