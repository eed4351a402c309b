/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Statedumps that a program asks for: the pools and calls of the process, and the volume's graph. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/api-internal.h"
#include "daemon/daemon.h"
#include "log/log.h"

static int
dump_fail(int err)
{
    errno = err;
    return -1;
}

GFAPI int
glfs_set_statedump_path(struct glfs *fs, const char *path)
{
    struct stat st;

    if (!fs || !path || (stat(path, &st) == 0 && !S_ISDIR(st.st_mode)))
        return dump_fail(EINVAL);
    char *copy = strdup(path);
    if (!copy)
        return dump_fail(ENOMEM);
    pthread_mutex_lock(&fs->lock);
    free(fs->dump_dir);
    fs->dump_dir = copy;
    pthread_mutex_unlock(&fs->lock);
    return 0;
}

struct volume_dump {
    char *dir;
    struct graph *graph; /* pinned */
};

static bool
dump_volume_graph(void *of, void (*fn)(struct graph *g, void *arg), void *arg)
{
    const struct volume_dump *d = of;

    fn(d->graph, arg);
    return true;
}

static int
write_volume_dump(void *arg)
{
    const struct volume_dump *d = arg;

    return statedump_write(d->dir, "glusterdump", dump_volume_graph, arg, NULL);
}

static int
dump_volume(struct glfs *fs)
{
    struct volume_dump d = {.graph = volume_pin(fs)};

    if (!d.graph)
        return -1;
    pthread_mutex_lock(&fs->lock);
    d.dir = strdup(fs->dump_dir ? fs->dump_dir : "/var/run/gluster");
    pthread_mutex_unlock(&fs->lock);
    int err = d.dir ? engine_run(write_volume_dump, &d) : -ENOMEM;

    graph_unpin(d.graph);
    free(d.dir);
    return err ? dump_fail(-err) : 0;
}

GFAPI int
glfs_sysrq(struct glfs *fs, char key)
{
    if (fs && key == 's')
        return dump_volume(fs);
    if (!fs || key != 'h')
        return dump_fail(fs ? ENOTSUP : EINVAL);
    log_event(LOG_INFO, NULL, "gfapi-sysrq", "glfs_sysrq: h writes this line, s a statedump");
    return 0;
}
