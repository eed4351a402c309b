/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The other names (hard links) of a file that is migrated. The brick keeps the names of a file in its xattrs
 * trusted.gfid2path.* (brick 2.5), each as the gfid of a folder and a name.
 *
 *   - The locks of all names are held during the migration, and each name leads to the file on S.
 *   - Before the mark, the copy on D gets each name, as a linkto file like the first.
 *   - After the switch, the linkto file of a name whose hashed subvolume is neither S nor D is made anew, and
 *     points to D; the name on S is removed. In between, a lookup of the name finds a linkto file that leads
 *     to a linkto file, looks on all subvolumes, and finds the name on D.
 *
 * After a death of this process, names left on S are linkto files that the next walk removes. */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/distribute/migrate.h"

static const char names_pattern[] = "trusted.gfid2path.*";
static const char names_prefix[] = "trusted.gfid2path.";

/* Adds the name in the value of an xattr, "GFID/name", unless the name is the one that is migrated. */
static int
add_name(const struct op *o, const struct migration *m, const struct dict_pair *p, struct migrate_names *out)
{
    const char *text = p->v.bytes;
    struct iatt folder = {.mode = S_IFDIR | 0755};

    if (p->len <= GFID_TEXT_SIZE || text[GFID_TEXT_SIZE - 1] != '/' ||
        gfid_parse(text, GFID_TEXT_SIZE - 1, &folder.gfid))
        return -EINVAL;
    size_t len = strnlen(text + GFID_TEXT_SIZE, p->len - GFID_TEXT_SIZE);
    char *name = len && len <= FOP_NAME_MAX ? arena_alloc(&o->stk->arena, len + 1) : NULL;
    if (!name)
        return len && len <= FOP_NAME_MAX ? -ENOMEM : -EINVAL;
    memcpy(name, text + GFID_TEXT_SIZE, len);
    name[len] = '\0';
    if (gfid_equal(&folder.gfid, &m->parent->gfid) && strcmp(name, m->name) == 0)
        return 0;
    if (out->count == MIGRATE_NAMES_MAX)
        return -E2BIG;
    struct inode *parent = inode_link(o->d->xl->graph->inodes, NULL, NULL, &folder);
    if (!parent)
        return -ENOMEM;
    out->of[out->count++] = (struct migrate_name){.parent = parent, .name = name};
    return 0;
}

static int
find_places(const struct op *o, struct migrate_names *names)
{
    for (unsigned i = 0; i < names->count; i++) {
        int hashed = folder_hashed(o, names->of[i].parent, names->of[i].name);

        if (hashed < 0)
            return hashed;
        names->of[i].hashed = (unsigned)hashed;
    }
    return 0;
}

int
migrate_names_find(const struct op *o, const struct migration *m, struct migrate_names *out)
{
    struct call_stack *stk = lookup_call(o, m->parent, m->name, NULL, true);
    int ret = stk ? dict_set_text_int(stk->call.xdata, names_pattern, 0) : -ENOMEM, err = 0;

    *out = (struct migrate_names){0};
    if (!ret)
        ret = dist_call_at(o, m->from, stk);
    bool has_others = ret >= 0 && stk->reply.stat.nlink > 1 && !S_ISDIR(stk->reply.stat.mode);
    if (has_others) {
        dict_for_each (p, stk->reply.xdata) {
            if (!err && strncmp(p->key, names_prefix, sizeof names_prefix - 1) == 0 &&
                (p->type == DICT_PTR || p->type == DICT_STR))
                err = add_name(o, m, p, out);
        }
    }
    if (stk)
        call_stack_free(stk);
    if (!err && ret >= 0)
        err = find_places(o, out);
    if (err)
        migrate_names_end(out);
    /* names that cannot be found out are noticed by their number, and the file stays */
    return ret < 0 ? ret : err == -ENOMEM || err == -ENOTCONN ? err : 0;
}

void
migrate_names_end(struct migrate_names *names)
{
    while (names->count > 0)
        inode_unref(names->of[--names->count].parent);
}

unsigned
migrate_names_locks(const struct migrate_names *names, struct dist_lock *out)
{
    unsigned count = 0;

    for (unsigned i = 0; i < names->count; i++)
        count +=
            dist_locks_namespace(out + count, names->of[i].hashed, names->of[i].parent, names->of[i].name);
    return count;
}

int
migrate_names_check(const struct op *o, const struct migration *m, const struct migrate_names *names)
{
    int err = 0;

    for (unsigned i = 0; i < names->count && !err; i++) {
        struct call_stack *stk = lookup_call(o, names->of[i].parent, names->of[i].name, NULL, true);
        int ret = dist_call_at(o, m->from, stk);

        err = ret < 0 ? ret : gfid_equal(&stk->reply.stat.gfid, &m->file->gfid) ? 0 : -ENOENT;
        if (stk)
            call_stack_free(stk);
    }
    return err == -ENOENT || err == -ESTALE ? -EBUSY : err;
}

int
migrate_names_make(const struct op *o, const struct migration *m, const struct migrate_names *names)
{
    int err = 0;

    for (unsigned i = 0; i < names->count && !err; i++)
        err = linkto_make(o, m->to, names->of[i].parent, names->of[i].name, &m->file->gfid, m->from, false);
    return err;
}

/* Failures leave linkto files that lookups repair. */
void
migrate_names_switch(const struct op *o, const struct migration *m, const struct migrate_names *names)
{
    const struct iatt file = {.gfid = m->file->gfid, .mode = m->file->type};

    for (unsigned i = 0; i < names->count; i++) {
        const struct migrate_name *n = &names->of[i];

        if (n->hashed == m->from)
            continue; /* the name on S is the linkto file */
        if (n->hashed != m->to && linkto_retarget(o, n->hashed, &file, m->to) == -ENOENT)
            (void)linkto_make(o, n->hashed, n->parent, n->name, &m->file->gfid, m->to, false);
        (void)linkto_remove(o, m->from, n->parent, n->name, false);
    }
}
