/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kiln pools: asks kilnd over the management socket, or a mount by the xattr trusted.kiln.pools of the
 * root. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "cli/kiln.h"

#define XATTR "trusted.kiln.pools"

/* The largest value that the kernel passes. */
enum { XATTR_BYTES = 64 << 10 };

/* The request of the command line; with all fields NULL a request for the figures. */
struct request {
    const char *dir, *key, *value, *trim;
};

/* Reads the request from the command line. Returns 0 or an exit status. */
static int
parse_pools_words(const struct verb *v, int argc, char **argv, struct request *r)
{
    int at = 0;

    if (argc >= 2 && strcmp(argv[0], "mount") == 0) {
        r->dir = argv[1];
        at = 2;
    }
    if (at == argc)
        return 0;
    if (strcmp(argv[at], "set") == 0 && argc - at == 3) {
        r->key = argv[at + 1];
        r->value = argv[at + 2];
        return 0;
    }
    if (strcmp(argv[at], "trim") == 0 && argc - at <= 2) {
        r->trim = argc - at == 2 ? argv[at + 1] : "soft";
        if (strcmp(r->trim, "soft") == 0 || strcmp(r->trim, "hard") == 0)
            return 0;
        return usage(v, "trim %s: expected soft or hard", r->trim);
    }
    return usage(v, "'%s': expected set OPTION VALUE, or trim [soft|hard]", argv[at]);
}

/* ---- a mount --------------------------------------------------------------------------------- */

static int
mount_refuses(const char *dir, const char *what, int err)
{
    if (err == EOPNOTSUPP || err == ENODATA)
        return refuse(KILN_REFUSED, "a folder that kiln-mount serves, and to be root", NULL,
                      "%s: its file system does not know " XATTR, dir);
    if (err == EINVAL)
        return refuse(KILN_REFUSED, "sweep TIME, release drop|keep, cap BYTES or stacks age|drop|keep",
                      "kiln help pools", "%s: the pools do not take %s", dir, what);
    if (err == ENOENT || err == ENOTDIR)
        return refuse(KILN_REFUSED, "the mount point of a volume", "findmnt -t fuse.glusterfs", "%s: %s", dir,
                      strerror(err));
    return refuse(KILN_REFUSED, NULL, NULL, "%s: %s: %s", dir, what, strerror(err));
}

static int
ask_mount(const struct request *r, json_t **answer)
{
    char order[64] = "the question";

    if (r->key && snprintf(order, sizeof order, "set %s %s", r->key, r->value) >= (int)sizeof order)
        return mount_refuses(r->dir, r->value, EINVAL);
    if (r->trim)
        snprintf(order, sizeof order, "trim %s", r->trim);
    if ((r->key || r->trim) && setxattr(r->dir, XATTR, order, strlen(order), 0) < 0)
        return mount_refuses(r->dir, order, errno);
    char *text = malloc(XATTR_BYTES + 1);
    ssize_t n = text ? getxattr(r->dir, XATTR, text, XATTR_BYTES) : -1;
    int err = errno;
    json_t *figures = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;

    free(text);
    if (n < 0)
        return mount_refuses(r->dir, order, err);
    *answer = figures ? json_pack("{so}", "figures", figures) : NULL;
    return *answer ? KILN_DONE
                   : refuse(KILN_REFUSED, "a kiln-mount of this version", NULL,
                            "%s: its answer cannot be understood", r->dir);
}

static int
ask_kilnd(const struct request *r, json_t **answer)
{
    json_t *args = json_object();

    if (r->key)
        json_object_set_new(args, "set", json_pack("{ss}", r->key, r->value));
    if (r->trim)
        json_object_set_new(args, "trim", json_string(r->trim));
    return ask("pools", args, answer);
}

/* ---- the table ------------------------------------------------------------------------------- */

static long long
number(const json_t *json, const char *key)
{
    return json_integer_value(json_object_get(json, key));
}

static const char *
text(const json_t *json, const char *key)
{
    const char *said = json_string_value(json_object_get(json, key));

    return said ? said : "-";
}

