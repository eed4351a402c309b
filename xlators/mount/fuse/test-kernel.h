/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The kernel's side of a FUSE device, for unit tests of mount/fuse.
 *
 * The mount is the top of a graph with one brick in memory (xlators/cluster/test-children.h), and nothing is
 * mounted: the linker puts this file's open(), mount(), umount2(), read(), writev() and event loop in
 * place of the system's (WRAP_FOR_KERNEL in xlators/mount/fuse/local.mk). The device is a socket. The test
 * composes a request, sends the request, runs the scene, and looks at the replies and notifications:
 *
 *      kernel_request(FUSE_LOOKUP, FUSE_ROOT_ID);
 *      kernel_put_text("name");
 *      ck_assert_int_eq(kernel_ask(), 0);        an errno, or 0
 *      const struct fuse_entry_out *e = kernel_answer(sizeof *e);
 *
 * The test runs in one thread. */
#ifndef KILN_MOUNT_FUSE_TEST_KERNEL_H
#define KILN_MOUNT_FUSE_TEST_KERNEL_H

#include <linux/fuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/worker.h"
#include "stack/call-stack.h"

enum { KERNEL_MESSAGE_MAX = 160 << 10 };

struct kernel {
    uint32_t uid, gid, pid; /* of the next requests */
    uint32_t init_flags;    /* FUSE_* that the kernel offers in INIT; 0: all */
    /* errnos of the system; 0: the call succeeds */
    int open_err, mount_err, unmount_err, watch_err, session_err;
    int write_err; /* of each reply: ENOENT: the kernel has dropped the request */
    int read_err;  /* of the next read from the device */
    bool brick_answers_early; /* of the next mount */
    const struct xlator_type *type; /* of the next mounts; NULL: mount/fuse */
    /* Called instead of the next reply's system call, which then is made */
    void (*on_reply)(void);
    /* Called after the brick has served a call, as scene.lie */
    void (*lie)(struct call_stack *stk, int *ret);
    unsigned unmounts, left, ended; /* calls of umount2(), and of the program's hooks left and unmounted */
    unsigned modified;              /* calls of event_modify() */
    /* the latest reply */
    bool is_answered;
    int err;
    size_t len; /* bytes after the header */
    _Alignas(8) unsigned char bytes[KERNEL_MESSAGE_MAX];
    /* notifications that invalidate an inode */
    unsigned notices;
    uint64_t notice_number;
    int64_t notice_from;
    struct fuse_init_out init; /* the reply to INIT */
    struct event_source *source; /* the device, while the mount reads; else NULL */
    uint64_t unique;             /* of the latest request */
    int device;                  /* the mount's descriptor of the device; 0: none was opened */
};
extern struct kernel kernel;

/* Clears the state of the kernel. Afterwards a test may set errnos and uid for kernel_begin(). */
void kernel_clear(void);
/* Makes an empty brick and a mount at /tmp with these options (lines of a volfile), and sends INIT. */
void kernel_begin(const char *options);
/* Ends the mount; fails the test if the mount leaves an object. */
void kernel_end(void);

/* The steps of kernel_begin() after the brick was emptied: makes a mount, and sends INIT. */
void kernel_begin_next(const char *options);
void kernel_init(void);
/* Ends the mount as exec(2) ends a program: without an unmount, and the device stays open, but with another
 * number (kernel.device), because the ending mount closes its descriptor. kernel_begin_next() may then make a
 * mount that takes over the device; else kernel_exec_end() closes the device. */
void kernel_exec(void);
void kernel_exec_end(void);

/* Ends the device as a lost mount point does, so that reads return 0. */
void kernel_hang_up(void);

/* Begins a request, and appends bytes. */
void kernel_request(uint32_t opcode, uint64_t number);
void kernel_put(const void *bytes, size_t size);
void kernel_put_text(const char *text);
/* Sends the request without running the scene; the mount reads it at once. Replies are collected by
 * kernel_listen(). */
void kernel_send(void);
void kernel_listen(void);
/* The two halves of kernel_send(): puts the request into the device, and has the mount read the device. */
void kernel_queue(void);
void kernel_wake(void);
/* Sends the request, runs the scene and returns the errno of the reply. Fails the test if there is no reply,
 * or more than one. */
int kernel_ask(void);
/* Returns the body of the latest reply, which must have at least `size` bytes. */
const void *kernel_answer(size_t size);

/* The requests that most tests need. They return an errno; *number is the object's number at the kernel. */
int kernel_lookup(uint64_t dir, const char *name, uint64_t *number);
int kernel_open(uint32_t opcode, uint64_t number, uint32_t flags, uint64_t *fh);
int kernel_release(uint32_t opcode, uint64_t number, uint64_t fh);
void kernel_forget(uint64_t number, uint64_t count);

#endif
