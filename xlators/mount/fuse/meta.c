/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* meta: the read-only folder .meta in the root of a mount, which is in no listing: facts about the mount for
 * scripts, under the names of the stock client.
 *
 *      .meta/version, cmdline
 *      .meta/logging/loglevel
 *      .meta/graphs/active -> NAME
 *      .meta/graphs/NAME/volfile, top -> the topmost layer
 *      .meta/graphs/NAME/LAYER/type, name, private (as in a statedump), options/KEY,
 *                              subvolumes/0 -> ../../LAYER
 *      .meta/root/...          the same for the layer mount/fuse
 *
 * Requests for .meta are answered here, by the thread that has read the request, before libfuse and without
 * asking a brick. No state is kept for the kernel: an object's number encodes the object, and is odd,
 * unlike any node's address. A text is generated for each READ. Only root can read volfile, user name and
 * password.
 *
 * thread: the device is not read during a switch of graphs, and before the graph is stopped; so the serving
 * graph stays while a request is answered, without a pin or a lock. Options may change meanwhile: older
 * numbers are then stale (`meta_epoch`). */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/read-section.h"
#include "log/dump.h"
#include "log/log.h"
#include "xlators/mount/fuse/fuse-internal.h"

#define META_NAME ".meta"

enum kind {
    META_ROOT,
    META_VERSION,
    META_CMDLINE,
    META_LOGGING,
    META_LOGLEVEL,
    META_GRAPHS,
    META_ACTIVE,
    META_GRAPH,
    META_VOLFILE,
    META_TOP,
    META_LAYER,
    META_TYPE,
    META_LAYER_NAME,
    META_PRIVATE,
    META_OPTIONS,
    META_OPTION,
    META_SUBVOLUMES,
    META_SUBVOLUME,
};

/* An object of .meta, decoded from the object's number. */
struct meta {
    enum kind kind;
    unsigned layer, item; /* index of the graph's layer; index of the layer's option or child */
};

struct meta_entry {
    struct meta what;
    char name[256];
};

static const struct fixed {
    enum kind parent, kind;
    const char *name;
} fixed[] = {
    {META_ROOT, META_VERSION, "version"},       {META_ROOT, META_CMDLINE, "cmdline"},
    {META_ROOT, META_LOGGING, "logging"},       {META_ROOT, META_GRAPHS, "graphs"},
    {META_ROOT, META_LAYER, "root"},            {META_LOGGING, META_LOGLEVEL, "loglevel"},
    {META_GRAPHS, META_ACTIVE, "active"},       {META_GRAPH, META_VOLFILE, "volfile"},
    {META_GRAPH, META_TOP, "top"},
    {META_LAYER, META_TYPE, "type"},            {META_LAYER, META_LAYER_NAME, "name"},
    {META_LAYER, META_PRIVATE, "private"},      {META_LAYER, META_OPTIONS, "options"},
    {META_LAYER, META_SUBVOLUMES, "subvolumes"},
};

/* ---- numbers --------------------------------------------------------------------------------- */

/* Bit 0 is 1 (odd). Then 5 bits for the kind, 14 for the layer, 20 for the item, 24 for the epoch. */
static uint64_t
meta_number(const struct fuse_mount *m, struct meta what)
{
    uint64_t epoch = atomic_load(&m->meta_epoch) & 0xffffff;

    return 1 | (uint64_t)(what.kind + 1) << 1 | (uint64_t)what.layer << 6 | (uint64_t)what.item << 20 |
           epoch << 40;
}

static bool
meta_of_number(const struct fuse_mount *m, uint64_t number, struct meta *out)
{
    *out = (struct meta){.kind = (enum kind)((number >> 1 & 0x1f) - 1),
                         .layer = number >> 6 & 0x3fff,
                         .item = number >> 20 & 0xfffff};
    return out->kind <= META_SUBVOLUME && out->layer < m->xl->graph->layer_count &&
           (out->kind == META_ROOT || number >> 40 == (atomic_load(&m->meta_epoch) & 0xffffff));
}

