/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The verb export: writes the volumes of kilnd as a glusterd keeps volumes, and prints the steps by which
 * glusterd takes the files.
 *
 *     DIR/vols/NAME/info            KEY=VALUE a line, as cli/import.c reads the file
 *     DIR/vols/NAME/bricks/HOST:-PATH
 *
 * From these files glusterd 10 makes all others (node_state.info, cksum, volfiles) when glusterd is started
 * with upgrade=on once. Ids, passwords, options and the order of the bricks stay, so pending heals stay
 * valid. Nothing of kilnd changes, and no file is overwritten: a run that dies leaves a folder
 * that the operator removes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/kiln.h"

/* The least version of a glusterd that knows all options, and of clients of plain, replicated and dispersed
 * volumes. */
#define OP_VERSION "40000"
enum { TYPE_PLAIN = 0, TYPE_REPLICATE = 2, TYPE_DISPERSE = 4 };

static const char *
export_text(const json_t *json, const char *key)
{
    const char *text = json_string_value(json_object_get(json, key));

    return text ? text : "";
}

static int
cannot_write(const char *path, int err)
{
    return refuse(KILN_REFUSED, "the path of a folder that does not exist", NULL, "%s: %s", path,
                  strerror(err));
}

static int
make_folder(const char *path)
{
    return mkdir(path, 0700) ? cannot_write(path, errno) : 0;
}

/* The file has passwords, so only its owner may read it. NULL: printed. */
static FILE *
open_new_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

    if (f)
        return f;
    (void)cannot_write(path, errno);
    if (fd >= 0)
        close(fd);
    return NULL;
}

static int
close_new_file(FILE *f, const char *path)
{
    bool is_good = fflush(f) == 0 && fsync(fileno(f)) == 0;
    int err = errno;

    is_good &= fclose(f) == 0;
    return is_good ? 0 : cannot_write(path, err);
}

/* The name of the file of a brick: HOST:-PATH, with '-' in the place of '/'. */
static void
brick_file_name(const json_t *brick, const char *host, char name[NAME_MAX + 1])
{
    const char *of = export_text(brick, "host");

    snprintf(name, NAME_MAX + 1, "%s:%s", *of ? of : host, export_text(brick, "path"));
    for (char *c = name; *c; c++)
        *c = *c == '/' ? '-' : *c;
}

static int
export_brick(const char *folder, const json_t *v, const json_t *brick, const char *host)
{
    const char *of = export_text(brick, "host");
    char name[NAME_MAX + 1], path[PATH_MAX];

    if (!*of && !*host)
        return refuse(KILN_REFUSED, "the name of this machine, by which glusterd and clients reach it",
                      "kiln export glusterd DIR HOST", "brick %s has no host", export_text(brick, "path"));
    if (strlen(of) + strlen(host) + strlen(export_text(brick, "path")) + 1 > NAME_MAX)
        return refuse(KILN_REFUSED, "a path of less than 255 characters with its host", NULL,
                      "glusterd has no name for the file of brick %s", export_text(brick, "path"));
    brick_file_name(brick, host, name);
    snprintf(path, sizeof path, "%.3000s/bricks/%s", folder, name);
    FILE *f = open_new_file(path);
    if (!f)
        return KILN_REFUSED;
    fprintf(f,
            "hostname=%s\npath=%s\nlisten-port=0\nrdma.listen-port=0\ndecommissioned=0\n"
            "brick-id=%s-client-%lld\nsnap-status=0\n",
            *of ? of : host, export_text(brick, "path"), export_text(v, "name"),
            json_integer_value(json_object_get(brick, "id")));
    return close_new_file(f, path);
}

/* glusterd does not know these keys. */
static bool
is_own_option(const char *key)
{
    return strncmp(key, "kiln.", 5) == 0 || strcmp(key, "ssl.min-version") == 0 ||
           strcmp(key, "ssl.check-host") == 0;
}

static void
write_info(FILE *f, const json_t *v, const char *host)
{
    const json_t *bricks = json_object_get(v, "bricks"), *brick, *value;
    long long size = json_integer_value(json_object_get(v, "replica"));
    long long redundancy = json_integer_value(json_object_get(v, "redundancy"));
    bool is_dispersed = redundancy > 0, is_replicated = size > 1 && !is_dispersed;
    const char *status = export_text(v, "status"), *key;
    size_t i;

    fprintf(f, "type=%d\ncount=%zu\nstatus=%d\nsub_count=%lld\nreplica_count=%lld\n",
            is_dispersed    ? TYPE_DISPERSE
            : is_replicated ? TYPE_REPLICATE
                            : TYPE_PLAIN,
            json_array_size(bricks), strcmp(status, "created") == 0 ? 0 : 2, size > 1 ? size : 0,
            is_replicated ? size : 1);
    if (json_integer_value(json_object_get(v, "arbiter")))
        fprintf(f, "arbiter_count=1\n");
    fprintf(f,
            "disperse_count=%lld\nredundancy_count=%lld\nversion=1\ntransport-type=0\nvolume-id=%s\n"
            "username=%s\npassword=%s\nop-version=" OP_VERSION "\nclient-op-version=%s\nquota-version=0\n"
            "parent_volname=N/A\nrestored_from_snap=00000000-0000-0000-0000-000000000000\n"
            "snap-max-hard-limit=256\n",
            is_dispersed ? size : 0, redundancy, export_text(v, "id"), export_text(v, "username"),
            export_text(v, "password"), is_replicated ? "30800" : is_dispersed ? "30600" : "2");
    json_object_foreach((json_t *)json_object_get(v, "options"), key, value)
    {
        if (!is_own_option(key))
            fprintf(f, "%s=%s\n", key, json_string_value(value));
    }
    json_array_foreach(bricks, i, brick)
    {
        char name[NAME_MAX + 1];

        brick_file_name(brick, host, name);
        fprintf(f, "brick-%zu=%s\n", i, name);
    }
}

