/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* state: BRICK/.glusterfs/kiln-squota, a memory-mapped file with the usage of the namespaces and a list of
 * the objects that may have changed since.
 *
 * A kill -9 loses no store to a shared mapping, so after a kill the file contains every store up to the last
 * instruction. Depending on the moment, a kill leaves:
 *
 *   before the slot of an object is taken     the object has not changed; nothing to do
 *   after that, before the usage is settled   the object may have changed: the next start stats it and adds
 *                                             the difference to the slot's charge to the usage
 *   in the middle of settling                 usage and charge change by a redo record. If the record is
 *                                             complete, the next start applies it again; if it is not
 *                                             complete, settling had not begun
 *   while a namespace is counted              its record says so: it is counted from the beginning
 *
 * So a start stats a few hundred objects for a brick of any size. A crash of the machine may lose stores. For
 * that case the file contains the boot's id. A file of another boot without a clean end keeps only the names
 * of the namespaces and the usage of other bricks, which no count here can find; all else is counted anew.
 * A brick that is served with the layer off removes the file (squota_state_forget). GlusterFS's own bricks do
 * not know the file: if one of them has served the brick in between, set glusterfs.quota.reset on each
 * namespace to count anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "log/log.h"
#include "xlators/features/simple-quota/squota-internal.h"

#define STATE_NAME ".glusterfs/kiln-squota"
#define STATE_MAGIC 0x3161746f75716b6bull /* "kkquota1" */

enum { RECORDS = 8192, SLOTS = 4096, BOOT_ID_BYTES = 40 };
enum { RECORD_FREE, RECORD_KNOWN, RECORD_COUNTING };

struct record {
    struct gfid ns;
    int64_t used;
    uint32_t state, pad;
};

struct slot {
    struct gfid object;
    int64_t charge;
    uint32_t record; /* 0: the slot is free */
    uint32_t pad;
};

struct redo {
    int64_t used, charge;
    uint32_t slot, record; /* record 0: no redo record. Written last, cleared first */
};

struct file {
    uint64_t magic;
    char boot_id[BOOT_ID_BYTES];
    uint32_t is_clean, pad;
    struct redo redo;
    struct record records[RECORDS]; /* record 0 and slot 0 are not used */
    struct slot slots[SLOTS];
    /* Usage of other bricks of the volume, plus 1, by record; 0: unknown. Last, because older files end
     * before. */
    int64_t others[RECORDS];
};

struct squota_state {
    int fd;
    struct file *f;
    unsigned free_slots[SLOTS], free_count;
};

/* Orders stores: after a kill the file has no store behind IN_ORDER() without all stores before. Program
 * order suffices, because the page cache is the memory. */
#define IN_ORDER() atomic_signal_fence(memory_order_seq_cst)

static void
read_boot_id(char id[BOOT_ID_BYTES])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    memset(id, 0, BOOT_ID_BYTES);
    if (fd < 0)
        return;
    if (read(fd, id, BOOT_ID_BYTES - 1) < 0)
        id[0] = '\0';
    close(fd);
}

/* Returns the brick's folder, from the storage section of the volfile. */
static const char *
brick_dir(const struct xlator *xl)
{
    const struct volfile *v = xl->graph->volfile;

    for (size_t i = 0; v && i < v->section_count; i++) {
        const struct volfile_section *s = &v->sections[i];
        for (size_t n = 0; strcmp(s->type, "storage/posix") == 0 && n < s->option_count; n++) {
            if (strcmp(s->options[n].key, "directory") == 0)
                return s->options[n].value;
        }
    }
    return NULL;
}

