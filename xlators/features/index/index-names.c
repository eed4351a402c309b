/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Name notes: renames of cluster/distribute that change more than one subvolume. The client asks for a note
 * with the LINK or RENAME that gives a file its new name, and reports the end of the rename. A note that
 * outlives its client leads the next client to the unfinished name (distribute/settle.c).
 *
 * A note is a symbolic link in indices/kiln-names/, named by the directory's gfid and a hash of the name:
 *
 *      link/GFID/NAME/GFID/NAME    LINK gives the file this new name; the old name follows
 *      from/GFID/NAME/GFID/NAME    the same rename, kept by the old name; the new name follows
 *      over/GFID/NAME              RENAME on this brick; the new name replaces a file of another subvolume
 *
 * Names with the same hash share a note: the newer rename has it. The notes of index-dead.c lie beside them.
 *
 * Keys, in xdata:
 *      LINK      NAME_NOTE: GFID/NAME of the old name      keeps the notes "link" and "from"
 *      RENAME    NAME_NOTE                                 keeps the note "over"
 *      LOOKUP    NAME_NOTE                                 the reply has the name's note: "link" if both
 *                                                          names lead to the file, "over" if not, or
 *                                                          "from/GFID/NAME"
 *      OPENDIR   NAME_NOTE                                 the reply has the new names in the directory
 *                                                          that have a note, each with its NUL
 *      LOOKUP, INODELK   NAME_NOTE_DONE: GFID/NAME of the new name    removes the notes
 * The value of the xattr kiln.name-notes is GFID/NAME of each new name that has a note, each with its NUL.
 * Only root and internal clients may read the xattr and report an end.
 *
 * A note is written before the change reaches storage, and removed if the change fails, so no unfinished
 * change lacks its note. A note may outlive its rename if the brick was down at the end: a client that finds
 * the note looks both names up. Notes need no lock: the client has the locks of both names. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "graph/graph.h"
#include "log/log.h"
#include "xlators/features/index/index-internal.h"

#define NOTES_MAX 100000 /* a rename beyond them is done without a note */
#define NOTE_TEXT_MAX (8 + 2 * (GFID_TEXT_SIZE + FOP_NAME_MAX + 1))
enum { LISTED_BYTES_MAX = 16384 };

enum note_kind { NOTE_LINK, NOTE_FROM, NOTE_OVER };
static const char *const kind_words[] = {[NOTE_LINK] = "link", [NOTE_FROM] = "from", [NOTE_OVER] = "over"};

/* A name in a directory. */
struct noted_name {
    struct gfid dir;
    const char *name;
};

struct name_note {
    enum note_kind kind;
    struct noted_name own, other; /* other: not of NOTE_OVER */
    char text[NOTE_TEXT_MAX];     /* the names point into it */
};

/* ---- texts ----------------------------------------------------------------------------------- */

/* Reads "GFID/NAME" and ends the name at `end`, a slash or the end of the text. Returns the rest of the
 * text behind the name; NULL: not such a text. */