static mode_t
meta_mode(struct meta what, const char *option)
{
    switch (what.kind) {
    case META_ROOT:
    case META_LOGGING:
    case META_GRAPHS:
    case META_GRAPH:
    case META_LAYER:
    case META_OPTIONS:
    case META_SUBVOLUMES:
        return S_IFDIR | 0555;
    case META_ACTIVE:
    case META_TOP:
    case META_SUBVOLUME:
        return S_IFLNK | 0777;
    case META_VOLFILE:
        return S_IFREG | 0400;
    default:
        return S_IFREG | (strcmp(option, "username") == 0 || strcmp(option, "password") == 0 ? 0400 : 0444);
    }
}

/* ---- options --------------------------------------------------------------------------------- */

/* The options of a newer volfile than the graph's: a graph that has taken new options keeps the names and
 * layers of the first volfile, but not the text of the new volfile. RCU. */
struct meta_options {
    size_t section_count;
    /* in the order of the graph's volfile; followed by options and texts */
    struct volfile_section sections[];
};

static size_t
options_bytes(const struct volfile *v)
{
    size_t bytes = sizeof(struct meta_options) + v->section_count * sizeof *v->sections;

    for (size_t i = 0; i < v->section_count; i++) {
        const struct volfile_section *s = &v->sections[i];

        bytes += s->option_count * sizeof *s->options;
        for (size_t k = 0; k < s->option_count; k++)
            bytes += strlen(s->options[k].key) + strlen(s->options[k].value) + 2;
    }
    return bytes;
}

static char *
put_option_text(char **at, const char *text)
{
    char *start = *at;

    *at = stpcpy(start, text) + 1;
    return start;
}

/* Allocates sections, options and texts in one block. */
static struct meta_options *
options_copy(const struct volfile *v)
{
    struct meta_options *o = malloc(options_bytes(v));
    size_t count = 0;

    if (!o)
        return NULL;
    o->section_count = v->section_count;
    struct option_value *options = (void *)(o->sections + v->section_count);
    for (size_t i = 0; i < v->section_count; i++)
        count += v->sections[i].option_count;
    char *text = (void *)(options + count);

    for (size_t i = 0; i < v->section_count; i++) {
        const struct volfile_section *s = &v->sections[i];

        o->sections[i] = (struct volfile_section){.options = options, .option_count = s->option_count};
        for (size_t k = 0; k < s->option_count; k++, options++) {
            options->key = put_option_text(&text, s->options[k].key);
            options->value = put_option_text(&text, s->options[k].value);
        }
    }
    return o;
}

static void
set_options(struct fuse_mount *m, struct meta_options *fresh)
{
    struct meta_options *old = __atomic_exchange_n(&m->meta_options, fresh, __ATOMIC_ACQ_REL);

    atomic_fetch_add(&m->meta_epoch, 1);
    if (old)
        read_sections_wait();
    free(old);
}

void
meta_reconfigured(struct fuse_mount *m, const struct volfile *fresh)
{
    struct meta_options *o = fresh ? options_copy(fresh) : NULL;

    if (o)
        set_options(m, o);
    else
        log_event(LOG_ERROR, m->xl, "fuse-meta-options",
                  "no memory: " META_NAME " shows the options of before");
}

void
meta_forget(struct fuse_mount *m)
{
    set_options(m, NULL);
}

/* Returns the options of a section of the graph's volfile. In a read section. */
static const struct volfile_section *
options_of(const struct fuse_mount *m, size_t i)
{
    const struct meta_options *o = __atomic_load_n(&m->meta_options, __ATOMIC_ACQUIRE);

    return o && i < o->section_count ? &o->sections[i] : &m->xl->graph->volfile->sections[i];
}

/* NULL: the layer is in no volfile. */
static const struct volfile_section *
volfile_section_of(const struct fuse_mount *m, const struct xlator *xl)
{
    const struct volfile *v = xl->graph->volfile;

    for (size_t i = 0; i < v->section_count; i++) {
        if (strcmp(v->sections[i].name, xl->name) == 0)
            return options_of(m, i);
    }
    return NULL;
}

static const struct option_value *
option_at(const struct fuse_mount *m, const struct xlator *xl, unsigned i)
{
    const struct volfile_section *s = volfile_section_of(m, xl);

    return s && i < s->option_count ? &s->options[i] : NULL;
}

