/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/brick-host.h"

#include <string.h>

static const char *own = "";

void
brick_host_begin(const char *name)
{
    own = name;
}

const char *
brick_host_own(void)
{
    return own;
}

bool
brick_host_is_here(const struct volume_brick *b)
{
    return !*own || !*b->host || strcmp(b->host, own) == 0;
}

bool
brick_host_is_same(const struct volume_brick *a, const struct volume_brick *b)
{
    return !*own || strcmp(*a->host ? a->host : own, *b->host ? b->host : own) == 0;
}

int
brick_host_find(const struct volume *v, const char *text)
{
    const char *colon = *text == '/' ? NULL : strstr(text, ":/"), *path = colon ? colon + 1 : text;
    const char *host = colon ? text : own;
    size_t len = colon ? (size_t)(colon - text) : strlen(own);

    for (unsigned i = 0; i < v->brick_count; i++) {
        const struct volume_brick *b = &v->bricks[i];
        const char *of = *b->host ? b->host : own;

        if (strcmp(b->path, path) == 0 && (!*own || (strlen(of) == len && strncmp(of, host, len) == 0)))
            return (int)i;
    }
    return -1;
}

bool
brick_host_has_any(const struct volume *v)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        if (brick_host_is_here(&v->bricks[i]))
            return true;
    }
    return false;
}

int
brick_host_find_same(const struct volume *v, const struct volume_brick *b)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        if (strcmp(v->bricks[i].path, b->path) == 0 && brick_host_is_same(&v->bricks[i], b))
            return (int)i;
    }
    return -1;
}

bool
brick_host_has(const struct volume *v, const struct volume_brick *b)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        if (v->bricks[i].id == b->id && strcmp(v->bricks[i].path, b->path) == 0 &&
            brick_host_is_here(&v->bricks[i]))
            return true;
    }
    return false;
}