static char *
noted_name_parse(char *text, struct noted_name *out)
{
    const size_t digits = GFID_TEXT_SIZE - 1;

    if (strlen(text) <= digits || text[digits] != '/' || gfid_parse(text, digits, &out->dir))
        return NULL;
    char *name = text + digits + 1, *end = name + strcspn(name, "/");
    size_t len = (size_t)(end - name);

    if (!len || len > FOP_NAME_MAX || (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.'))))
        return NULL;
    out->name = name;
    if (!*end)
        return end;
    *end = '\0';
    return end + 1;
}

static bool
is_same_name(const struct noted_name *a, const struct noted_name *b)
{
    return gfid_equal(&a->dir, &b->dir) && strcmp(a->name, b->name) == 0;
}

static void
note_path(char path[INDEX_PATH_MAX], const struct noted_name *n)
{
    snprintf(path, INDEX_PATH_MAX, INDEX_NOTES "/%s-%016llx", GFID(&n->dir),
             (unsigned long long)hash_text(n->name));
}

/* Parses out->text. */
static bool
note_parse(struct name_note *out)
{
    char *slash = strchr(out->text, '/'), *rest;
    size_t kind = 0;

    if (!slash)
        return false;
    *slash = '\0';
    while (kind < sizeof kind_words / sizeof kind_words[0] && strcmp(out->text, kind_words[kind]))
        kind++;
    out->kind = (enum note_kind)kind;
    rest = noted_name_parse(slash + 1, &out->own);
    return kind == NOTE_OVER ? rest != NULL
                             : kind < NOTE_OVER && rest && *rest && noted_name_parse(rest, &out->other);
}

/* ---- notes on disk --------------------------------------------------------------------------- */

static bool
note_read_at(struct index_private *priv, const char *path, struct name_note *out)
{
    ssize_t len = readlinkat(priv->base_fd, path, out->text, sizeof out->text - 1);

    if (len < 0)
        return false;
    out->text[len] = '\0';
    return note_parse(out);
}

/* Returns whether the name has a note, and sets *out. */
static bool
note_read(struct index_private *priv, const struct noted_name *n, struct name_note *out)
{
    char path[INDEX_PATH_MAX];

    note_path(path, n);
    return note_read_at(priv, path, out) && is_same_name(&out->own, n);
}

void
index_note_remove(struct index_private *priv, const char *path)
{
    if (unlinkat(priv->base_fd, path, 0) == 0)
        atomic_fetch_sub(&priv->name_notes, 1);
}

int
index_note_write(struct index_private *priv, const char *path, const char *text)
{
    if (atomic_load(&priv->name_notes) >= NOTES_MAX)
        return -EDQUOT;
    for (int tries = 0; tries < 3; tries++) {
        if (symlinkat(text, priv->base_fd, path) == 0) {
            atomic_fetch_add(&priv->name_notes, 1);
            return 0;
        }
        if (errno == EEXIST)
            index_note_remove(priv, path);
        else if (errno != ENOENT || (mkdirat(priv->base_fd, INDEX_NOTES, 0700) && errno != EEXIST))
            break;
    }
    return -errno;
}

static void
note_remove(struct index_private *priv, const struct noted_name *n)
{
    char path[INDEX_PATH_MAX];

    note_path(path, n);
    index_note_remove(priv, path);
}

/* Returns 0 or -errno. */
static int
note_write(struct index_private *priv, enum note_kind kind, const struct noted_name *own,
           const struct noted_name *other)
{
    char path[INDEX_PATH_MAX], text[NOTE_TEXT_MAX];

    note_path(path, own);
    int len = snprintf(text, sizeof text, "%s/%s/%s", kind_words[kind], GFID(&own->dir), own->name);

    if (other)
        snprintf(text + len, sizeof text - (size_t)len, "/%s/%s", GFID(&other->dir), other->name);
    return index_note_write(priv, path, text);
}

/* Removes the note of a new name, and the note of its old name. */
static void
note_remove_both(struct index_private *priv, const struct noted_name *n)
{
    struct name_note note, from;

    if (!note_read(priv, n, &note) || note.kind == NOTE_FROM)
        return;
    if (note.kind == NOTE_LINK && note_read(priv, &note.other, &from) && from.kind == NOTE_FROM &&
        is_same_name(&from.other, n))
        note_remove(priv, &note.other);
    note_remove(priv, n);
}

static bool
has_notes(const struct xlator *xl)
{
    return atomic_load_explicit(&index_private(xl)->name_notes, memory_order_relaxed) > 0;
}

/* ---- changes of names ------------------------------------------------------------------------ */

static struct noted_name
new_name_of(const struct fop_call *c)
{
    return (struct noted_name){.dir = c->loc2.parent->gfid, .name = c->loc2.name};
}

/* The change has failed: it needs no note. A name that existed may be that of an earlier, dead rename,
 * whose note stays. */
static xl_verdict
noted_change_cb(struct frame *f, struct call_stack *stk)
{
    struct noted_name n = new_name_of(&stk->call);

    if (stk->reply.op_ret < 0 && stk->reply.op_errno != EEXIST)
        note_remove_both(index_private(f->xl), &n);
    return XL_PASS;
}

/* Keeps the notes. A rename without its note is as safe as a rename by a stock client, so it goes on. */
static void
keep_notes(struct xlator *xl, const struct fop_call *c, const struct noted_name *from)
{
    struct index_private *priv = index_private(xl);
    struct noted_name to = new_name_of(c);
    int err = note_write(priv, from ? NOTE_LINK : NOTE_OVER, &to, from);

    if (!err && from)
        err = note_write(priv, NOTE_FROM, from, &to);
    if (err)
        log_event(LOG_WARNING, xl, "index-no-name-note", "%s/%s: no note about a rename: %s", GFID(&to.dir),
                  to.name, strerror(-err));
}

xl_verdict
index_names_change(struct xlator *xl, struct call_stack *stk)
{
    xl_verdict verdict = index_any(xl, stk);
    const struct fop_call *c = &stk->call;
    const char *asked = dict_get_str(c->xdata, DICT_KEY_NAME_NOTE);
    char text[NOTE_TEXT_MAX];
    struct noted_name from;

    if (verdict == XL_PASS && c->fop == FOP_rename)
        verdict = index_folder_removal(xl, stk, c->loc2.inode);
    if (verdict != XL_PASS || !asked || !c->loc2.parent || !c->loc2.name)
        return verdict;
    if (c->fop == FOP_link) {
        if (snprintf(text, sizeof text, "%s", asked) >= (int)sizeof text || !noted_name_parse(text, &from))
            return -EINVAL;
    }
    if (!frame_push(stk, xl, noted_change_cb))
        return -ENOMEM;
    keep_notes(xl, c, c->fop == FOP_link ? &from : NULL);
    return XL_PASS;
}

/* A removed new name needs no note. After the removal of an old name, the new name keeps its note. */
static xl_verdict
unlinked_cb(struct frame *f, struct call_stack *stk)
{
    struct index_private *priv = index_private(f->xl);
    struct noted_name n = {.dir = stk->call.loc.parent->gfid, .name = stk->call.loc.name};
    struct name_note note;

    if (stk->reply.op_ret < 0 || !note_read(priv, &n, &note))
        return XL_PASS;
    if (note.kind == NOTE_FROM)
        note_remove(priv, &n);
    else
        note_remove_both(priv, &n);
    return XL_PASS;
}

xl_verdict
index_names_unlink(struct xlator *xl, struct call_stack *stk)
{
    if (!has_notes(xl) || !stk->call.loc.parent || !stk->call.loc.name)
        return XL_PASS;
    return frame_push(stk, xl, unlinked_cb) ? XL_PASS : -ENOMEM;
}

/* ---- questions ------------------------------------------------------------------------------- */

/* A name's path from the index's base. */
static void
object_path(char *path, size_t size, const struct noted_name *n)
{
    snprintf(path, size, "../%02x/%02x/%s/%s", n->dir.b[0], n->dir.b[1], GFID(&n->dir), n->name);
}

/* Returns whether both names lead to one file. A directory is found by its gfid, through the symbolic links
 * of its parents; below 40 of them the answer is no. */
static bool
is_one_file(struct index_private *priv, const struct noted_name *a, const struct noted_name *b)
{
    char path[2 * INDEX_PATH_MAX];
    struct stat st[2];

    object_path(path, sizeof path, a);
    if (fstatat(priv->base_fd, path, &st[0], AT_SYMLINK_NOFOLLOW))
        return false;
    object_path(path, sizeof path, b);
    return fstatat(priv->base_fd, path, &st[1], AT_SYMLINK_NOFOLLOW) == 0 && st[0].st_ino == st[1].st_ino &&
           st[0].st_dev == st[1].st_dev;
}

/* Writes the answer about the note of an existing name. Returns false: no answer. */
static bool
note_answer(struct index_private *priv, const struct noted_name *n, char out[NOTE_TEXT_MAX])
{
    struct name_note note, link;

    if (!note_read(priv, n, &note))
        return false;
    if (note.kind != NOTE_FROM) {
        bool is_both = note.kind == NOTE_LINK && is_one_file(priv, n, &note.other);

        snprintf(out, NOTE_TEXT_MAX, "%s", kind_words[is_both ? NOTE_LINK : NOTE_OVER]);
        return true;
    }
    if (!note_read(priv, &note.other, &link) || link.kind != NOTE_LINK || !is_same_name(&link.other, n)) {
        note_remove(priv, n);
        return false;
    }
    snprintf(out, NOTE_TEXT_MAX, "from/%s/%s", GFID(&note.other.dir), note.other.name);
    return true;
}

static xl_verdict
asked_name_cb(struct frame *f, struct call_stack *stk)
{
    struct noted_name n = {.dir = stk->call.loc.parent->gfid, .name = stk->call.loc.name};
    char answer[NOTE_TEXT_MAX];

    if (stk->reply.op_ret < 0 || !note_answer(index_private(f->xl), &n, answer))
        return XL_PASS;
    struct dict *xdata = reply_xdata(stk);

    return xdata && !dict_set_str(xdata, DICT_KEY_NAME_NOTE, answer) ? XL_PASS : -ENOMEM;
}

static void
remove_done_notes(struct xlator *xl, const struct call_stack *stk)
{
    const char *done = dict_get_str(stk->call.xdata, DICT_KEY_NAME_NOTE_DONE);
    char text[NOTE_TEXT_MAX];
    struct noted_name n;

    if (!done || !index_may_use(&stk->caller))
        return;
    if (snprintf(text, sizeof text, "%s", done) < (int)sizeof text && noted_name_parse(text, &n))
        note_remove_both(index_private(xl), &n);
}

xl_verdict
index_names_inodelk(struct xlator *xl, struct call_stack *stk)
{
    if (has_notes(xl))
        remove_done_notes(xl, stk);
    return index_any(xl, stk);
}

xl_verdict
index_names_lookup(struct xlator *xl, struct call_stack *stk)
{
    if (!has_notes(xl))
        return XL_PASS;
    remove_done_notes(xl, stk);
    if (!dict_has(stk->call.xdata, DICT_KEY_NAME_NOTE) || !stk->call.loc.parent || !stk->call.loc.name)
        return XL_PASS;
    return frame_push(stk, xl, asked_name_cb) ? XL_PASS : -ENOMEM;
}

/* Writes the new names of the directory that have a note; of all directories, with their gfids, if `folder`
 * is NULL. Returns the number of bytes. */
static uint32_t
list_noted_names(struct index_private *priv, const struct gfid *folder, char out[LISTED_BYTES_MAX])
{
    int fd = openat(priv->base_fd, INDEX_NOTES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    char path[INDEX_PATH_MAX], prefix[GFID_TEXT_SIZE] = "", text[GFID_TEXT_SIZE + FOP_NAME_MAX + 1];
    struct name_note note;
    struct dirent *e;
    uint32_t used = 0;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    if (folder)
        gfid_text(folder, prefix);
    while ((e = readdir(dir))) {
        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
            continue;
        snprintf(path, sizeof path, INDEX_NOTES "/%.100s", e->d_name);
        if (!note_read_at(priv, path, &note) || note.kind == NOTE_FROM)
            continue;
        snprintf(text, sizeof text, "%s%s%s", folder ? "" : GFID(&note.own.dir), folder ? "" : "/",
                 note.own.name);
        size_t len = strlen(text) + 1;

        if (used + len > LISTED_BYTES_MAX)
            break;
        memcpy(out + used, text, len);
        used += (uint32_t)len;
    }
    closedir(dir);
    return used;
}

static xl_verdict
asked_folder_cb(struct frame *f, struct call_stack *stk)
{
    char *names = stk->reply.op_ret < 0 ? NULL : arena_alloc(&stk->arena, LISTED_BYTES_MAX);
    uint32_t len =
        names ? list_noted_names(index_private(f->xl), &stk->call.loc.inode->gfid, names) : 0;
    struct dict *xdata = len ? reply_xdata(stk) : NULL;

    /* Without the names the listing shows an unfinished name, as stock's does, so the call does not fail. */
    if (xdata)
        (void)dict_set_bytes(xdata, DICT_KEY_NAME_NOTE, names, len);
    return XL_PASS;
}

xl_verdict
index_names_opendir(struct xlator *xl, struct call_stack *stk)
{
    if (!has_notes(xl) || !dict_has(stk->call.xdata, DICT_KEY_NAME_NOTE) || !stk->call.loc.inode)
        return XL_PASS;
    return frame_push(stk, xl, asked_folder_cb) ? XL_PASS : -ENOMEM;
}

xl_verdict
index_names_list(struct xlator *xl, struct call_stack *stk)
{
    struct dict *dict = reply_dict(stk);
    char *names = arena_alloc(&stk->arena, LISTED_BYTES_MAX);

    if (!index_may_use(&stk->caller))
        return -EACCES;
    if (!dict || !names)
        return -ENOMEM;
    uint32_t len = has_notes(xl) ? list_noted_names(index_private(xl), NULL, names) : 0;

    if (!len)
        return -ENODATA;
    if (dict_set_bytes(dict, DICT_KEY_NAME_NOTES, names, len))
        return -ENOMEM;
    stk->reply.op_ret = (int32_t)len;
    return XL_DONE;
}
