/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A change of a file by a user must clear the file's set-id bits and its security.capability, because
 * otherwise the new contents would run with the rights of another user.
 *
 * By default the kernel asks for security.capability before each WRITE, which doubles the number of
 * requests. Bit 28 of INIT, FUSE_HANDLE_KILLPRIV_V2, leaves the clearing to the mount: the kernel then asks
 * once after each read of the file's attributes. libfuse 3.14 knows neither the bit nor the flags that come
 * with it, so the bit is added to the reply to INIT on its way to the device, and the flags are read before
 * libfuse gets the request.
 *
 *      security.capability   is removed by the bricks' file systems: at each write, truncation and chown
 *      set-id bits           are cleared by a SETATTR of the mode, before the reply to the kernel, and only
 *                            if the mode has any:
 *        SETATTR of nothing    the kernel knows of set-id bits and is about to write, allocate or copy
 *        SETATTR with the flag a truncation or chown: the reply has the mode
 *        WRITE with the flag   from a user who may not keep the bits. If the kernel knows of set-id bits,
 *                              before the write; else if the reply's mode has some, because another client
 *                              has set them since. For writes that are answered early
 *                              performance/write-behind does this
 *        CREATE with the flag  of a file that another client has created since the kernel's lookup
 *
 * Limits: FALLOCATE has no flag, so bits that another client has set stay if the kernel has not read the
 * file's attributes since. With `handle-killpriv off`, or a kernel without the bit, the kernel asks before
 * each write. */
#include <errno.h>
#include <linux/fuse.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "xlators/mount/fuse/fuse-internal.h"

/* About this thread's current request from the device. */
static __thread bool request_kills, request_is_init, is_muted;

/* ---- the device ------------------------------------------------------------------------------ */

static bool
init_offers_killpriv(const struct fuse_init_in *in, size_t size)
{
    return size >= offsetof(struct fuse_init_in, flags) + sizeof in->flags &&
           in->flags & FUSE_HANDLE_KILLPRIV_V2;
}

void
privs_look(struct fuse_mount *m, const char *bytes, size_t size)
{
    const struct fuse_in_header *head = (const void *)bytes;
    const void *in = head + 1;

    request_kills = request_is_init = false;
    if (size < sizeof *head)
        return;
    size -= sizeof *head;
    switch (head->opcode) {
    case FUSE_INIT:
        request_is_init = fuse_conf(m)->handles_killpriv && init_offers_killpriv(in, size);
        atomic_store(&m->kills_privs, request_is_init);
        m->init_bytes = size + sizeof *head <= sizeof m->init ? size + sizeof *head : 0;
        memmove(m->init, bytes, m->init_bytes); /* `bytes` may be this copy */
        break;
    case FUSE_WRITE:
        request_kills = size >= sizeof(struct fuse_write_in) &&
                ((const struct fuse_write_in *)in)->write_flags & FUSE_WRITE_KILL_SUIDGID;
        break;
    case FUSE_SETATTR:
        request_kills = size >= sizeof(struct fuse_setattr_in) &&
                ((const struct fuse_setattr_in *)in)->valid & FATTR_KILL_SUIDGID;
        break;
    case FUSE_CREATE:
        request_kills = size >= sizeof(struct fuse_create_in) &&
                ((const struct fuse_create_in *)in)->open_flags & FUSE_OPEN_KILL_SUIDGID;
        break;
    default: /* OPEN never truncates, because FUSE_CAP_ATOMIC_O_TRUNC is not requested */
        break;
    }
}

bool
privs_are_to_be_killed(void)
{
    return request_kills;
}

static void
accept_killpriv(const struct iovec *iov, int count)
{
    struct fuse_init_out *out = count > 1 ? iov[1].iov_base : NULL;

    request_is_init = false;
    if (out && iov[1].iov_len >= offsetof(struct fuse_init_out, flags) + sizeof out->flags)
        out->flags |= FUSE_HANDLE_KILLPRIV_V2;
}

static ssize_t
send_reply(int fd, struct iovec *iov, int count, void *userdata)
{
    (void)userdata;
    if (request_is_init)
        accept_killpriv(iov, count);
    if (is_muted)
        return (ssize_t)((const struct fuse_out_header *)iov[0].iov_base)->len;
    return writev(fd, iov, count);
}

void
privs_mute(bool is_mute)
{
    is_muted = is_mute;
}

/* libfuse requires a read function, which the mount does not use. */
static ssize_t
read_device(int fd, void *bytes, size_t size, void *userdata)
{
    (void)userdata;
    return read(fd, bytes, size);
}

const struct fuse_custom_io privs_io = {.writev = send_reply, .read = read_device};

/* ---- set-id bits ----------------------------------------------------------------------------- */

/* Runs as the file's owner, because the kernel has allowed another user to write. */
int
privs_kill(struct task *t, struct fd *fd, struct iatt *a)
{
    uint32_t bits = iatt_privs(a);
    struct call_stack *stk = bits ? task_call_new(t, fd ? FOP_fsetattr : FOP_setattr) : NULL;

    if (!stk)
        return bits ? -ENOMEM : 0;
    if (fd && !stk->call.fd) {
        stk->call.fd = fd_ref(fd);
        inode_unref(stk->call.loc.inode);
        stk->call.loc.inode = inode_ref(fd->inode);
    }
    stk->caller.uid = a->uid;
    stk->caller.gid = a->gid;
    stk->caller.group_count = 0;
    stk->call.valid = SETATTR_MODE;
    stk->call.stbuf.mode = a->mode & 07777 & ~bits;
    int ret = task_wind_by_number(t, &stk);

    if (ret >= 0)
        *a = stk->reply.post;
    call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

/* The kernel sends this request in the name of a writer that has the file open. But the kernel also lets any
 * user chown a file to -1 and -1, which must not clear the bits of other users' programs. */
int
privs_kill_if_allowed(struct task *t, struct iatt *a)
{
    bool may_write = t->stk->caller.uid == 0 || t->stk->caller.uid == a->uid;
    struct call_stack *stk;

    if (!iatt_privs(a))
        return 0;
    if (!may_write) {
        if (!(stk = task_call_new(t, FOP_access)))
            return -ENOMEM;
        stk->call.flags = W_OK;
        int ret = task_wind_by_number(t, &stk);

        call_stack_free(stk);
        if (ret < 0 && ret != -ESTALE) /* the object has no name, and a caller with an open file may write */
            return ret == -EACCES ? -EPERM : ret;
    }
    return privs_kill(t, NULL, a);
}

/* Clears the bits and invalidates the kernel's attributes, because the mode has changed. */
static int
kill_and_tell(struct task *t, struct iatt *a)
{
    int err = privs_kill(t, t->stk->call.fd, a);

    if (!err)
        privs_told(node_at(t->m, t->number), a);
    (void)fuse_lowlevel_notify_inval_inode(t->m->se, t->number, -1, 0);
    return err;
}

int
privs_before_write(struct task *t)
{
    const struct fuse_node *node = node_at(t->m, t->number);
    struct call_stack *stk;

    if (!node || !atomic_load(&node->has_privs))
        return 0;
    if (!(stk = task_call_new(t, FOP_fstat)))
        return -ENOMEM;
    int ret = task_wind(t, stk);
    struct iatt a = stk->reply.stat;

    call_stack_free(stk);
    return ret < 0 ? ret : kill_and_tell(t, &a);
}

int
privs_after_write(struct task *t)
{
    struct iatt a = t->stk->reply.post;

    return iatt_privs(&a) ? kill_and_tell(t, &a) : 0;
}