/* Returns whether the key is given again later: a repeated key is listed once, with the last value. */
static bool
is_repeated_key(const struct fuse_mount *m, const struct xlator *xl, unsigned i)
{
    const struct volfile_section *s = volfile_section_of(m, xl);
    bool again = false;

    for (size_t k = i + 1; k < s->option_count; k++)
        again |= strcmp(s->options[k].key, s->options[i].key) == 0;
    return again;
}

/* ---- entries of folders ---------------------------------------------------------------------- */

static void
graph_name(const struct graph *g, char *out, size_t size)
{
    snprintf(out, size, "%s-%d", g->top->children[0]->name, getpid());
}

/* Returns entry `i` of the entries that are not fixed. An empty name: an entry that is not listed. False: no
 * more entries. */
static bool
moving_entry(const struct fuse_mount *m, struct meta dir, unsigned i, struct meta_entry *e)
{
    const struct graph *g = m->xl->graph;
    const struct xlator *xl = &g->layers[dir.layer];
    const struct option_value *option;

    e->name[0] = '\0';
    switch (dir.kind) {
    case META_GRAPHS:
        e->what = (struct meta){.kind = META_GRAPH};
        graph_name(g, e->name, sizeof e->name);
        return i == 0;
    case META_GRAPH: /* layer 0 is mount/fuse */
        if (i + 1 >= g->layer_count)
            return false;
        e->what = (struct meta){.kind = META_LAYER, .layer = i + 1};
        snprintf(e->name, sizeof e->name, "%s", g->layers[i + 1].name);
        return true;
    case META_OPTIONS:
        if (!(option = option_at(m, xl, i)))
            return false;
        e->what = (struct meta){.kind = META_OPTION, .layer = dir.layer, .item = i};
        if (!is_repeated_key(m, xl, i))
            snprintf(e->name, sizeof e->name, "%s", option->key);
        return true;
    case META_SUBVOLUMES:
        if (i >= xl->child_count)
            return false;
        e->what = (struct meta){.kind = META_SUBVOLUME, .layer = dir.layer, .item = i};
        snprintf(e->name, sizeof e->name, "%u", i);
        return true;
    default:
        return false;
    }
}

