/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "base/parcel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOM_MIN 4096

static char *
parcel_room(struct parcel *p, size_t count)
{
    if (p->is_broken)
        return NULL;
    if (count > p->room - p->used) {
        size_t room = (p->room + count) * 2 + ROOM_MIN;
        char *bytes = realloc(p->bytes, room);

        if (!bytes) {
            p->is_broken = true;
            return NULL;
        }
        p->bytes = bytes;
        p->room = room;
    }
    char *at = p->bytes + p->used;

    p->used += count;
    return at;
}

void
parcel_put_raw(struct parcel *p, const void *from, size_t count)
{
    char *at = parcel_room(p, count);

    if (at && count)
        memcpy(at, from, count);
}

void
parcel_put_u32(struct parcel *p, uint32_t value)
{
    parcel_put_raw(p, &value, sizeof value);
}

void
parcel_put_u64(struct parcel *p, uint64_t value)
{
    parcel_put_raw(p, &value, sizeof value);
}

void
parcel_put_bytes(struct parcel *p, const void *from, size_t count)
{
    parcel_put_u64(p, count);
    parcel_put_raw(p, from, count);
}

void
parcel_put_text(struct parcel *p, const char *text)
{
    parcel_put_bytes(p, text, text ? strlen(text) + 1 : 0);
}

size_t
parcel_reserve_u32(struct parcel *p)
{
    size_t place = p->used;

    parcel_put_u32(p, 0);
    return place;
}

void
parcel_set_u32(struct parcel *p, size_t place, uint32_t value)
{
    if (!p->is_broken)
        memcpy(p->bytes + place, &value, sizeof value);
}

/* ---- reading --------------------------------------------------------------------------------- */

static const char *
parcel_next(struct parcel *p, size_t count)
{
    if (p->is_broken || count > p->used - p->at) {
        p->is_broken = true;
        return NULL;
    }
    const char *at = p->bytes + p->at;

    p->at += count;
    return at;
}

uint32_t
parcel_get_u32(struct parcel *p)
{
    const char *at = parcel_next(p, sizeof(uint32_t));
    uint32_t value = 0;

    if (at)
        memcpy(&value, at, sizeof value);
    return value;
}

uint64_t
parcel_get_u64(struct parcel *p)
{
    const char *at = parcel_next(p, sizeof(uint64_t));
    uint64_t value = 0;

    if (at)
        memcpy(&value, at, sizeof value);
    return value;
}

const void *
parcel_get_bytes(struct parcel *p, size_t *count)
{
    uint64_t bytes = parcel_get_u64(p);
    const char *at = parcel_next(p, bytes);

    *count = at ? (size_t)bytes : 0;
    return at;
}

void
parcel_get_exactly(struct parcel *p, void *to, size_t count)
{
    size_t bytes;
    const void *at = parcel_get_bytes(p, &bytes);

    if (!at || bytes != count) {
        p->is_broken = true;
        memset(to, 0, count);
        return;
    }
    memcpy(to, at, count);
}

const char *
parcel_get_text(struct parcel *p)
{
    size_t bytes;
    const char *at = parcel_get_bytes(p, &bytes);

    if (!bytes)
        return NULL;
    if (at[bytes - 1] == '\0')
        return at;
    p->is_broken = true;
    return NULL;
}

/* ---- files ----------------------------------------------------------------------------------- */

int
parcel_write(const struct parcel *p, int fd)
{
    if (p->is_broken)
        return -ENOMEM;
    for (size_t done = 0; done < p->used;) {
        ssize_t n = pwrite(fd, p->bytes + done, p->used - done, (off_t)done);

        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int
parcel_read(struct parcel *p, int fd)
{
    struct stat st;

    if (fstat(fd, &st))
        return -errno;
    char *to = parcel_room(p, (size_t)st.st_size);
    if (!to)
        return -ENOMEM;
    for (size_t done = 0; done < (size_t)st.st_size;) {
        ssize_t n = pread(fd, to + done, (size_t)st.st_size - done, (off_t)done);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return -EPIPE;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

void
parcel_free(struct parcel *p)
{
    free(p->bytes);
    *p = (struct parcel){0};
}