static void
show_process(const json_t *p)
{
    printf("sweep %lld ms, release %s, cap %lld, stacks %s, mode %s\n", number(p, "sweep-interval-ms"),
           text(p, "pool-release"), number(p, "cap-bytes"), text(p, "stack-policy"), text(p, "mode"));
    printf("%lld bytes in spans, %lld of them cached; %lld sweeps, %lld bytes given back\n\n",
           number(p, "resident-bytes"), number(p, "cached-bytes"), number(p, "sweep-count"),
           number(p, "released-bytes"));
}

static bool
is_used(const json_t *pool)
{
    return number(pool, "gets") > 0 || number(pool, "bytes-resident") > 0;
}

static void
show_pools(const json_t *list)
{
    json_t *p;
    size_t i;

    printf("%-24s %5s %9s %9s %9s %11s %10s %12s %10s %10s\n", "TYPE", "SIZE", "LIVE", "HOT", "COLD", "BYTES",
           "PADDING", "HITS-HOT", "HITS-COLD", "SYSTEM");
    json_array_foreach(list, i, p)
    {
        if (!is_used(p))
            continue;
        printf("%-24.24s %5lld %9lld %9lld %9lld %11lld %10lld %12lld %10lld %10lld\n", text(p, "pool-name"),
               number(p, "sizeof-type"), number(p, "active-count"), number(p, "cached-hot"),
               number(p, "cached-cold"), number(p, "bytes-resident"), number(p, "padding-bytes"),
               number(p, "hits-hot"), number(p, "hits-cold") + number(p, "hits-depot"),
               number(p, "system-allocs"));
    }
}

static void
show_owners(const json_t *list)
{
    bool has_title = false;
    json_t *p, *o;
    size_t i, k;

    json_array_foreach(list, i, p)
    {
        json_array_foreach(json_object_get(p, "owners"), k, o)
        {
            if (!has_title)
                printf("\n%-24s %9s %11s %s\n", "TYPE", "LIVE", "BYTES", "BRICK");
            has_title = true;
            printf("%-24.24s %9lld %11lld %s\n", text(p, "pool-name"), number(o, "active"),
                   number(o, "bytes"), text(o, "brick"));
        }
    }
}

static void
show_stacks(const json_t *list)
{
    json_t *s;
    size_t i;

    if (json_array_size(list) > 0)
        printf("\n%-24s %9s %9s %9s %11s %12s %10s\n", "STACKS", "LIVE", "HOT", "COLD", "BYTES", "TAKES",
               "REUSED");
    json_array_foreach(list, i, s)
        printf("%-24.24s %9lld %9lld %9lld %11lld %12lld %10lld\n", text(s, "stack-pool"), number(s, "live"),
               number(s, "cached-hot"), number(s, "cached-cold"), number(s, "bytes-resident"),
               number(s, "takes"), number(s, "reused"));
}

static int
show(const struct request *r, const json_t *answer)
{
    const json_t *figures = json_object_get(answer, "figures"),
                 *returned = json_object_get(answer, "returned_bytes");

    if (kiln_options.is_json)
        return show_json(answer);
    if (r->key)
        printf("pools: %s is %s\n", r->key, r->value);
    else if (r->trim && returned)
        printf("pools: %lld bytes given back\n", (long long)json_integer_value(returned));
    else if (r->trim)
        printf("pools: trimmed\n");
    if (r->key || r->trim)
        return KILN_DONE;
    show_process(json_object_get(figures, "process"));
    show_pools(json_object_get(figures, "pools"));
    show_owners(json_object_get(figures, "pools"));
    show_stacks(json_object_get(figures, "stacks"));
    return KILN_DONE;
}

int
pools(const struct verb *v, int argc, char **argv)
{
    struct request r = {0};
    json_t *answer = NULL;
    int status = parse_pools_words(v, argc, argv, &r);

    if (!status)
        status = r.dir ? ask_mount(&r, &answer) : ask_kilnd(&r, &answer);
    if (!status)
        status = show(&r, answer);
    json_decref(answer);
    return status;
}