/* Returns entry `i` of a folder; an empty name: an entry that is not listed. False: no more entries. */
static bool
entry_at(const struct fuse_mount *m, struct meta dir, unsigned i, struct meta_entry *e)
{
    const unsigned count = sizeof fixed / sizeof fixed[0];

    if (i >= count)
        return moving_entry(m, dir, i - count, e);
    e->what = (struct meta){.kind = fixed[i].kind, .layer = dir.layer};
    snprintf(e->name, sizeof e->name, "%s", fixed[i].parent == dir.kind ? fixed[i].name : "");
    return true;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void
print_cmdline(FILE *out)
{
    char text[4096];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text);

    if (fd >= 0)
        close(fd);
    fputs("{ \n  \"Cmdlinestr\": \"", out);
    for (ssize_t i = 0; i < n - 1; i++) {
        unsigned char c = text[i] ? (unsigned char)text[i] : ' ';

        if (c == '"' || c == '\\')
            fputc('\\', out);
        if (c < ' ')
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputs("\"\n}", out);
}

static void
print_volfile(const struct fuse_mount *m, FILE *out)
{
    const struct volfile *v = m->xl->graph->volfile;

    for (size_t i = 0; i < v->section_count; i++) {
        const struct volfile_section *s = &v->sections[i], *o = options_of(m, i);

        fprintf(out, "volume %s\n    type %s\n", s->name, s->type);
        for (size_t k = 0; k < o->option_count; k++)
            fprintf(out, "    option %s %s\n", o->options[k].key, o->options[k].value);
        for (size_t k = 0; k < s->subvolume_count; k++)
            fprintf(out, "%s %s", k ? "" : "    subvolumes", s->subvolumes[k]->name);
        fprintf(out, "%send-volume\n\n", s->subvolume_count ? "\n" : "");
    }
}

/* Prints a statedump's lines as `key = value`, which scripts expect here. */
static void
print_spaced(char *lines, FILE *out)
{
    char *line;

    while ((line = strsep(&lines, "\n"))) {
        char *equals = *line == '[' ? NULL : strchr(line, '=');

        if (equals)
            fprintf(out, "%.*s = %s\n", (int)(equals - line), line, equals + 1);
        else if (*line)
            fprintf(out, "%s\n", line);
    }
}

static void
print_private(struct xlator *xl, FILE *out)
{
    char *lines = NULL;
    size_t len;
    FILE *file = xlator_is_on(xl) && xl->type->dump ? open_memstream(&lines, &len) : NULL;
    struct dump d = {.file = file};

    if (!file)
        return;
    dump_section(&d, "%s.%s", xl->type->name, xl->name);
    xl->type->dump(xl, &d);
    if (fclose(file) == 0)
        print_spaced(lines, out);
    free(lines);
}

static void
print_text(const struct fuse_mount *m, struct meta what, FILE *out)
{
    struct graph *g = m->xl->graph;
    struct xlator *xl = &g->layers[what.layer];
    const struct option_value *option;
    char name[256];

    switch (what.kind) {
    case META_VERSION:
        fprintf(out, "{ \n  \"Package Version\": \"%s\"\n}", PACKAGE_VERSION);
        break;
    case META_CMDLINE:
        print_cmdline(out);
        break;
    case META_LOGLEVEL:
        fprintf(out, "%d\n", log_level_of(NULL));
        break;
    case META_VOLFILE:
        print_volfile(m, out);
        break;
    case META_TYPE:
        fprintf(out, "%s\n", xl->type->name);
        break;
    case META_LAYER_NAME:
        fprintf(out, "%s\n", xl->name);
        break;
    case META_PRIVATE:
        print_private(xl, out);
        break;
    case META_OPTION:
        option = option_at(m, xl, what.item);
        fprintf(out, "%s\n", option ? option->value : "");
        break;
    case META_ACTIVE:
        graph_name(g, name, sizeof name);
        fputs(name, out);
        break;
    case META_TOP:
        fputs(g->top->children[0]->name, out);
        break;
    case META_SUBVOLUME:
        if (what.item < xl->child_count) /* in .meta/root, too */
            fprintf(out, "%s%s", what.layer ? "../../" : "../../graphs/active/",
                    xl->children[what.item]->name);
        break;
    default:
        break;
    }
}

/* The caller frees the text; NULL: out of memory. */
static char *
meta_text(const struct fuse_mount *m, struct meta what, size_t *len)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, len);

    if (!out)
        return NULL;
    read_section_begin();
    print_text(m, what, out);
    read_section_end();
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- replies --------------------------------------------------------------------------------- */

/* Replies; `err` is an errno. A request that the kernel has dropped is no error. */
static void
meta_reply(struct fuse_mount *m, const struct fuse_in_header *in, int err, const void *bytes, size_t len)
{
    struct fuse_out_header out = {
        .len = (uint32_t)(sizeof out + (err ? 0 : len)), .error = -err, .unique = in->unique};
    struct iovec iov[2] = {{&out, sizeof out}, {(void *)bytes, err ? 0 : len}};

    if (writev(m->device.fd, iov, 2) < 0 && errno != ENOENT)
        log_event(LOG_DEBUG, m->xl, "fuse-meta-reply", "a reply about " META_NAME ": %s", strerror(errno));
}

static void
fill_attr(const struct fuse_mount *m, struct meta what, struct fuse_attr *attr)
{
    const struct option_value *option = NULL;

    read_section_begin();
    if (what.kind == META_OPTION)
        option = option_at(m, &m->xl->graph->layers[what.layer], what.item);
    *attr = (struct fuse_attr){.ino = meta_number(m, what),
                               .mode = meta_mode(what, option ? option->key : ""),
                               .nlink = 1,
                               .blksize = FUSE_BLOCK_BYTES};
    read_section_end();
}

