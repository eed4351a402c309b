/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* data: the functions that operations on contents and fds share: the descriptor behind a call's fd, and the
 * iatts around a change. */
#ifndef KILN_POSIX_DATA_H
#define KILN_POSIX_DATA_H

#include <unistd.h>

#include "xlators/storage/posix/object/mdata.h"
#include "xlators/storage/posix/object/stat.h"

/* Maximum bytes of a read and of a checksum: the size that the transport accepts in a record. */
#define POSIX_READ_MAX (128u << 20)

/* The descriptor of one call. An anonymous fd (-2) is opened for the call alone: so an idle brick keeps no
 * descriptors, and the two extra system calls cost less than a cache with its invalidation. */
struct posix_io {
    int fd;
    struct posix_fd *pfd; /* NULL: anonymous */
    bool is_owned;        /* fd was opened for this call */
    bool is_direct;       /* O_DIRECT: needs aligned memory */
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

/* Returns the descriptor behind `fd` in *io. An anonymous fd is opened with O_RDWR or O_DIRECTORY, and with
 * extra_flags (O_DIRECT), which are ignored otherwise. Returns 0, -EBADF, or the error of the open. */
int posix_io_get(struct xlator *xl, struct fd *fd, int extra_flags, struct posix_io *io);

/* Fills *obj for the object of a call by gfid. A removed object is found as long as an fd is open on it, and
 * then fails with -ENOENT. -ESTALE: another object has its place. Otherwise 0. */
int posix_obj_of_loc(struct xlator *xl, const struct loc *loc, struct posix_obj *obj);

/* Fills *obj for the object of a call by fd that needs no descriptor: an anonymous fd is not opened. Returns
 * 0, -EBADF, -ESTALE or -errno. */
int posix_obj_of_fd(struct xlator *xl, struct fd *fd, struct posix_obj *obj);

/* Sets the times that the caller requests, and computes the iatts before and after a change of the object of
 * `fd`, from stats taken around the change. Returns 0 or -errno. */
int posix_iatts_around(struct xlator *xl, struct call_stack *stk, int fd, struct inode *inode,
                       const struct stat *pre, const struct stat *post);

#endif
