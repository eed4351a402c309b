# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""upcalls_work.py SERVER VOLUME MOUNT LOG: opens the volume with the libgfapi.so.0 that the dynamic linker finds, changes files through the
mount, and prints which upcalls arrive: to the program's questions, to its function after the questions, and to questions again."""
import ctypes
import os
import sys
import threading
import time

api = ctypes.CDLL("libgfapi.so.0", use_errno=True)
pointer = ctypes.c_void_p
for name in "new", "creat", "h_lookupat", "upcall_get_event", "upcall_inode_get_object":
    getattr(api, "glfs_" + name).restype = pointer
LIMIT = 60  # seconds, of events that must come


def handle_of(o):
    text = ctypes.create_string_buffer(16)
    assert api.glfs_h_extract_handle(pointer(o), text, 16) == 16
    return text.raw


def handle_of_event(u):
    return handle_of(api.glfs_upcall_inode_get_object(pointer(api.glfs_upcall_get_event(pointer(u)))))


def poll(fs):
    """The handle of the oldest event; None: there is none."""
    u = pointer()
    assert api.glfs_h_poll_upcall(fs, ctypes.byref(u)) == 0
    if not u.value:
        return None
    handle = handle_of_event(u.value)
    api.glfs_free(u)
    return handle


def until(condition):
    end = time.monotonic() + LIMIT
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def drain(fs):
    while poll(fs):
        pass


def leave():
    """Ends the process at once: its function of the library may still be called."""
    sys.stdout.flush()
    os._exit(0)


def main():
    server, volume, mount, log = sys.argv[1:5]
    fs = pointer(api.glfs_new(volume.encode()))
    api.glfs_set_volfile_server(fs, b"tcp", server.encode(), 0)
    api.glfs_set_logging(fs, log.encode(), 7)
    print("init", api.glfs_init(fs))
    called, lock = [], threading.Lock()

    @ctypes.CFUNCTYPE(None, pointer, pointer)
    def called_back(u, data):
        with lock:
            called.append(handle_of_event(u))
        api.glfs_free(pointer(u))

    def look(path):
        """Looks a file up, so that the brick knows this client as an owner of cached data."""
        return handle_of(api.glfs_h_lookupat(fs, None, path.encode(), None, 0))

    def change(path):
        with open(mount + path, "a") as f:
            f.write("more")

    for path in "/a", "/b", "/c":
        change(path)
    poll(fs)
    drain(fs)
    handle = look("/a")
    drain(fs)
    size = os.stat(mount + "/a").st_size
    change("/a")
    st = (ctypes.c_uint64 * 18)()
    print("the change is visible", until(lambda: api.glfs_stat(fs, b"/a", st) == 0 and st[6] == size + 4))
    if "off" in sys.argv:
        print("a question is answered by an event", poll(fs) is not None)
        leave()
    print("a question is answered by an event", until(lambda: poll(fs) == handle))
    drain(fs)
    print("registered", api.glfs_upcall_register(fs, 1, called_back, None))
    handle = look("/b")
    change("/b")
    print("the function is called", until(lambda: handle in called))
    print("no question takes the function's events", poll(fs) is None)
    print("unregistered", api.glfs_upcall_unregister(fs, 1))
    # A call of the function for /b may have begun before, because each replica sends an event.
    handle = look("/c")
    change("/c")
    print("a question is answered again", until(lambda: poll(fs) == handle), handle not in called)
    print("fini", api.glfs_fini(fs))
    leave()


main()
