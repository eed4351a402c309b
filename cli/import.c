/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The verb import: reads the volumes of a stock glusterd from its folder, which is not changed, and lets
 * kilnd take them over with their ids, passwords, bricks and options.
 *
 *     DIR/vols/NAME/info            KEY=VALUE a line: counts, ids, options with a dot, brick-N=FILE
 *     DIR/vols/NAME/bricks/FILE     hostname=, path=, brick-id=NAME-client-N
 *
 * Files of any other form are refused: the folder may be damaged, and a wrong order of bricks would be worse
 * than no volume. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/kiln.h"

#define GLUSTERD_DIR "/var/lib/glusterd"
enum { LINE_BYTES = 16384, BRICKS_MAX = 1024 };

/* ---- files of lines KEY=VALUE ---------------------------------------------------------------- */

/* Returns an object of texts, or NULL after printing an error. */
static json_t *
read_pairs(const char *path)
{
    FILE *f = fopen(path, "re");
    json_t *pairs = f ? json_object() : NULL;
    char line[LINE_BYTES];
    int err = errno;

    while (pairs && fgets(line, sizeof line, f)) {
        char *equals = strchr(line, '=');

        line[strcspn(line, "\n")] = '\0';
        if (equals && equals < line + strlen(line) + 1) {
            *equals = '\0';
            json_object_set_new(pairs, line, json_string(equals + 1));
        }
    }
    if (f)
        fclose(f);
    if (!pairs)
        (void)refuse(KILN_REFUSED, "the folder of a glusterd", NULL, "%s: %s", path, strerror(err));
    return pairs;
}

static const char *
pair(const json_t *pairs, const char *key)
{
    const char *text = json_string_value(json_object_get(pairs, key));

    return text ? text : "";
}

/* Returns -1 for a text that is not a small number. */
static long
pair_number(const json_t *pairs, const char *key)
{
    const char *text = pair(pairs, key);
    char *end;
    long n = strtol(text, &end, 10);

    return *text && !*end && n >= 0 && n <= 1000000 ? n : -1;
}

/* ---- a volume -------------------------------------------------------------------------------- */

static int
wrong_file(const char *path, const char *what)
{
    return refuse(KILN_REFUSED, "files as GlusterFS 10 and 11 write them", NULL, "%s: %s", path, what);
}

/* Adds brick N. Returns 0, or an exit status after printing an error. */
static int
import_brick(const char *dir, const char *name, const json_t *info, unsigned n, json_t *bricks)
{
    char key[32], path[PATH_MAX], prefix[300];

    snprintf(key, sizeof key, "brick-%u", n);
    if (!*pair(info, key) || strchr(pair(info, key), '/') ||
        snprintf(path, sizeof path, "%s/vols/%s/bricks/%s", dir, name, pair(info, key)) >= (int)sizeof path)
        return wrong_file(name, "its info names no file of a brick");
    json_t *b = read_pairs(path);
    if (!b)
        return KILN_REFUSED;
    snprintf(prefix, sizeof prefix, "%s-client-", name);
    const char *id = pair(b, "brick-id");
    bool is_good = strncmp(id, prefix, strlen(prefix)) == 0 && isdigit((unsigned char)id[strlen(prefix)]) &&
                   *pair(b, "path") == '/' && *pair(b, "hostname") && pair_number(b, "decommissioned") == 0;
    if (is_good)
        json_array_append_new(bricks, json_pack("{ss ss sb si}", "host", pair(b, "hostname"), "path",
                                                pair(b, "path"), "made", 0, "id",
                                                atoi(id + strlen(prefix))));
    json_decref(b);
    return is_good ? 0
                   : wrong_file(path, "hostname, path or brick-id is missing, or the brick is being removed");
}

/* The options of a volume are the keys with a dot. */
static json_t *
import_options(const json_t *info)
{
    json_t *options = json_object(), *value;
    const char *key;

    json_object_foreach((json_t *)info, key, value)
    {
        if (strchr(key, '.'))
            json_object_set(options, key, value);
    }
    return options;
}

