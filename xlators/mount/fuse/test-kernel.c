/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/mount/fuse/test-kernel.h"

#include <check.h>
#include <errno.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/read-section.h"
#include "base/test-must.h"
#include "mem/mem-pool.h"
#include "mem/mem-shared.h"
#include "xlators/cluster/test-children.h"
#include "xlators/mount/fuse/fuse-internal.h"
#include "xlators/mount/fuse/fuse.h"

extern const struct xlator_type mount_fuse_xlator;

struct kernel kernel;

static int device = -1, far_end = -1; /* the mount's end, and the test's */
static unsigned char request[KERNEL_MESSAGE_MAX];
static size_t request_bytes;

/* ---- the system ------------------------------------------------------------------------------ */

int __real_open64(const char *path, int flags, ...);
ssize_t __real_read(int fd, void *bytes, size_t size);
ssize_t __real_writev(int fd, const struct iovec *iov, int count);
int __real_sem_wait(sem_t *s);
void *__real_realloc(void *block, size_t size);
int __real_fuse_session_custom_io(struct fuse_session *se, const struct fuse_custom_io *io, int fd);
int64_t __real_mem_owner_audit(uint16_t owner, mem_audit_fn fn, void *arg);

int __wrap_open64(const char *path, int flags, ...);
int __wrap_mount(const char *source, const char *target, const char *type, unsigned long flags,
                 const void *data);
int __wrap_umount2(const char *target, int flags);
ssize_t __wrap_read(int fd, void *bytes, size_t size);
ssize_t __wrap_writev(int fd, const struct iovec *iov, int count);
int __wrap_event_add(struct event_source *src, uint32_t events);
int __wrap_event_modify(struct event_source *src, uint32_t events);
void __wrap_event_remove(struct event_source *src);
int __wrap_usleep(unsigned us);
int __wrap_sem_wait(sem_t *s);
void *__wrap_realloc(void *block, size_t size);
int __wrap_fuse_session_custom_io(struct fuse_session *se, const struct fuse_custom_io *io, int fd);
int64_t __wrap_mem_owner_audit(uint16_t owner, mem_audit_fn fn, void *arg);

static int
fails_with(int err)
{
    errno = err;
    return err ? -1 : 0;
}

static int
device_open(void)
{
    int ends[2], size = KERNEL_MESSAGE_MAX;

    if (kernel.open_err)
        return fails_with(kernel.open_err);
    must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    for (int i = 0; i < 2; i++)
        must(setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
    kernel.device = device = ends[0];
    far_end = ends[1];
    return device;
}

int
__wrap_open64(const char *path, int flags, ...)
{
    va_list ap;

    if (strcmp(path, "/dev/fuse") == 0)
        return device_open();
    va_start(ap, flags);
    int mode = va_arg(ap, int);
    va_end(ap);
    return __real_open64(path, flags, mode);
}

int
__wrap_mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data)
{
    (void)source, (void)target, (void)type, (void)flags, (void)data;
    return fails_with(kernel.mount_err);
}

int
__wrap_umount2(const char *target, int flags)
{
    (void)target, (void)flags;
    kernel.unmounts++;
    return fails_with(kernel.unmount_err);
}

ssize_t
__wrap_read(int fd, void *bytes, size_t size)
{
    int err = fd == device ? kernel.read_err : 0;

    kernel.read_err = fd == device ? 0 : kernel.read_err;
    return err ? fails_with(err) : __real_read(fd, bytes, size);
}

ssize_t
__wrap_writev(int fd, const struct iovec *iov, int count)
{
    void (*on_reply)(void) = fd == device ? kernel.on_reply : NULL;

    if (on_reply) {
        kernel.on_reply = NULL;
        on_reply();
    }
    if (fd != device || !kernel.write_err)
        return __real_writev(fd, iov, count);
    kernel.is_answered = true;
    kernel.err = 0;
    return fails_with(kernel.write_err);
}

