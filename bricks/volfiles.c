/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "bricks/volfiles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bricks/bricks.h"
#include "graph/volfile.h"
#include "log/log.h"
#include "rpc/server/rpc-server.h"

enum { ERROR_BYTES = 1024 };

static void
keeps_options(const char *path, const char *why)
{
    log_event(LOG_ERROR, NULL, "volfile-reread-failed",
              "%s was read again, and its brick keeps its options: %s", path, why);
}

/* In the brick's thread. */
static void
followed(int err, const char *error, void *arg)
{
    char *path = arg;

    if (err < 0)
        keeps_options(path, *error ? error : strerror(-err));
    else
        log_event(LOG_INFO, NULL, "volfile-reread", "the brick has the options of %s", path);
    rpc_tell_volfiles_changed();
    free(path);
}

void
volfiles_reread(const char *path, const char *name,
                int (*prepare)(struct volfile *v, char *error, size_t error_size))
{
    char error[ERROR_BYTES] = "", *copy = strdup(path);
    struct volfile *v = volfile_read(path, error, sizeof error);
    int err = -EINVAL;

    if (v && (!copy || prepare(v, error, sizeof error)))
        volfile_free(v);
    else if (v && (err = bricks_post_volfile(BRICK_FOLLOW, v, name, followed, copy)) == 0)
        return;
    keeps_options(path, *error ? error : copy ? strerror(-err) : "no memory");
    free(copy);
    rpc_tell_volfiles_changed();
}
