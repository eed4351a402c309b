/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/volfile-text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "volumes/brick-host.h"
#include "volumes/volume-options.h"
#include "volumes/volume-task.h"

enum volfile_kind { FOR_BRICK, FOR_CLIENT, FOR_HEAL, FOR_REBALANCE };

/* State while one volfile is written. */
struct writing {
    FILE *f;
    const struct volume *v;
    enum volfile_kind kind;
    char *below; /* name of the layer written last; owned */
    bool is_short;
};

/* ---- words ----------------------------------------------------------------------------------- */

static bool
is_volfile_keyword(const char *text)
{
    static const char *const words[] = {"volume", "type", "option", "subvolumes", "subvolumeS", "end-volume"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(text, words[i]) == 0)
            return true;
    }
    return false;
}

/* Quotes a word that would end early or be read as a keyword. A volfile with a line break in quotes is
 * refused. */
static void
put_word(FILE *f, const char *text)
{
    if (*text && !is_volfile_keyword(text) && !strpbrk(text, " \t\r\n\"\\#'")) {
        fputs(text, f);
        return;
    }
    fputc('"', f);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', f);
        fputc(*text, f);
    }
    fputc('"', f);
}

static void
put_option(struct writing *w, const char *key, const char *value)
{
    fprintf(w->f, "    option %s ", key);
    put_word(w->f, value);
    fputc('\n', w->f);
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* Writes the options that the operator has set for this type of layer, and the options that are always
 * written. */
static void
put_set_options(struct writing *w, const char *type)
{
    const enum volume_side side = w->kind == FOR_BRICK ? SIDE_BRICK : SIDE_CLIENT;
    const struct volume_key *k;

    for (unsigned i = 0; (k = volume_keys(i)); i++) {
        const char *set =
            k->side == side && strcmp(k->layer, type) == 0 ? volume_option_of(w->v, k->key) : NULL;

        if (set)
            put_option(w, k->check.key, set);
        else if (k->side == side && k->is_written && strcmp(k->layer, type) == 0)
            put_option(w, k->check.key, k->check.text_default);
    }
}

static void
begin_named(struct writing *w, const char *name, const char *type)
{
    fprintf(w->f, "volume %s\n    type %s\n", name, type);
    put_set_options(w, type);
}

/* Ends a layer, on top of the previous layer, or of `subvolumes` if not NULL. */
static void
end_named(struct writing *w, const char *name, const char *subvolumes)
{
    const char *below = subvolumes ? subvolumes : w->below;

    if (below)
        fprintf(w->f, "    subvolumes %s\n", below);
    fputs("end-volume\n\n", w->f);
    free(w->below);
    w->below = strdup(name);
    w->is_short |= !w->below;
}

/* Builds the name of a layer from the volume and the last part of the layer's type. The result is `name`. */
static const char *
layer_name(const struct writing *w, const char *type, char name[VOLUME_NAME_MAX + 64])
{
    snprintf(name, VOLUME_NAME_MAX + 64, "%s-%s", w->v->name, strrchr(type, '/') + 1);
    return name;
}

static void
plain_layer(struct writing *w, const char *type)
{
    char name[VOLUME_NAME_MAX + 64];

    layer_name(w, type, name);
    begin_named(w, name, type);
    end_named(w, name, NULL);
}

static char *
finish_text(struct writing *w, char **text)
{
    bool is_bad = w->is_short || ferror(w->f) != 0;

    is_bad |= fclose(w->f) != 0;
    free(w->below);
    if (!is_bad)
        return *text;
    free(*text);
    return NULL;
}

/* ---- a brick --------------------------------------------------------------------------------- */

struct brick_file {
    struct writing w;
    const char *path;
    unsigned shared;
};

static void
posix_layer(struct brick_file *b)
{
    char number[16];

    snprintf(number, sizeof number, "%u", b->shared);
    put_option(&b->w, "directory", b->path);
    put_option(&b->w, "volume-id", GFID(&b->w.v->id));
    put_option(&b->w, "shared-brick-count", number);
    if (volume_option_bool(b->w.v, "features.quota") || volume_option_bool(b->w.v, "features.trash"))
        put_option(&b->w, "update-link-count-parent", "on");
}

static void
trash_layer(struct brick_file *b)
{
    put_option(&b->w, "brick-path", b->path);
}

static void
changelog_layer(struct brick_file *b)
{
    char dir[VOLUME_BRICK_PATH_MAX + 64];

    snprintf(dir, sizeof dir, "%s/.glusterfs/changelogs", b->path);
    put_option(&b->w, "changelog-brick", b->path);
    put_option(&b->w, "changelog-dir", dir);
    put_option(&b->w, "changelog-notification", "off");
}

static void
bitrot_layer(struct brick_file *b)
{
    put_option(&b->w, "export", b->path);
}

static void
marker_layer(struct brick_file *b)
{
    put_option(&b->w, "volume-uuid", GFID(&b->w.v->id));
    put_option(&b->w, "quota-version", "0");
}

static void
index_layer(struct brick_file *b)
{
    char text[VOLUME_BRICK_PATH_MAX + 64];

    snprintf(text, sizeof text, "%s/.glusterfs/indices", b->path);
    put_option(&b->w, "index-base", text);
    if (b->w.v->redundancy) {
        put_option(&b->w, "xattrop64-watchlist", "trusted.ec.dirty");
        return;
    }
    put_option(&b->w, "xattrop-dirty-watchlist", "trusted.afr.dirty");
    snprintf(text, sizeof text, "trusted.afr.%s-", b->w.v->name);
    put_option(&b->w, "xattrop-pending-watchlist", text);
}

static void
simple_quota_layer(struct brick_file *b)
{
    put_option(&b->w, "pass-through", volume_counts_usage(b->w.v) ? "off" : "on");
}

static void
quota_layer(struct brick_file *b)
{
    put_option(&b->w, "volume-uuid", b->w.v->name);
}

/* From bottom to top. */
static const struct {
    const char *type;
    void (*fill)(struct brick_file *b); /* writes options that are no options of the volume; NULL: none */
    /* option of the volume that enables the layer; NULL: always present */
    const char *needs;
    bool for_arbiter;                   /* only present in an arbiter brick */
} brick_layers[] = {
    {"storage/posix", posix_layer, NULL, false},
    {"features/arbiter", NULL, NULL, true},
    {"features/trash", trash_layer, NULL, false},
    {"features/changelog", changelog_layer, NULL, false},
    {"features/bitrot-stub", bitrot_layer, NULL, false},
    {"features/access-control", NULL, "features.acl", false},
    {"features/locks", NULL, NULL, false},
    {"features/simple-quota", simple_quota_layer, NULL, false},
    {"features/worm", NULL, NULL, false},
    {"features/read-only", NULL, NULL, false},
    {"features/leases", NULL, NULL, false},
    {"features/upcall", NULL, NULL, false},
    {"performance/io-threads", NULL, NULL, false},
    {"features/selinux", NULL, NULL, false},
    {"features/marker", marker_layer, NULL, false},
    {"features/barrier", NULL, NULL, false},
    {"features/index", index_layer, NULL, false},
    {"features/quota", quota_layer, NULL, false},
};

static void
server_layer(struct brick_file *b)
{
    const struct volume *v = b->w.v;
    const char *reject = volume_option_of(v, "auth.reject");
    const char *names = volume_option_of(v, "auth.ssl-allow");
    char key[VOLUME_BRICK_PATH_MAX + 64], name[VOLUME_NAME_MAX + 64];

    begin_named(&b->w, layer_name(&b->w, "protocol/server", name), "protocol/server");
    put_option(&b->w, "transport-type", "tcp");
    put_option(&b->w, "transport.address-family", "inet");
    put_option(&b->w, "auth-path", b->path);
    snprintf(key, sizeof key, "auth.login.%s.allow", b->path);
    put_option(&b->w, key, v->username);
    snprintf(key, sizeof key, "auth.login.%s.password", v->username);
    put_option(&b->w, key, v->password);
    snprintf(key, sizeof key, "auth.addr.%s.allow", b->path);
    put_option(&b->w, key, volume_option_value(v, "auth.allow"));
    snprintf(key, sizeof key, "auth.addr.%s.reject", b->path);
    if (reject)
        put_option(&b->w, key, reject);
    snprintf(key, sizeof key, "auth.login.%s.ssl-allow", b->path);
    if (names)
        put_option(&b->w, key, names);
    end_named(&b->w, name, NULL);
}

char *
volfile_text_brick(const struct volume *v, unsigned brick, unsigned shared)
{
    char *text = NULL, name[VOLUME_NAME_MAX + 64];
    size_t size = 0;
    struct brick_file b = {{open_memstream(&text, &size), v, FOR_BRICK, NULL, false},
                           v->bricks[brick].path, shared};

    if (!b.w.f)
        return NULL;
    for (size_t i = 0; i < sizeof brick_layers / sizeof brick_layers[0]; i++) {
        const char *type = brick_layers[i].type;

        if (brick_layers[i].needs && !volume_option_bool(v, brick_layers[i].needs))
            continue;
        if (brick_layers[i].for_arbiter && !volume_is_arbiter(v, brick))
            continue;
        begin_named(&b.w, layer_name(&b.w, type, name), type);
        if (brick_layers[i].fill)
            brick_layers[i].fill(&b);
        end_named(&b.w, name, NULL);
    }
    begin_named(&b.w, b.path, "debug/io-stats");
    put_option(&b.w, "unique-id", b.path);
    put_option(&b.w, "volume-id", GFID(&v->id));
    end_named(&b.w, b.path, NULL);
    server_layer(&b);
    return finish_text(&b.w, &text);
}

/* ---- a client, the self-heal daemon ---------------------------------------------------------- */

struct client_file {
    struct writing w;
    const struct volfile_place *place;
    uint16_t port; /* 0: the client asks for the port */
};

static void
client_layer(struct client_file *c, unsigned brick)
{
    const struct volume *v = c->w.v;
    const struct volume_brick *b = &v->bricks[brick];
    bool is_own = c->w.kind == FOR_HEAL || c->w.kind == FOR_REBALANCE;
    bool is_here = !*b->host || (is_own && brick_host_is_here(b));
    char name[VOLUME_NAME_MAX + 64], port[16];

    free(c->w.below);
    c->w.below = NULL;
    snprintf(name, sizeof name, "%s-client-%u", v->name, b->id);
    begin_named(&c->w, name, "protocol/client");
    put_option(&c->w, "remote-host", is_here ? c->place->host : b->host);
    put_option(&c->w, "remote-subvolume", b->path);
    put_option(&c->w, "transport-type", "tcp");
    put_option(&c->w, "transport.address-family", is_here && c->place->is_ipv6 ? "inet6" : "inet");
    if (c->port && is_here) {
        snprintf(port, sizeof port, "%u", c->port);
        put_option(&c->w, "remote-port", port);
    }
    if (is_own) {
        put_option(&c->w, "username", v->username);
        put_option(&c->w, "password", v->password);
    } else {
        put_option(&c->w, "send-gids", volume_option_bool(v, "server.manage-gids") ? "false" : "true");
    }
    end_named(&c->w, name, NULL);
}

static char *
client_names(const struct volume *v, unsigned first, unsigned count, const char *between)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    if (!f)
        return NULL;
    for (unsigned i = 0; i < count; i++)
        fprintf(f, "%s%s-client-%u", i ? between : "", v->name, v->bricks[first + i].id);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

static void
put_heal_throttle(struct writing *w)
{
    put_option(w, "heal-throttle", volume_option_bool(w->v, "kiln.heal-throttle") ? "on" : "off");
}

static void
put_heal_options(struct writing *w)
{
    static const char *const on[][2] = {{"iam-self-heal-daemon", "yes"}, {"self-heal-daemon", "enable"},
                                        {"data-self-heal", "on"},        {"metadata-self-heal", "on"},
                                        {"entry-self-heal", "on"}};

    for (size_t i = 0; i < sizeof on / sizeof on[0]; i++)
        put_option(w, on[i][0], on[i][1]);
    put_heal_throttle(w);
}

static void
replicate_layer(struct client_file *c, unsigned set)
{
    const struct volume *v = c->w.v;
    char *pending = client_names(v, set * v->replica, v->replica, ",");
    char *children = client_names(v, set * v->replica, v->replica, " ");
    char name[VOLUME_NAME_MAX + 64];

    snprintf(name, sizeof name, "%s-replicate-%u", v->name, set);
    if (!pending || !children) {
        c->w.is_short = true;
    } else {
        begin_named(&c->w, name, "cluster/replicate");
        put_option(&c->w, "volume-id", GFID(&v->id));
        put_option(&c->w, "afr-pending-xattr", pending);
        if (v->has_arbiter)
            put_option(&c->w, "arbiter-count", "1");
        if (c->w.kind == FOR_HEAL)
            put_heal_options(&c->w);
        else if (!volume_option_bool(v, "cluster.self-heal-daemon"))
            put_option(&c->w, "self-heal-daemon", "off");
        end_named(&c->w, name, children);
    }
    free(pending);
    free(children);
}

static void
disperse_layer(struct client_file *c, unsigned set)
{
    const struct volume *v = c->w.v;
    char *children = client_names(v, set * v->replica, v->replica, " ");
    char name[VOLUME_NAME_MAX + 64], redundancy[16];

    snprintf(name, sizeof name, "%s-disperse-%u", v->name, set);
    snprintf(redundancy, sizeof redundancy, "%u", v->redundancy);
    if (!children) {
        c->w.is_short = true;
        return;
    }
    begin_named(&c->w, name, "cluster/disperse");
    put_option(&c->w, "redundancy", redundancy);
    if (c->w.kind == FOR_HEAL) {
        put_option(&c->w, "iam-self-heal-daemon", "yes");
        put_option(&c->w, "self-heal-daemon",
                   volume_option_bool(v, "cluster.self-heal-daemon") ? "on" : "off");
        put_option(&c->w, "heal-timeout", volume_option_value(v, "cluster.heal-timeout"));
        put_heal_throttle(&c->w);
    }
    end_named(&c->w, name, children);
    free(children);
}

static void
set_layer(struct client_file *c, unsigned set)
{
    if (c->w.v->redundancy)
        disperse_layer(c, set);
    else
        replicate_layer(c, set);
}

/* Returns the word for a set in the names of layers. */
static const char *
set_word(const struct volume *v)
{
    return v->redundancy ? "disperse" : v->replica > 1 ? "replicate" : "client";
}

/* Writes the protocol/client layers and, for a replicated volume, the replicate layers above. Returns the
 * names of the uppermost ones; the caller frees them. */
static char *
lower_layers(struct client_file *c)
{
    const struct volume *v = c->w.v;
    const unsigned sets = v->brick_count / v->replica;
    char *names = NULL;
    size_t size = 0;

    for (unsigned i = 0; i < v->brick_count; i++)
        client_layer(c, i);
    for (unsigned i = 0; i < sets && v->replica > 1; i++)
        set_layer(c, i);
    FILE *f = open_memstream(&names, &size);
    if (!f)
        return NULL;
    for (unsigned i = 0; i < sets; i++)
        fprintf(f, "%s%s-%s-%u", i ? " " : "", v->name, set_word(v),
                v->replica > 1 ? i : v->bricks[i].id);
    if (fclose(f) == 0)
        return names;
    free(names);
    return NULL;
}

/* Layers above distribute, from bottom to top. Each is present if its option is on. */
static const struct {
    const char *type, *switched_by;
} upper_layers[] = {
    {"features/shard", "features.shard"},
    {"features/utime", "features.ctime"},
    {"performance/write-behind", "performance.write-behind"},
    {"performance/read-ahead", "performance.read-ahead"},
    {"performance/readdir-ahead", "performance.readdir-ahead"},
    {"performance/io-cache", "performance.io-cache"},
    {"performance/open-behind", "performance.open-behind"},
    {"performance/quick-read", "performance.quick-read"},
    {"performance/md-cache", "performance.stat-prefetch"},
    {"performance/nl-cache", "performance.nl-cache"},
    {"performance/io-threads", "performance.client-io-threads"},
};

/* Names the subvolumes that the volume is to lose. */
static void
put_leaving(struct client_file *c)
{
    const struct volume *v = c->w.v;
    char *names = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&names, &size);

    c->w.is_short |= !f;
    for (unsigned i = 0; f && i < v->brick_count; i += v->replica) {
        if (volume_task_leaves(v, i))
            fprintf(f, "%s%s-%s-%u", ftell(f) ? " " : "", v->name, set_word(v),
                    v->replica > 1 ? i / v->replica : v->bricks[i].id);
    }
    if (f && fclose(f) != 0)
        c->w.is_short = true;
    else if (f && *names)
        put_option(&c->w, "decommissioned-bricks", names);
    free(names);
}