int
__wrap_event_add(struct event_source *src, uint32_t events)
{
    (void)events;
    if (kernel.watch_err)
        return -kernel.watch_err;
    must(!kernel.source);
    kernel.source = src;
    return 0;
}

int
__wrap_event_modify(struct event_source *src, uint32_t events)
{
    (void)src, (void)events;
    kernel.modified++;
    return 0;
}

void
__wrap_event_remove(struct event_source *src)
{
    must(kernel.source == src);
    kernel.source = NULL;
}

/* Code that sleeps waits for calls. */
int
__wrap_usleep(unsigned us)
{
    scene_run(us / 1000);
    return 0;
}

int
__wrap_sem_wait(sem_t *s)
{
    scene_run(0);
    return __real_sem_wait(s);
}

/* For parcels; test-starving.c has the other functions. */
void *
__wrap_realloc(void *block, size_t size)
{
    return mem_test_fails() ? NULL : __real_realloc(block, size);
}

int
__wrap_fuse_session_custom_io(struct fuse_session *se, const struct fuse_custom_io *io, int fd)
{
    return kernel.session_err ? -kernel.session_err : __real_fuse_session_custom_io(se, io, fd);
}

int64_t
__wrap_mem_owner_audit(uint16_t owner, mem_audit_fn fn, void *arg)
{
    int64_t left = __real_mem_owner_audit(owner, fn, arg);

    must(left == 0);
    return left;
}

/* ---- the mount ------------------------------------------------------------------------------- */

static void
hear_unmounted(struct graph *g)
{
    (void)g;
    kernel.ended++;
}

static void
hear_left(struct graph *g)
{
    (void)g;
    kernel.left++;
}

void
kernel_clear(void)
{
    memset(&kernel, 0, sizeof kernel);
    kernel.pid = (uint32_t)getpid();
    fuse_set_hooks(hear_unmounted, hear_left);
}

static void
kernel_lie(unsigned child, struct call_stack *stk, int *ret)
{
    (void)child;
    if (kernel.lie)
        kernel.lie(stk, ret);
}

void
kernel_init(void)
{
    struct fuse_init_in in = {.major = 7, .minor = 38, .max_readahead = 131072, .flags = ~0u};

    in.flags = kernel.init_flags ? kernel.init_flags : in.flags & ~(uint32_t)FUSE_INIT_EXT;
    kernel_request(FUSE_INIT, 0);
    kernel_put(&in, sizeof in);
    must(kernel_ask() == 0);
    memcpy(&kernel.init, kernel_answer(sizeof kernel.init), sizeof kernel.init);
}

void
kernel_begin_next(const char *options)
{
    char all[1024];

    scene.answers_early = kernel.brick_answers_early;
    scene.lie = kernel_lie;
    snprintf(all, sizeof all, " option mountpoint /tmp\n%s", options);
    scene_begin_top(kernel.type ? kernel.type : &mount_fuse_xlator, all);
}

void
kernel_begin(const char *options)
{
    scene_clear(1, false);
    kernel_begin_next(options);
    must(kernel.source);
    kernel_init();
}

void
kernel_wake(void)
{
    must(kernel.source);
    read_section_begin();
    kernel.source->fn(kernel.source, EPOLLIN);
    read_section_end();
}

void
kernel_hang_up(void)
{
    close(far_end);
    far_end = -1;
    kernel_wake();
}

static void
kernel_close(void)
{
    if (far_end >= 0)
        close(far_end);
    far_end = device = -1;
    fuse_process_end();
}

void
kernel_end(void)
{
    kernel.write_err = 0;
    scene_end();
    must(!kernel.source);
    kernel_close();
}

void
kernel_exec(void)
{
    kernel.device = device = dup(device);
    must(device >= 0);
    atomic_store(&mount_of(scene.graph->top)->is_mounted, false);
    scene_end();
    must(!kernel.source);
    fuse_process_end();
}

void
kernel_exec_end(void)
{
    close(device);
    kernel_close();
}

