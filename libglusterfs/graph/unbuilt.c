/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "graph/unbuilt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/read-section.h"
#include "graph/graph.h"
#include "log/log.h"

#define NO_RECORD "changes are not recorded, so geo-replication and glusterfind miss them"
#define NO_MARKS "changes are not marked: geo-replication does not find them"
#define NO_USAGE "usage is not counted, and no limit of a quota is kept"
#define NO_MANDATORY "locks are advisory: a program that takes no lock can read and write a locked file"
#define NO_REVOCATION "a client keeps its locks for as long as it is connected"

static const struct unbuilt_feature features[] = {
    {"features/changelog", "changelog", "off", NO_RECORD},
    {"features/changelog", "changelog-barrier", "off", NO_RECORD},
    {"features/bitrot-stub", "bitrot", "off", "files are not signed: the scrubber finds no damage"},
    {"features/leases", "leases", "off",
     "clients get no leases and no notice when another client changes a file"},
    {"features/marker", "xtime", "off", NO_MARKS},
    {"features/marker", "gsync-force-xtime", "off", NO_MARKS},
    {"features/marker", "quota", "off", NO_USAGE},
    {"features/marker", "inode-quota", "off", NO_USAGE},
    {"features/quota", "server-quota", "off", "no limit is kept: users can fill the brick"},
    {"features/simple-quota", "use-backend", "off", "usage is counted by the layer, not by the file system"},
    {"features/sdfs", "pass-through", "on", "changes of names in one folder are not serialised"},
    {"features/namespace", "tag-namespaces", "off", "calls do not carry the top folder of their file"},
    {"features/locks", "mandatory-locking", "off", NO_MANDATORY},
    {"features/locks", "enforce-mandatory-lock", "off", NO_MANDATORY},
    {"features/locks", "monkey-unlocking", "off", "no lock is taken away at random"},
    {"features/locks", "revocation-secs", "0", NO_REVOCATION},
    {"features/locks", "revocation-clear-all", "off", NO_REVOCATION},
    {"features/locks", "revocation-max-blocked", "0", NO_REVOCATION},
    {"features/locks", "trace", "off", "locks are not logged; a statedump lists them"},
};
enum { FEATURES = sizeof features / sizeof features[0] };

static bool is_refused;

void
graph_refuse_unbuilt(void)
{
    is_refused = true;
}

bool
graph_refuses_unbuilt(void)
{
    return is_refused;
}

const struct unbuilt_feature *
unbuilt_find(const char *layer, const char *option)
{
    for (unsigned i = 0; i < FEATURES; i++) {
        if (strcmp(features[i].layer, layer) == 0 && strcmp(features[i].option, option) == 0)
            return &features[i];
    }
    return NULL;
}

/* Several spellings of "off" are one value. */
bool
unbuilt_turns_on(const struct unbuilt_feature *f, const char *value)
{
    bool given, off;

    if (!value || strcasecmp(value, f->off) == 0)
        return false;
    return option_bool(value, &given) || option_bool(f->off, &off) || given != off;
}

/* ---- features of a section ------------------------------------------------------------------- */

/* The last value that the volfile gives the key; NULL: none. */
static const struct option_value *
given_last(const struct volfile_section *s, const char *key)
{
    const struct option_value *last = NULL;

    for (size_t i = 0; i < s->option_count; i++) {
        if (strcmp(s->options[i].key, key) == 0)
            last = &s->options[i];
    }
    return last;
}

unsigned
unbuilt_each(const struct xlator_type *type, const struct volfile_section *s,
             void (*fn)(const char *what, void *arg), void *arg)
{
    unsigned count = 0;

    for (unsigned i = 0; i < FEATURES; i++) {
        const struct unbuilt_feature *f = &features[i];
        const struct option_value *v =
            strcmp(f->layer, type->name) == 0 ? given_last(s, f->option) : NULL;
        char what[512];

        if (!v || !unbuilt_turns_on(f, v->value))
            continue;
        snprintf(what, sizeof what,
                 "line %u: option %s %s: this feature is not built (only '%s' is accepted)", v->line, v->key,
                 v->value, f->off);
        fn(what, arg);
        count++;
    }
    return count;
}

struct first {
    char *error;
    size_t size;
};

static void
keep_first(const char *what, void *arg)
{
    struct first *f = arg;

    if (f->size)
        snprintf(f->error, f->size, "%s", what);
    f->size = 0;
}

int
unbuilt_check(const struct xlator_type *type, const struct volfile_section *s, char *error, size_t size)
{
    struct first f = {error, size};

    return unbuilt_each(type, s, keep_first, &f) ? -EOPNOTSUPP : 0;
}

static void
log_unbuilt(const struct graph *g, const struct xlator *xl, const char *name, const struct unbuilt_feature *f,
     const char *value)
{
    log_event(LOG_ERROR, xl, "feature-not-built",
              "brick %s serves without a feature that volume %s (%s) asks for: option %s %s is not built: %s",
              graph_brick_name(g->volfile), name, f->layer, f->option, value, f->without);
}

void
unbuilt_tell(const struct graph *g, const struct xlator_type *type, const struct volfile_section *s)
{
    for (unsigned i = 0; i < FEATURES; i++) {
        const struct unbuilt_feature *f = &features[i];
        const struct option_value *v =
            strcmp(f->layer, type->name) == 0 ? given_last(s, f->option) : NULL;

        if (v && unbuilt_turns_on(f, v->value))
            log_unbuilt(g, NULL, s->name, f, v->value);
    }
}

/* ---- features of a layer --------------------------------------------------------------------- */

/* NULL: the conf (NULL: none) does not ask for the feature. */
static const char *
value_asked(const struct xlator_type *type, const struct unbuilt_feature *f, const void *conf)
{
    const struct option *o = type->options;

    if (strcmp(f->layer, type->name) != 0 || !conf)
        return NULL;
    while (o->key && strcmp(o->key, f->option) != 0)
        o++;
    if (!o->key || o->type != OPTION_STR)
        return NULL;
    const char *value = *(char *const *)(const void *)((const char *)conf + o->offset);
    return unbuilt_turns_on(f, value) ? value : NULL;
}

void
unbuilt_note(const struct xlator *xl, const void *old)
{
    for (unsigned i = 0; i < FEATURES && !is_refused; i++) {
        const struct unbuilt_feature *f = &features[i];
        const char *value = value_asked(xl->type, f, xlator_conf(xl));

        if (value && !value_asked(xl->type, f, old))
            log_unbuilt(xl->graph, xl, xl->name, f, value);
    }
}

void
graph_each_unbuilt(const struct graph *g, void (*fn)(const struct unbuilt_feature *f, void *arg), void *arg)
{
    read_section_begin();
    for (unsigned i = 0; i < g->layer_count; i++) {
        const struct xlator *xl = &g->layers[i];

        for (unsigned k = 0; k < FEATURES && !is_refused; k++) {
            if (value_asked(xl->type, &features[k], xlator_conf(xl)))
                fn(&features[k], arg);
        }
    }
    read_section_end();
}