static int
import_volume(const char *dir, const char *name)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/vols/%s/info", dir, name) >= (int)sizeof path)
        return wrong_file(name, "the path is too long");
    json_t *info = read_pairs(path), *bricks = json_array();
    if (!info) {
        json_decref(bricks);
        return KILN_REFUSED;
    }
    long count = pair_number(info, "count"), replica = pair_number(info, "replica_count");
    long disperse = pair_number(info, "disperse_count");
    /* a volume without arbiters may lack the key */
    long arbiter = *pair(info, "arbiter_count") ? pair_number(info, "arbiter_count") : 0;
    long redundancy = disperse > 0 ? pair_number(info, "redundancy_count") : 0;
    int status = 0;

    if (count < 1 || count > BRICKS_MAX || replica < 1 || arbiter < 0 || redundancy < 0 ||
        (disperse > 0 && !redundancy))
        status = wrong_file(path, "the counts are wrong");
    for (unsigned n = 0; n < (unsigned)count && !status; n++)
        status = import_brick(dir, name, info, n, bricks);
    if (status) {
        json_decref(info);
        json_decref(bricks);
        return status;
    }
    json_t *v = json_pack("{si ss ss ss si si ss ss so si s[] s{}}", "format", redundancy ? 4 : 2, "name",
                          name, "id", pair(info, "volume-id"), "status", "stopped", "replica",
                          (int)(redundancy ? disperse : replica), "arbiter", arbiter > 0, "username",
                          pair(info, "username"), "password", pair(info, "password"), "bricks", bricks,
                          "next_brick", 0, "coming", "options");
    if (v && redundancy)
        json_object_set_new(v, "redundancy", json_integer(redundancy));
    status = v ? adopt_volume(v, import_options(info)) : wrong_file(path, "it is not UTF-8");
    json_decref(info);
    return status;
}

/* ---- the verb -------------------------------------------------------------------------------- */

/* Returns true if a process of this machine has this name. */
static bool
process_runs(const char *name)
{
    DIR *d = opendir("/proc");
    const struct dirent *e;
    bool is_found = false;

    while (d && !is_found && (e = readdir(d))) {
        char path[300], comm[32] = "";
        FILE *f = NULL;

        if (isdigit((unsigned char)*e->d_name) &&
            snprintf(path, sizeof path, "/proc/%s/comm", e->d_name) < (int)sizeof path)
            f = fopen(path, "re");
        if (f && fgets(comm, sizeof comm, f))
            comm[strcspn(comm, "\n")] = '\0';
        if (f)
            fclose(f);
        is_found = strcmp(comm, name) == 0;
    }
    if (d)
        closedir(d);
    return is_found;
}

static int
import_glusterd(const char *dir)
{
    char path[PATH_MAX];
    int status = KILN_DONE, count = 0;
    const struct dirent *e;

    if (process_runs("glusterd") || process_runs("glusterfsd"))
        return refuse(KILN_REFUSED, "no process of them on any host, so that no brick is served twice",
                      "systemctl stop glusterd && pkill glusterfsd",
                      "glusterd or its bricks run on this host");
    snprintf(path, sizeof path, "%s/vols", dir);
    DIR *d = opendir(path);
    if (!d)
        return refuse(KILN_REFUSED, "the folder of a glusterd, as " GLUSTERD_DIR, NULL, "%s: %s", path,
                      strerror(errno));
    while ((e = readdir(d))) {
        if (*e->d_name == '.')
            continue;
        int one = import_volume(dir, e->d_name);

        status = status ? status : one;
        count++;
    }
    closedir(d);
    return count ? status : refuse(KILN_REFUSED, NULL, NULL, "%s has no volumes", path);
}

int
import(const struct verb *v, int argc, char **argv)
{
    if (strcmp(argv[0], "glusterd") == 0)
        return import_glusterd(argc == 2 ? argv[1] : GLUSTERD_DIR);
    return usage(v, "import: '%.100s' is not known", argv[0]);
}