static void
distribute_layer(struct client_file *c, const char *subvolumes)
{
    char name[VOLUME_NAME_MAX + 64];

    snprintf(name, sizeof name, "%s-dht", c->w.v->name);
    begin_named(&c->w, name, "cluster/distribute");
    put_leaving(c);
    end_named(&c->w, name, subvolumes);
}

static void
upper(struct client_file *c, const char *subvolumes)
{
    const struct volume *v = c->w.v;

    distribute_layer(c, subvolumes);
    for (size_t i = 0; i < sizeof upper_layers / sizeof upper_layers[0]; i++) {
        if (volume_option_bool(v, upper_layers[i].switched_by))
            plain_layer(&c->w, upper_layers[i].type);
    }
    begin_named(&c->w, v->name, "debug/io-stats");
    end_named(&c->w, v->name, NULL);
}

static char *
text_of_volume(const struct volume *v, enum volfile_kind kind, const struct volfile_place *place,
               uint16_t port, void (*put_top)(struct client_file *c, const char *subvolumes))
{
    char *text = NULL;
    size_t size = 0;
    struct client_file c = {{open_memstream(&text, &size), v, kind, NULL, false}, place, port};

    if (!c.w.f)
        return NULL;
    char *subvolumes = lower_layers(&c);
    if (subvolumes)
        put_top(&c, subvolumes);
    else
        c.w.is_short = true;
    free(subvolumes);
    return finish_text(&c.w, &text);
}

char *
volfile_text_client(const struct volume *v, const struct volfile_place *place)
{
    return text_of_volume(v, FOR_CLIENT, place, 0, upper);
}

char *
volfile_text_rebalance(const struct volume *v, uint16_t port)
{
    static const struct volfile_place place = {"127.0.0.1", false};

    return text_of_volume(v, FOR_REBALANCE, &place, port, distribute_layer);
}

uint32_t
volfile_op_version(const struct volume *v)
{
    return v->redundancy ? 30900 : v->replica > 1 ? 30800 : 2;
}

char *
volfile_text_heal(const struct volume *v, uint16_t port, unsigned set)
{
    static const struct volfile_place place = {"127.0.0.1", false};
    char *text = NULL;
    size_t size = 0;
    struct client_file c = {{open_memstream(&text, &size), v, FOR_HEAL, NULL, false}, &place, port};

    if (!c.w.f)
        return NULL;
    for (unsigned i = 0; i < v->replica; i++)
        client_layer(&c, set * v->replica + i);
    set_layer(&c, set);
    return finish_text(&c.w, &text);
}