static int
open_file(const struct xlator *xl, int flags)
{
    const char *dir = brick_dir(xl);
    int brick = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (brick < 0)
        return -1;
    int fd = openat(brick, STATE_NAME, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    int saved = errno;
    close(brick);
    errno = saved;
    return fd;
}

void
squota_state_forget(struct xlator *xl)
{
    const char *dir = brick_dir(xl);
    int brick = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (brick < 0)
        return;
    if (unlinkat(brick, STATE_NAME, 0) < 0 && errno != ENOENT)
        log_event(LOG_ERROR, xl, "squota-state-stays",
                  "%s/" STATE_NAME
                  " cannot be removed: %s. Remove it before simple-quota is switched on again",
                  dir, strerror(errno));
    close(brick);
}

/* Completes a settling that a kill interrupted. */
static void
redo_apply(struct file *f)
{
    const struct redo r = f->redo;

    if (r.record > 0 && r.record < RECORDS) {
        f->records[r.record].used = r.used;
        if (r.slot > 0 && r.slot < SLOTS)
            f->slots[r.slot].charge = r.charge;
    }
    IN_ORDER();
    f->redo.record = 0;
}

static bool
is_believable(const struct file *f, const char *boot_id)
{
    return f->magic == STATE_MAGIC && (f->is_clean || memcmp(f->boot_id, boot_id, BOOT_ID_BYTES) == 0);
}

/* After a crash of the machine: keeps the names and the usage of other bricks. */
static void
state_begin_anew(struct file *f)
{
    if (f->magic != STATE_MAGIC) {
        memset(f, 0, sizeof *f);
        return;
    }
    f->redo.record = 0;
    memset(f->slots, 0, sizeof f->slots);
    for (unsigned i = 1; i < RECORDS; i++) {
        struct record *r = &f->records[i];
        bool is_taken = r->state == RECORD_KNOWN || r->state == RECORD_COUNTING;
        r->state = is_taken ? RECORD_COUNTING : RECORD_FREE;
        r->used = 0;
        f->others[i] = is_taken && f->others[i] > 0 ? f->others[i] : 0;
    }
}

static void
state_take_over(struct squota_state *s, bool *is_whole)
{
    char boot_id[BOOT_ID_BYTES];

    read_boot_id(boot_id);
    *is_whole = is_believable(s->f, boot_id);
    if (*is_whole)
        redo_apply(s->f);
    else
        state_begin_anew(s->f);
    memcpy(s->f->boot_id, boot_id, BOOT_ID_BYTES);
    s->f->is_clean = 0;
    IN_ORDER();
    s->f->magic = STATE_MAGIC;
    for (unsigned i = SLOTS - 1; i > 0; i--) {
        if (s->f->slots[i].record == 0 || s->f->slots[i].record >= RECORDS) {
            s->f->slots[i].record = 0;
            s->free_slots[s->free_count++] = i;
        }
    }
}

/* Maps the file. Returns 0 or -errno. Its blocks are allotted now, because a store into a hole on a full file
 * system would raise SIGBUS. */
static int
map_file(struct squota_state *s)
{
    if (flock(s->fd, LOCK_EX | LOCK_NB) < 0)
        return -errno;
    int err = posix_fallocate(s->fd, 0, sizeof *s->f);
    if (err)
        return -err;
    void *at = mmap(NULL, sizeof *s->f, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (at == MAP_FAILED)
        return -errno;
    s->f = at;
    return 0;
}

static int
open_and_map(struct xlator *xl, struct squota_state *s)
{
    s->fd = open_file(xl, O_RDWR | O_CREAT);
    return s->fd < 0 ? -errno : map_file(s);
}

struct squota_state *
squota_state_open(struct xlator *xl, bool *is_whole)
{
    struct squota_state *s = calloc(1, sizeof *s);
    int err = -ENOMEM;

    *is_whole = false;
    if (s)
        err = open_and_map(xl, s);
    if (err == -EWOULDBLOCK) {
        /* A graph that this one replaces still has the file open. Its further stores are never read, because
         * the file is removed here. */
        close(s->fd);
        squota_state_forget(xl);
        err = open_and_map(xl, s);
    }
    if (err == 0) {
        state_take_over(s, is_whole);
        return s;
    }
    log_event(LOG_ERROR, xl, "squota-state-open",
              STATE_NAME " cannot be opened: %s. Usage is counted anew at each start of the brick",
              strerror(-err));
    if (s && s->fd >= 0)
        close(s->fd);
    free(s);
    return NULL;
}

void
squota_state_close(struct squota_state *s, bool is_clean)
{
    if (!s)
        return;
    if (is_clean) {
        IN_ORDER();
        /* the contents first, then the statement that they are complete */
        if (msync(s->f, sizeof *s->f, MS_SYNC) == 0) {
            s->f->is_clean = 1;
            if (msync(s->f, sizeof *s->f, MS_SYNC) < 0)
                s->f->is_clean = 0;
        }
    }
    munmap(s->f, sizeof *s->f);
    close(s->fd);
    free(s);
}

/* ---- namespaces ------------------------------------------------------------------------------ */

unsigned
squota_state_find(struct squota_state *s, const struct gfid *ns, int64_t *used, bool *is_counting)
{
    for (unsigned i = 1; s && i < RECORDS; i++) {
        const struct record *r = &s->f->records[i];
        if (r->state == RECORD_FREE || !gfid_equal(&r->ns, ns))
            continue;
        *used = r->used;
        *is_counting = r->state == RECORD_COUNTING;
        return i;
    }
    return 0;
}

unsigned
squota_state_add(struct squota_state *s, const struct gfid *ns)
{
    for (unsigned i = 1; s && i < RECORDS; i++) {
        struct record *r = &s->f->records[i];
        if (r->state != RECORD_FREE)
            continue;
        r->ns = *ns;
        r->used = 0;
        s->f->others[i] = 0;
        IN_ORDER();
        r->state = RECORD_COUNTING;
        return i;
    }
    return 0;
}

void
squota_state_drop(struct squota_state *s, unsigned record)
{
    if (!s || !record)
        return;
    s->f->records[record].state = RECORD_FREE;
    IN_ORDER();
    for (unsigned i = 1; i < SLOTS; i++) {
        if (s->f->slots[i].record == record)
            s->f->slots[i].record = RECORDS; /* the owner of the slot gives it back later */
    }
}

void
squota_state_counting(struct squota_state *s, unsigned record, bool is_counting)
{
    if (!s || !record)
        return;
    IN_ORDER();
    s->f->records[record].state = is_counting ? RECORD_COUNTING : RECORD_KNOWN;
    IN_ORDER();
}

void
squota_state_set(struct squota_state *s, unsigned record, int64_t used)
{
    if (s && record)
        s->f->records[record].used = used;
}

int64_t
squota_state_used(const struct squota_state *s, unsigned record)
{
    return s->f->records[record].used;
}

int64_t
squota_state_others(const struct squota_state *s, unsigned record)
{
    return s && record ? s->f->others[record] - 1 : -1;
}

void
squota_state_set_others(struct squota_state *s, unsigned record, int64_t others)
{
    if (s && record)
        s->f->others[record] = others + 1;
}

/* ---- slots ----------------------------------------------------------------------------------- */

unsigned
squota_slot_take(struct squota_state *s, unsigned record, const struct gfid *object, int64_t charge)
{
    if (!s || !record)
        return 0;
    if (s->free_count == 0) {
        squota_state_counting(s, record, true);
        return 0;
    }
    unsigned n = s->free_slots[--s->free_count];
    struct slot *slot = &s->f->slots[n];
    slot->object = *object;
    slot->charge = charge;
    IN_ORDER();
    slot->record = record;
    IN_ORDER();
    return n;
}

void
squota_slot_give(struct squota_state *s, unsigned slot)
{
    if (!s || !slot)
        return;
    IN_ORDER();
    s->f->slots[slot].record = 0;
    s->free_slots[s->free_count++] = slot;
}

void
squota_state_settle(struct squota_state *s, unsigned record, int64_t used, unsigned slot, int64_t charge)
{
    if (!s || !record)
        return;
    struct file *f = s->f;
    f->redo.used = used;
    f->redo.charge = charge;
    f->redo.slot = slot;
    IN_ORDER();
    f->redo.record = record;
    IN_ORDER();
    f->records[record].used = used;
    if (slot)
        f->slots[slot].charge = charge;
    IN_ORDER();
    f->redo.record = 0;
    IN_ORDER();
}

unsigned
squota_slot_next(struct squota_state *s, unsigned slot, unsigned *record, struct gfid *object,
                 int64_t *charge)
{
    while (++slot < SLOTS) {
        const struct slot *at = &s->f->slots[slot];
        if (at->record == 0)
            continue;
        bool is_there = at->record < RECORDS && s->f->records[at->record].state != RECORD_FREE;
        *record = is_there ? at->record : 0;
        *object = at->object;
        *charge = at->charge;
        return slot;
    }
    return 0;
}

unsigned
squota_state_next(const struct squota_state *s, unsigned record, struct gfid *ns)
{
    while (s && ++record < RECORDS) {
        if (s->f->records[record].state != RECORD_FREE) {
            *ns = s->f->records[record].ns;
            return record;
        }
    }
    return 0;
}
