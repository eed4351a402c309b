/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/cluster/cluster-identity.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define IDENTITY "host.json"
enum { IDENTITY_BYTES = 4096 };

/* Reads DIR/host.json. Returns NULL if it is not there, or with *why. */
static json_t *
read_identity(const char *dir, struct problem *why)
{
    char path[4096], text[IDENTITY_BYTES];

    why->err = 0;
    snprintf(path, sizeof path, "%s/" IDENTITY, dir);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        if (errno != ENOENT)
            problem_set(why, -errno, "%s: %s", path, strerror(errno));
        return NULL;
    }
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    json_t *json = n > 0 ? json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const char *id = json_string_value(json_object_get(json, "id"));
    if (id && strlen(id) == GFID_TEXT_SIZE - 1 && json_is_string(json_object_get(json, "host")))
        return json;
    problem_set(why, -EINVAL, "%s was not written by kilnd", path);
    json_decref(json);
    return NULL;
}

int
cluster_identity_make(const char *dir, const char *host, char id[GFID_TEXT_SIZE], struct problem *why)
{
    char path[4096], temporary[4100], text[IDENTITY_BYTES];
    struct gfid fresh;

    gfid_random(&fresh);
    gfid_text(&fresh, id);
    int len = snprintf(text, sizeof text, "{\"format\": 1, \"host\": \"%s\", \"id\": \"%s\"}\n", host, id);
    snprintf(path, sizeof path, "%s/" IDENTITY, dir);
    snprintf(temporary, sizeof temporary, "%s/.new-" IDENTITY, dir);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool is_written = fd >= 0 && write(fd, text, (size_t)len) == len && fsync(fd) == 0 &&
                      rename(temporary, path) == 0;
    int err = is_written ? 0 : -errno;

    if (fd >= 0)
        close(fd);
    return err ? problem_set(why, err, "%s: %s", path, strerror(-err)) : 0;
}

int
cluster_identity_flush(const char *dir, struct problem *why)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int err = fd >= 0 && fsync(fd) == 0 ? 0 : -errno;

    if (fd >= 0)
        close(fd);
    return err ? problem_set(why, err, "%s: %s", dir, strerror(-err)) : 0;
}

int
cluster_check_plain(const char *state_dir, struct problem *why)
{
    json_t *json = read_identity(state_dir, why);

    if (!json)
        return why->err;
    problem_set(why, -EPERM, "%s is the copy that host %s keeps of a store's volumes", state_dir,
                json_string_value(json_object_get(json, "host")));
    problem_expected(why, "--store and --host, or another state folder");
    json_decref(json);
    return why->err;
}

int
cluster_identity_read(const char *dir, const char *host, char id[GFID_TEXT_SIZE], struct problem *why)
{
    json_t *json = read_identity(dir, why);

    if (!json)
        return why->err ? why->err : -ENOENT;
    const char *of = json_string_value(json_object_get(json, "host"));
    snprintf(id, GFID_TEXT_SIZE, "%s", json_string_value(json_object_get(json, "id")));
    if (strcmp(of, host) != 0) {
        problem_set(why, -EINVAL, "%s belongs to host %s, not to %s", dir, of, host);
        problem_expected(why, "--host %s, or another state folder", of);
    }
    json_decref(json);
    return why->err;
}