static void
answer_lookup(struct fuse_mount *m, const struct fuse_in_header *in, struct meta dir, const char *name)
{
    struct fuse_entry_out out = {0};
    struct meta_entry e;
    bool is_found = false;

    read_section_begin();
    for (unsigned i = 0; !is_found && entry_at(m, dir, i, &e); i++)
        is_found = *e.name && strcmp(e.name, name) == 0;
    read_section_end();
    if (is_found) {
        out.nodeid = meta_number(m, e.what);
        fill_attr(m, e.what, &out.attr);
    }
    meta_reply(m, in, is_found ? 0 : ENOENT, &out, sizeof out);
}

static void
answer_top(struct fuse_mount *m, const struct fuse_in_header *in)
{
    struct fuse_entry_out out = {.nodeid = meta_number(m, (struct meta){.kind = META_ROOT})};

    fill_attr(m, (struct meta){.kind = META_ROOT}, &out.attr);
    meta_reply(m, in, 0, &out, sizeof out);
}

static void
meta_answer_text(struct fuse_mount *m, const struct fuse_in_header *in, struct meta what, uint64_t offset,
            size_t size)
{
    size_t len;
    char *text = meta_text(m, what, &len);
    uint64_t from = text && offset < len ? offset : text ? len : 0;

    meta_reply(m, in, text ? 0 : ENOMEM, text ? text + from : NULL,
          text && size < len - from ? size
          : text                    ? len - from
                                    : 0);
    free(text);
}

/* Adds an entry without a number: the kernel looks the entry up at the first use. */
static size_t
put_meta_entry(char *at, const struct meta_entry *e, uint64_t ino, uint64_t next, bool is_plus)
{
    size_t head = is_plus ? offsetof(struct fuse_direntplus, dirent) : 0, len = strlen(e->name);
    struct fuse_dirent *d = (void *)(at + head);

    memset(at, 0, head + FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + len));
    *d = (struct fuse_dirent){
        .ino = ino, .off = next, .namelen = (uint32_t)len, .type = (meta_mode(e->what, "") & S_IFMT) >> 12};
    memcpy(d->name, e->name, len);
    return head + FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + len);
}

static void
answer_list(struct fuse_mount *m, const struct fuse_in_header *in, struct meta dir,
            const struct fuse_read_in *read)
{
    bool is_plus = in->opcode == FUSE_READDIRPLUS;
    const size_t entry_max = sizeof(struct fuse_direntplus) + FUSE_DIRENT_ALIGN(256);
    char *list = malloc(read->size + entry_max);
    struct meta_entry e;
    size_t used = 0;

    read_section_begin();
    for (unsigned i = (unsigned)read->offset; list && entry_at(m, dir, i, &e); i++) {
        size_t bytes = *e.name ? put_meta_entry(list + used, &e, meta_number(m, e.what), i + 1, is_plus) : 0;

        if (used + bytes > read->size)
            break;
        used += bytes;
    }
    read_section_end();
    meta_reply(m, in, list ? 0 : ENOMEM, list, used);
    free(list);
}

static void
answer_attr(struct fuse_mount *m, const struct fuse_in_header *in, struct meta what)
{
    struct fuse_attr_out out = {0};

    fill_attr(m, what, &out.attr);
    meta_reply(m, in, 0, &out, sizeof out);
}

