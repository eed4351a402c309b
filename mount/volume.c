/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A client's volfile ends with the volume. This file adds two layers: mount/fuse on top, and features/hard
 * above the layers that decide which bricks a call goes to. Options of both layers come as overrides.
 *
 * The text comes from the server or from an impostor, and is not trusted: the text names the bricks, but says
 * nothing about this machine. Of the types in mount/types.c only mount/fuse touches a path of this machine.
 * No option of another type is a path, a program, a socket or a log. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "log/log.h"
#include "mount/client-volume.h"
#include "mount/kiln-mount.h"
#include "mount/option-table.h"
#include "mount/types.h"
#include "rpc/transport/tls-options.h"

#define MOUNT_NAME "kiln-mount"
#define MOUNT_TYPE "mount/fuse"

void
mount_options_free(struct mount_options *o)
{
    for (size_t i = 0; i < sizeof o->owned / sizeof o->owned[0]; i++)
        free(o->owned[i]);
}

/* mount/fuse mounts as root, on the mount point in the layer's options. Only the command line may give these
 * options: a server that could name the type would mount over any directory of this machine. */
static bool
names_mount(const struct volfile *v, char *error, size_t error_size)
{
    for (size_t i = 0; i < v->section_count; i++) {
        const struct volfile_section *s = &v->sections[i];

        if (strcmp(s->type, MOUNT_TYPE) != 0)
            continue;
        snprintf(error, error_size,
                 "%s:%u: volume %s: the type %s is kiln-mount's own, no volfile may name it", v->path,
                 s->line, s->name, s->type);
        return true;
    }
    return false;
}

/* Parses the volfile and adds the two layers. */
static struct volfile *
parse_with_mount(const char *path, const char *text, size_t len, char *error, size_t error_size)
{
    struct volfile *v = volfile_parse(path, text, len, error, error_size);
    int err = 0;

    if (!v)
        return NULL;
    bool is_refused = names_mount(v, error, error_size);

    if (!is_refused)
        err = client_volume_add_hard(v);
    if (!is_refused && !err)
        err = volfile_add_top(v, MOUNT_NAME, MOUNT_TYPE);
    if (err)
        snprintf(error, error_size, "%s: %s", path,
                 err == -EEXIST ? "a volume is named " MOUNT_NAME " or " CLIENT_HARD_NAME
                                  ", which are the names of the mount's own layers"
                                : "no memory");
    if (!is_refused && !err)
        return v;
    volfile_free(v);
    return NULL;
}

/* Returns the volfile's own top section, below the added layers. */
static const struct volfile_section *
volume_section(const struct volfile *v)
{
    const struct volfile_section *s = v->top->subvolumes[0];

    return strcmp(s->name, CLIENT_HARD_NAME) == 0 ? s->subvolumes[0] : s;
}

static int
set_option(struct volfile *v, const char *key, const char *value)
{
    return value ? volfile_override(v, MOUNT_NAME, key, value) : 0;
}

static const char *
source_of(const struct mount_options *o)
{
    if (o->source)
        return o->source;
    return o->volfile ? o->volfile : o->volume;
}

/* Returns the value of an option for a layer, or NULL: not given. Several texts are joined by commas in
 * `joined`; if they are too long, the layer refuses the cut text as unknown. */
static const char *
layer_value(const struct mount_options *o, const struct mount_option *row, char *joined, size_t size)
{
    const char *at = (const char *)o + row->at;
    const char *const *texts = (const char *const *)(const void *)at;
    size_t used = 0;

    switch (row->kind) {
    case OPTION_TEXT:
        return *texts;
    case OPTION_FLAG:
        return *(const bool *)at ? "on" : NULL;
    case OPTION_TEXTS:
        joined[0] = '\0';
        for (unsigned i = 0;
             i < *(const unsigned *)(const void *)((const char *)o + row->count_at) && used < size; i++)
            used += (size_t)snprintf(joined + used, size - used, "%s%s", used ? "," : "", texts[i]);
        return used ? joined : NULL;
    default:
        return NULL;
    }
}