/* ---- requests -------------------------------------------------------------------------------- */

void
kernel_request(uint32_t opcode, uint64_t number)
{
    struct fuse_in_header head = {.opcode = opcode,
                                  .unique = ++kernel.unique,
                                  .nodeid = number,
                                  .uid = kernel.uid,
                                  .gid = kernel.gid,
                                  .pid = kernel.pid};

    request_bytes = 0;
    kernel_put(&head, sizeof head);
}

void
kernel_put(const void *bytes, size_t size)
{
    must(request_bytes + size <= sizeof request);
    if (size) /* of an empty value: NULL */
        memcpy(request + request_bytes, bytes, size);
    request_bytes += size;
}

void
kernel_put_text(const char *text)
{
    kernel_put(text, strlen(text) + 1);
}

void
kernel_queue(void)
{
    uint32_t bytes = (uint32_t)request_bytes;

    memcpy(request, &bytes, sizeof bytes);
    must(send(far_end, request, request_bytes, 0) == (ssize_t)request_bytes);
}

void
kernel_send(void)
{
    kernel_queue();
    kernel_wake();
}

static void
kernel_hear(const unsigned char *message, size_t size)
{
    struct fuse_out_header head;

    must(size >= sizeof head);
    memcpy(&head, message, sizeof head);
    must(head.len == size);
    if (head.unique == 0) { /* a notification, with its code in place of the error */
        struct fuse_notify_inval_inode_out out;

        must(head.error == FUSE_NOTIFY_INVAL_INODE && size == sizeof head + sizeof out);
        memcpy(&out, message + sizeof head, sizeof out);
        kernel.notices++;
        kernel.notice_number = out.ino;
        kernel.notice_from = out.off;
        return;
    }
    must(!kernel.is_answered);
    kernel.is_answered = true;
    kernel.err = -head.error;
    kernel.len = size - sizeof head;
    memcpy(kernel.bytes, message + sizeof head, kernel.len);
}

void
kernel_listen(void)
{
    static _Alignas(8) unsigned char message[KERNEL_MESSAGE_MAX];
    ssize_t n;

    while ((n = recv(far_end, message, sizeof message, 0)) > 0)
        kernel_hear(message, (size_t)n);
}

int
kernel_ask(void)
{
    kernel.is_answered = false;
    kernel_send();
    scene_run(0);
    kernel_listen();
    must(kernel.is_answered);
    return kernel.err;
}

const void *
kernel_answer(size_t size)
{
    must(kernel.is_answered && kernel.len >= size);
    return kernel.bytes;
}

/* ---- common requests ------------------------------------------------------------------------- */

int
kernel_lookup(uint64_t dir, const char *name, uint64_t *number)
{
    kernel_request(FUSE_LOOKUP, dir);
    kernel_put_text(name);
    int err = kernel_ask();

    *number = err ? 0 : ((const struct fuse_entry_out *)kernel_answer(sizeof(struct fuse_entry_out)))->nodeid;
    return err;
}

int
kernel_open(uint32_t opcode, uint64_t number, uint32_t flags, uint64_t *fh)
{
    struct fuse_open_in in = {.flags = flags};

    kernel_request(opcode, number);
    kernel_put(&in, sizeof in);
    int err = kernel_ask();

    *fh = err ? 0 : ((const struct fuse_open_out *)kernel_answer(sizeof(struct fuse_open_out)))->fh;
    return err;
}

int
kernel_release(uint32_t opcode, uint64_t number, uint64_t fh)
{
    struct fuse_release_in in = {.fh = fh};

    kernel_request(opcode, number);
    kernel_put(&in, sizeof in);
    return kernel_ask();
}

void
kernel_forget(uint64_t number, uint64_t count)
{
    struct fuse_forget_in in = {.nlookup = count};

    kernel_request(FUSE_FORGET, number);
    kernel_put(&in, sizeof in);
    kernel_send();
}