static void
meta_answer_open(struct fuse_mount *m, const struct fuse_in_header *in, const struct fuse_open_in *open)
{
    struct fuse_open_out out = {.open_flags = in->opcode == FUSE_OPEN ? FOPEN_DIRECT_IO : 0};

    meta_reply(m, in, (open->flags & O_ACCMODE) == O_RDONLY ? 0 : EPERM, &out, sizeof out);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Returns the minimal number of bytes after the header; a shorter request is not from the kernel. */
static size_t
least_bytes(uint32_t opcode)
{
    switch (opcode) {
    case FUSE_READ:
    case FUSE_READDIR:
    case FUSE_READDIRPLUS: return sizeof(struct fuse_read_in);
    case FUSE_OPEN:
    case FUSE_OPENDIR: return sizeof(struct fuse_open_in);
    case FUSE_LISTXATTR: return sizeof(struct fuse_getxattr_in);
    case FUSE_LOOKUP: return 2;
    default: return 0;
    }
}

static void
meta_answer(struct fuse_mount *m, const struct fuse_in_header *in, struct meta what)
{
    const void *args = in + 1;
    const struct fuse_read_in *read = args;
    const struct fuse_getxattr_in *listed = args;

    switch (in->opcode) {
    case FUSE_LOOKUP:
        answer_lookup(m, in, what, args);
        break;
    case FUSE_GETATTR:
        answer_attr(m, in, what);
        break;
    case FUSE_READLINK:
        meta_answer_text(m, in, what, 0, SIZE_MAX);
        break;
    case FUSE_OPEN:
    case FUSE_OPENDIR:
        meta_answer_open(m, in, args);
        break;
    case FUSE_READ:
        meta_answer_text(m, in, what, read->offset, read->size);
        break;
    case FUSE_READDIR:
    case FUSE_READDIRPLUS:
        answer_list(m, in, what, read);
        break;
    case FUSE_LISTXATTR:
        meta_reply(m, in, 0, &(struct fuse_getxattr_out){0},
                   listed->size ? 0 : sizeof(struct fuse_getxattr_out));
        break;
    case FUSE_GETXATTR:
        meta_reply(m, in, ENODATA, NULL, 0);
        break;
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_FLUSH:
    case FUSE_FSYNC:
    case FUSE_FSYNCDIR:
    case FUSE_ACCESS:
        meta_reply(m, in, 0, NULL, 0);
        break;
    default:
        meta_reply(m, in, EPERM, NULL, 0);
        break;
    }
}

/* Returns whether the request would create, remove or rename .meta or a name in .meta. */
static bool
changes_meta(const struct fuse_in_header *in, size_t size)
{
    const char *args = (const char *)(in + 1), *end = args + size, *name = NULL;
    uint64_t other = in->nodeid; /* the folder of the last name */

    switch (in->opcode) {
    case FUSE_MKNOD: name = args + sizeof(struct fuse_mknod_in); break;
    case FUSE_MKDIR: name = args + sizeof(struct fuse_mkdir_in); break;
    case FUSE_CREATE: name = args + sizeof(struct fuse_create_in); break;
    case FUSE_SYMLINK:
    case FUSE_UNLINK:
    case FUSE_RMDIR: name = args; break;
    case FUSE_LINK:
        name = args + sizeof(struct fuse_link_in);
        if (name < end && meta_has(((const struct fuse_link_in *)(const void *)args)->oldnodeid))
            return true;
        break;
    case FUSE_RENAME:
    case FUSE_RENAME2:
        name = args +
               (in->opcode == FUSE_RENAME ? sizeof(struct fuse_rename_in) : sizeof(struct fuse_rename2_in));
        if (name >= end)
            return false;
        other = ((const struct fuse_rename_in *)(const void *)args)->newdir;
        if (in->nodeid == FUSE_ROOT_ID && strcmp(name, META_NAME) == 0)
            return true;
        name += strlen(name) + 1;
        break;
    default: return false;
    }
    return meta_has(other) || (name < end && other == FUSE_ROOT_ID && strcmp(name, META_NAME) == 0);
}

bool
meta_answers(struct fuse_mount *m, char *bytes, size_t size)
{
    struct fuse_in_header *in = (void *)bytes;
    struct meta what;

    if (size < sizeof *in)
        return false;
    size -= sizeof *in;
    if (size && bytes[sizeof *in + size - 1] == '\0' && changes_meta(in, size)) {
        meta_reply(m, in, EPERM, NULL, 0);
        return true;
    }
    if (in->nodeid == FUSE_ROOT_ID && in->opcode == FUSE_LOOKUP && size == sizeof META_NAME &&
        memcmp(in + 1, META_NAME, size) == 0) {
        answer_top(m, in);
        return true;
    }
    if (!meta_has(in->nodeid))
        return false;
    if (in->opcode == FUSE_STATFS) {
        in->nodeid = FUSE_ROOT_ID; /* the statfs of the volume */
        return false;
    }
    if (in->opcode == FUSE_FORGET)
        return true; /* no reply expected */
    if (size < least_bytes(in->opcode))
        meta_reply(m, in, EINVAL, NULL, 0);
    else if (!meta_of_number(m, in->nodeid, &what))
        meta_reply(m, in, ESTALE, NULL, 0);
    else
        meta_answer(m, in, what);
    return true;
}
