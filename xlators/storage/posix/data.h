/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* data: what the operations on contents and on fds share: the descriptor behind a call's fd, and the iatts
 * around a change. */
#ifndef KILN_POSIX_DATA_H
#define KILN_POSIX_DATA_H

#include <unistd.h>

#include "xlators/storage/posix/mdata.h"
#include "xlators/storage/posix/stat.h"

/* Most bytes of one read, and of one checksum: what the transport takes in one record. */
#define POSIX_READ_MAX (128u << 20)

/* The descriptor of one call. An anonymous fd (-2) is opened for the call alone: an idle brick keeps no
 * descriptors, and the two extra system calls are cheaper than a cache that must know when to let go. */
struct posix_io {
    int fd;
    struct posix_fd *pfd; /* NULL: anonymous */
    bool is_owned;        /* fd was opened for this call */
    bool is_direct;       /* O_DIRECT: wants aligned memory */
    struct inode *inode;  /* no reference: the call's fd has one */
};

static inline void
posix_io_cleanup(struct posix_io *io)
{
    if (io->is_owned)
        close(io->fd);
}
/* POSIX_IO(io); int err = posix_io_get(...); */
#define POSIX_IO(name) __attribute__((cleanup(posix_io_cleanup))) struct posix_io name = {.fd = -1}

/* The descriptor behind `fd`. Anonymous: O_RDWR, or O_DIRECTORY; extra_flags (O_DIRECT) count only then.
 * 0, -EBADF, or why the object cannot be opened. */
int posix_io_get(struct xlator *xl, struct fd *fd, int extra_flags, struct posix_io *io);

/* The object of a call addressed by gfid. One that was removed is found as long as an fd is open on it, then
 * -ENOENT. Another object at its place: -ESTALE. Else 0. */
int posix_obj_of_loc(struct xlator *xl, const struct loc *loc, struct posix_obj *obj);

/* The object of a call by fd, where no descriptor is needed: an anonymous fd is not opened. 0, -EBADF,
 * -ESTALE, -errno. */
int posix_obj_of_fd(struct xlator *xl, struct fd *fd, struct posix_obj *obj);

/* The iatts before and after a change of what `fd` is open on, from stats taken around it; sets the times
 * that the caller asks for. 0 or -errno. */
int posix_iatts_around(struct xlator *xl, struct call_stack *stk, int fd, struct inode *inode,
                       const struct stat *pre, const struct stat *post);

#endif
