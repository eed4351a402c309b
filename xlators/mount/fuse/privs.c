/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Whoever changes a file takes its set-id bits and its security.capability away: else his bytes would run
 * with another's rights.
 *
 * By itself the kernel asks for security.capability before each WRITE: as many requests again. Bit 28 of
 * INIT, FUSE_HANDLE_KILLPRIV_V2, leaves all of it to us: it asks once after each look at the file's
 * attributes. libfuse 3.14 does not know the bit, nor the flags that come with it, so the bit is put into the
 * reply to INIT on its way to the device, and the flags are read before libfuse has the request.
 *
 *      security.capability   is removed by the bricks' file systems: at each write, truncation and chown
 *      set-id bits           by a SETATTR of the mode, before the kernel has its answer, and only if the mode
 *                            has any:
 *        SETATTR of nothing    the kernel knows of them and is about to write, allocate or copy
 *        SETATTR with the flag a truncation, a chown: the reply's mode tells
 *        WRITE with the flag   by who may not keep them. If the kernel was told of them, before the write; or
 *                              the reply's mode tells: another client has set them since. A write that is
 *                              answered early: performance/write-behind does it
 *        CREATE with the flag  of a file that others have made since the kernel has looked
 *
 * What remains: FALLOCATE has no flag, so bits that another client has set stay if the kernel has not looked
 * at the file since. `handle-killpriv off`, or a kernel without the bit: it asks before each write, as
 * before. */
#include <errno.h>
#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#include "xlators/mount/fuse/fuse-internal.h"

/* Of the request that this thread has from the device. */
static __thread bool kills, answers_init;

/* ---- the device ------------------------------------------------------------------------------ */

static bool
init_offers_it(const struct fuse_init_in *in, size_t size)
{
    return size >= offsetof(struct fuse_init_in, flags) + sizeof in->flags &&
           in->flags & FUSE_HANDLE_KILLPRIV_V2;
}

void
privs_look(struct fuse_mount *m, const char *bytes, size_t size)
{
    const struct fuse_in_header *head = (const void *)bytes;
    const void *in = head + 1;

    kills = answers_init = false;
    if (size < sizeof *head)
        return;
    size -= sizeof *head;
    switch (head->opcode) {
    case FUSE_INIT:
        answers_init = fuse_conf(m)->handles_killpriv && init_offers_it(in, size);
        atomic_store(&m->kills_privs, answers_init);
        break;
    case FUSE_WRITE:
        kills = size >= sizeof(struct fuse_write_in) &&
                ((const struct fuse_write_in *)in)->write_flags & FUSE_WRITE_KILL_SUIDGID;
        break;
    case FUSE_SETATTR:
        kills = size >= sizeof(struct fuse_setattr_in) &&
                ((const struct fuse_setattr_in *)in)->valid & FATTR_KILL_SUIDGID;
        break;
    case FUSE_CREATE:
        kills = size >= sizeof(struct fuse_create_in) &&
                ((const struct fuse_create_in *)in)->open_flags & FUSE_OPEN_KILL_SUIDGID;
        break;
    default: /* OPEN never truncates: FUSE_CAP_ATOMIC_O_TRUNC is not wanted */
        break;
    }
}

bool
privs_are_to_be_killed(void)
{
    return kills;
}

static void
accept_it(const struct iovec *iov, int count)
{
    struct fuse_init_out *out = count > 1 ? iov[1].iov_base : NULL;

    answers_init = false;
    if (out && iov[1].iov_len >= offsetof(struct fuse_init_out, flags) + sizeof out->flags)
        out->flags |= FUSE_HANDLE_KILLPRIV_V2;
}

static ssize_t
send_reply(int fd, struct iovec *iov, int count, void *userdata)
{
    (void)userdata;
    if (answers_init)
        accept_it(iov, count);
    return writev(fd, iov, count);
}

/* libfuse wants one; we read ourselves. */
static ssize_t
receive(int fd, void *bytes, size_t size, void *userdata)
{
    (void)userdata;
    return read(fd, bytes, size);
}

const struct fuse_custom_io privs_io = {.writev = send_reply, .read = receive};

/* ---- set-id bits ----------------------------------------------------------------------------- */

/* As the file's owner: the kernel has let another write. */
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

/* The kernel asks for it in the name of who writes, who has the file open, but lets anybody chown to -1 and
 * -1 as well, which must not take the bits of others' programs away. */
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
        if (ret < 0 && ret != -ESTALE) /* without a name: whoever has it open has it */
            return ret == -EACCES ? -EPERM : ret;
    }
    return privs_kill(t, NULL, a);
}

/* The kernel shall not believe what it was told of the mode. */
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
