/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* volspec: GETSPEC on the port of a brick (spec: gluster11 3.3). kadalu runs no glusterd: its mounts ask a
 * brick, which listens on glusterd's port, for the volfile KEY and get the file KEY.vol of the folder
 * `volspec-directory`.
 *
 * A client asks before it logs in, and every client may ask. The kernel resolves the path beneath the folder,
 * so neither ".." nor a symlink leads out of it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/read-section.h"
#include "log/log.h"
#include "rpc/xdr/handshake-program.h"
#include "xlators/protocol/server/server-internal.h"

/* Opens the folder that the first brick's volfile names. -EOPNOTSUPP: it names none. */
static int
open_volspec_folder(void)
{
    struct graph *g = server_first_brick();
    int fd = -EOPNOTSUPP;

    if (!g)
        return fd;
    read_section_begin();
    const char *folder = server_process_options(g).volspec_directory;
    if (folder && (fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        fd = -errno;
    read_section_end();
    graph_unpin(g);
    return fd;
}

/* Opens without blocking, because a FIFO must not hold a worker. */
static int
open_volfile(const char *key)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    char path[PATH_MAX];

    key += *key == '/';
    if (snprintf(path, sizeof path, "%s.vol", key) >= (int)sizeof path)
        return -ENAMETOOLONG;
    int folder = open_volspec_folder();
    if (folder < 0)
        return folder;
    int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
    if (fd < 0)
        fd = errno == EXDEV ? -EINVAL : -errno;
    close(folder);
    return fd;
}

static char *
volspec_read_file(int fd, int *err)
{
    struct stat st;
    char *text = NULL;
    ssize_t n = 0, at = 0;

    if (fstat(fd, &st) < 0)
        *err = -errno;
    else if (!S_ISREG(st.st_mode))
        *err = -EINVAL;
    else if (st.st_size > GETSPEC_TEXT_MAX)
        *err = -EFBIG;
    else if (!(text = malloc((size_t)st.st_size + 1)))
        *err = -ENOMEM;
    if (*err)
        return NULL;
    while (at < st.st_size && (n = read(fd, text + at, (size_t)(st.st_size - at))) > 0)
        at += n;
    text[at] = '\0';
    *err = n < 0 ? -errno : strlen(text) != (size_t)at ? -EINVAL : 0;
    if (!*err)
        return text;
    free(text);
    return NULL;
}

void
volspec_getspec(struct rpc_request *req)
{
    struct getspec_call call;
    int err = 0;

    xdr_get_getspec_call(&req->args, &call);
    if (req->args.error) {
        rpc_reply_error(req, RPC_GARBAGE_ARGS);
        return;
    }
    int fd = open_volfile(call.key);
    char *text = NULL;

    if (fd >= 0) {
        conn_set_guest(req->conn); /* before the file is read, so the client is told of any later change */
        text = volspec_read_file(fd, &err);
        close(fd);
    } else {
        err = fd;
    }
    if (err)
        log_event(LOG_WARNING, NULL, "volspec-refused", "a client asks for the volfile '%.200s': %s",
                  call.key,
                  err == -EOPNOTSUPP ? "this brick has no option volspec-directory" : strerror(-err));
    rpc_reply_volfile(req, text, err);
    free(text);
}