/* Makes an option of the command line an option of the layers that its row names. */
static int
set_in_layers(struct volfile *v, const struct mount_option *row, const char *value)
{
    int err = row->to & TO_FUSE ? volfile_override(v, MOUNT_NAME, row->key, value) : 0;

    if (!err && row->to & TO_HARD)
        err = volfile_override(v, CLIENT_HARD_NAME, row->key, value);
    for (size_t i = 0; i < v->section_count && row->to & TO_BRICKS && !err; i++) {
        if (client_is_brick(&v->sections[i]))
            err = volfile_override(v, v->sections[i].name, row->key, value);
    }
    return err;
}

static int
set_mount_options(struct volfile *v, const struct mount_options *o, const char *mountpoint)
{
    int err = set_option(v, "mountpoint", mountpoint);

    err = err ? err : set_option(v, "source", source_of(o));
    for (const struct mount_option *row = mount_option_rows; row->name && !err; row++) {
        char joined[256];
        const char *value = row->to ? layer_value(o, row, joined, sizeof joined) : NULL;

        err = value ? set_in_layers(v, row, value) : 0;
    }
    return err;
}

/* Adds each PATTERN.KEY=VALUE, checked already. The first of several options is added last, and so wins. */
static int
set_xlator_options(struct volfile *v, const struct mount_options *o)
{
    int err = 0;

    for (unsigned i = o->xlator_option_count; i-- > 0 && !err;) {
        const char *text = o->xlator_options[i], *dot = strchr(text, '.'), *equals = strchr(dot, '=');
        char *pattern = strndup(text, (size_t)(dot - text));
        char *key = strndup(dot + 1, (size_t)(equals - dot - 1));

        err = pattern && key ? volfile_override(v, pattern, key, equals + 1) : -ENOMEM;
        free(pattern);
        free(key);
    }
    return err;
}

/* If bricks report the changes of other clients, the mount keeps attributes as long as md-cache would, unless
 * the user sets a timeout. Not with a subdirectory as the root, because bricks know such a root by another
 * gfid. */
static int
set_cache_invalidation(struct volfile *v, const struct mount_options *o)
{
    const char *timeout = "1";
    bool is_told = false;

    for (size_t i = 0; i < v->section_count; i++) {
        const struct volfile_section *s = &v->sections[i];

        if (strcmp(s->type, "performance/md-cache") == 0 && !o->subdir &&
            !option_bool(client_option_of(s, "cache-invalidation"), &is_told) &&
            *client_option_of(s, "md-cache-timeout"))
            timeout = client_option_of(s, "md-cache-timeout");
    }
    if (!is_told)
        return 0;
    int err = set_option(v, "cache-invalidation", "on");

    return err || o->attr_timeout ? err : set_option(v, "attribute-timeout", timeout);
}

struct volfile *
volume_parse(const struct mount_options *o, const char *mountpoint, const char *text, size_t len, char *error,
             size_t error_size)
{
    const char *path = o->volfile ? o->volfile : o->volume;
    struct volfile *v = parse_with_mount(path, text, len, error, error_size);

    if (!v)
        return NULL;
    const char *top = volume_section(v)->name;

    if (o->top && strcmp(o->top, top) != 0) {
        snprintf(error, error_size, "--volume-name %s: %s has %s on top, and nothing below it can be mounted",
                 o->top, path, top);
        volfile_free(v);
        return NULL;
    }
    if (!set_mount_options(v, o, mountpoint) && !set_xlator_options(v, o) && !set_cache_invalidation(v, o))
        return v;
    snprintf(error, error_size, "no memory");
    volfile_free(v);
    return NULL;
}

struct graph *
mount_graph_new(struct volfile *v, char *error, size_t error_size)
{
    return graph_new(mount_type_find, v, volume_section(v)->name, error, error_size);
}

struct graph *
mount_graph_new_next(struct volfile *v, char *error, size_t error_size)
{
    if (!set_option(v, "takes-over", "on"))
        return mount_graph_new(v, error, error_size);
    snprintf(error, error_size, "no memory");
    volfile_free(v);
    return NULL;
}
