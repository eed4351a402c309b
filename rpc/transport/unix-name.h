/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* unix-name: the name of a listening unix socket in the file system: taken from a process that died, left
 * alone where another process listens, and given back only while the name is still this socket's. Any thread
 * may call these functions; a name is one thread's at a time. */
#ifndef KILN_TRANSPORT_UNIX_NAME_H
#define KILN_TRANSPORT_UNIX_NAME_H

#include <sys/types.h>

struct unix_name {
    char *path; /* NULL: bound to none */
    dev_t dev;
    ino_t ino;
};

/* A socket (not blocking, closed on exec) bound to `path`, mode 0600 from the first moment on; not listening
 * yet. *name is filled, for unix_name_remove() and unix_name_free(). The descriptor or -errno; then nothing
 * is left. */
int unix_name_bind(struct unix_name *name, const char *path);
/* Removes the file, unless another process has put its own file there since (management 5.6). */
void unix_name_remove(const struct unix_name *name);
void unix_name_free(struct unix_name *name);

#endif
