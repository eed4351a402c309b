/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Paths of bricks that clash. Two bricks of one machine must not overlap: neither may equal the other or lie
 * below it, whether the bricks belong to one volume or to two. A mount point must not hide a brick. The
 * functions only compare texts; the list of volumes (volumes.c) reserves the paths. */
#include <errno.h>
#include <string.h>

#include "volumes/brick-host.h"
#include "volumes/volumes-internal.h"

/* Tells whether one path equals the other or lies below it, on the same machine. */
static bool
bricks_meet(const struct volume_brick *one, const struct volume_brick *other)
{
    const char *a = one->path, *b = other->path;
    size_t n = strlen(a), m = strlen(b), least = n < m ? n : m;

    return brick_host_is_same(one, other) && strncmp(a, b, least) == 0 &&
           (n == m || (n < m ? b[n] : a[m]) == '/');
}

struct mount_point {
    const char *name, *dir; /* of the volume to mount; where */
    struct problem *why;
};

static void
check_mount_point(const struct volume *v, void *arg)
{
    const struct mount_point *m = arg;
    struct volume_brick dir = {.path = (char *)m->dir};

    for (unsigned i = 0; i < v->brick_count && !m->why->err; i++) {
        if (!brick_host_is_here(&v->bricks[i]))
            continue;
        dir.host = v->bricks[i].host;
        if (!bricks_meet(&v->bricks[i], &dir))
            continue;
        problem_set(m->why, -EBUSY, "a mount on %s would hide the brick %s of volume %s", m->dir,
                    v->bricks[i].path, v->name);
        problem_expected(m->why, "a folder that neither is a brick, nor lies in one, nor contains one");
        problem_type(m->why, "mkdir -p /mnt/%s && kiln mount %s /mnt/%s", m->name, m->name, m->name);
    }
}

int
volumes_check_mount_point(const char *name, const char *dir, struct problem *why)
{
    struct mount_point m = {name, dir, why};

    why->err = 0;
    volumes_each(check_mount_point, &m);
    return why->err;
}

int
volumes_check_own_paths(const struct volume *v, struct problem *why)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        for (unsigned k = 0; k < i; k++) {
            if (!bricks_meet(&v->bricks[i], &v->bricks[k]))
                continue;
            const char *host = v->bricks[i].host, *colon = *host ? ":" : "";
            if (strcmp(v->bricks[i].path, v->bricks[k].path) == 0)
                problem_set(why, -EINVAL, "volume %s would have the brick %s%s%s twice", v->name, host, colon,
                            v->bricks[i].path);
            else
                problem_set(why, -EINVAL, "brick %s%s%s and brick %s%s%s overlap: one lies in the other",
                            host, colon, v->bricks[k].path, host, colon, v->bricks[i].path);
            problem_expected(why, "a folder of its own for each brick");
            return why->err;
        }
    }
    return 0;
}

int
volumes_compare_paths(const struct volume *v, const struct volume *other, struct problem *why)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        for (unsigned k = 0; k < other->brick_count; k++) {
            if (!bricks_meet(&v->bricks[i], &other->bricks[k]))
                continue;
            problem_set(why, -EEXIST, "%s cannot become a brick: volume %s has its brick %s",
                        v->bricks[i].path, other->name, other->bricks[k].path);
            problem_expected(why, "a folder that no volume uses");
            return why->err;
        }
    }
    return 0;
}