static int
check_volume(const json_t *v)
{
    const json_t *task = json_object_get(v, "task");
    const char *state = export_text(task, "status");

    if (strcmp(export_text(v, "status"), "creating") != 0 &&
        json_array_size(json_object_get(v, "coming")) == 0 && strcmp(state, "running") != 0)
        return 0;
    return refuse(KILN_REFUSED, "no rebalance, drain or change of bricks", "kiln volume info",
                  "volume %s is being changed", export_text(v, "name"));
}

static int
export_volume(const char *dir, const json_t *v, const char *host)
{
    char folder[PATH_MAX], path[PATH_MAX + 8];
    const json_t *brick;
    size_t i;

    snprintf(folder, sizeof folder, "%.3000s/vols/%.255s", dir, export_text(v, "name"));
    snprintf(path, sizeof path, "%s/bricks", folder);
    int status = check_volume(v);
    if (status || (status = make_folder(folder)) || (status = make_folder(path)))
        return status;
    json_array_foreach(json_object_get(v, "bricks"), i, brick)
    {
        if ((status = export_brick(folder, v, brick, host)))
            return status;
    }
    snprintf(path, sizeof path, "%s/info", folder);
    FILE *f = open_new_file(path);
    if (!f)
        return KILN_REFUSED;
    write_info(f, v, host);
    return close_new_file(f, path);
}

static void
say_left_out(const json_t *v)
{
    const json_t *value;
    const char *key;

    json_object_foreach((json_t *)json_object_get(v, "options"), key, value)
    {
        if (is_own_option(key))
            printf("  left out: %s %s %s: an option of Kiln\n", export_text(v, "name"), key,
                   json_string_value(value));
    }
}

static void
say_hosts(const json_t *volumes, const char *host)
{
    json_t *hosts = json_object(), *v, *brick;
    const char *name;
    size_t i, k;

    json_array_foreach(volumes, i, v)
    {
        json_array_foreach(json_object_get(v, "bricks"), k, brick)
        {
            const char *of = export_text(brick, "host");

            json_object_set_new(hosts, *of ? of : host, json_true());
        }
    }
    json_object_foreach(hosts, name, v) printf(" %s", name);
    json_decref(hosts);
}

static void
say_steps(const char *dir, const json_t *volumes, const char *host)
{
    json_t *v;
    size_t i;

    printf("%zu volumes are in %s/vols. glusterd takes them with these steps:\n", json_array_size(volumes),
           dir);
    json_array_foreach(volumes, i, v) say_left_out(v);
    printf("1. Wait until kiln volume heal NAME info shows no entries; unmount the clients.\n"
           "2. On each host, which are");
    say_hosts(volumes, host);
    printf(":\n"
           "     systemctl disable --now kilnd\n"
           "     apt install glusterfs-server && systemctl start glusterd\n"
           "3. On one of them: gluster peer probe HOST, for each other host.\n"
           "4. On each host, with a copy of %s:\n"
           "     systemctl stop glusterd\n"
           "     cp -r %s/vols/. /var/lib/glusterd/vols/\n"
           "     glusterd --xlator-option '*.upgrade=on' -N     # makes the other files, and ends\n"
           "     systemctl start glusterd\n"
           "5. On one of them: gluster volume start NAME\n",
           dir, dir);
}

static int
export_glusterd(const char *dir, const char *host)
{
    char path[PATH_MAX];
    json_t *answer, *v;
    size_t i;
    int status = ask("store-export", json_object(), &answer);

    if (status)
        return status;
    const json_t *volumes = json_object_get(answer, "volumes");
    snprintf(path, sizeof path, "%.3000s/vols", dir);
    if (strlen(dir) > 3000)
        status = cannot_write(dir, ENAMETOOLONG);
    status = status ? status : make_folder(dir);
    status = status ? status : make_folder(path);
    json_array_foreach(volumes, i, v)
    {
        status = status ? status : export_volume(dir, v, host);
    }
    if (!status && !kiln_options.is_json)
        say_steps(dir, volumes, host);
    else if (!status)
        status = show_json(json_object_get(answer, "volumes"));
    json_decref(answer);
    return status;
}

int
export(const struct verb *v, int argc, char **argv)
{
    if (strcmp(argv[0], "glusterd") == 0 && argc >= 2)
        return export_glusterd(argv[1], argc > 2 ? argv[2] : "");
    return usage(v, "export: '%.100s' is not known, or has other arguments", argv[0]);
}
