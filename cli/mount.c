/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Mounting: by mount(8), whose helper is the stock client's. */
#include <errno.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/kiln.h"

#define HELPER "/sbin/mount.glusterfs"

/* The type of what is mounted on this folder; NULL: nothing. To be freed. */
static char *
type_mounted_at(const char *dir)
{
    char *path = realpath(dir, NULL), *type = NULL;
    FILE *f = path ? setmntent("/proc/self/mounts", "r") : NULL;
    const struct mntent *m;

    while (f && (m = getmntent(f))) {
        if (strcmp(m->mnt_dir, path) != 0)
            continue;
        free(type); /* the last one is on top */
        type = strdup(m->mnt_type);
    }
    if (f)
        endmntent(f);
    free(path);
    return type;
}

static int
run(char *const *argv)
{
    execvp(argv[0], argv);
    return refuse(KILN_REFUSED, NULL, NULL, "%s cannot be run: %s", argv[0], strerror(errno));
}

/* Where clients ask for the volfile of a volume that is started. 0 or an exit status. */
static int
find_port(const char *name, long long *port)
{
    json_t *answer;
    int status = ask("volume-mount", json_pack("{ss}", "name", name), &answer);

    if (!status)
        *port = json_integer_value(json_object_get(answer, "port"));
    json_decref(answer);
    return status;
}

int
mount_volume(const struct verb *v, int argc, char **argv)
{
    char source[256], options[1024];
    long long port = 0;
    struct stat st;

    if (argc > 2 && (argc != 4 || strcmp(argv[2], "-o") != 0))
        return usage(v, "'%s': expected -o OPTIONS, or nothing", argv[2]);
    if (stat(argv[1], &st) < 0 || !S_ISDIR(st.st_mode))
        return refuse(KILN_REFUSED, "a folder to mount on", NULL, "%s is no folder", argv[1]);
    if (access(HELPER, X_OK) < 0)
        return refuse(KILN_REFUSED, "the stock client", "apt install glusterfs-client", HELPER " is missing");
    int status = find_port(argv[0], &port);
    if (status)
        return status;
    snprintf(source, sizeof source, "localhost:/%s", argv[0]);
    if (snprintf(options, sizeof options, "server-port=%lld%s%s", port, argc > 3 ? "," : "",
                 argc > 3 ? argv[3] : "") >= (int)sizeof options)
        return refuse(KILN_USAGE, NULL, NULL, "the options are too long");
    char *const command[] = {"mount", "-t", "glusterfs", "-o", options, source, argv[1], NULL};
    return run(command);
}

int
umount_volume(const struct verb *v, int argc, char **argv)
{
    char *type = type_mounted_at(argv[0]);
    bool is_ours = type && strcmp(type, "fuse.glusterfs") == 0;

    (void)v;
    (void)argc;
    free(type);
    if (!is_ours)
        return refuse(KILN_REFUSED, "the folder of a mount", "findmnt -t fuse.glusterfs",
                      "no volume is mounted on %s", argv[0]);
    char *const command[] = {"umount", argv[0], NULL};
    return run(command);
}
