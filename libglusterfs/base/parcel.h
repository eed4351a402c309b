/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* parcel: numbers and bytes one after another in memory, to be read in the same order by another process of
 * this machine.
 *
 * An error is kept and reported at the end: after a failed step, puts do nothing and gets return zeros and
 * empty texts. The reader therefore checks is_broken before an allocation by a count, and no bytes of a
 * parcel lead the reader beyond the parcel's end.
 *
 * Lengths are bytes. thread: one at a time for each parcel. */
#ifndef KILN_BASE_PARCEL_H
#define KILN_BASE_PARCEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct parcel {
    char *bytes;       /* malloc; freed by parcel_free() */
    size_t used, room; /* `used`: all bytes of the parcel */
    size_t at;         /* the reader's place */
    bool is_broken;    /* no memory to write, or the parcel ended too early or has bytes that do not fit */
};

/* Appends a number in the byte order of this machine. */
void parcel_put_u32(struct parcel *p, uint32_t value);
/* The same with 64 bits. */
void parcel_put_u64(struct parcel *p, uint64_t value);
/* A length and that many bytes; `from` may be NULL if `count` is 0. */
void parcel_put_bytes(struct parcel *p, const void *from, size_t count);
/* The same without the length: for a piece whose length the caller has put. */
void parcel_put_raw(struct parcel *p, const void *from, size_t count);
/* A text with its end, or NULL. */
void parcel_put_text(struct parcel *p, const char *text);
/* Leaves room for a number that is known only later; returns the place for parcel_set_u32(). */
size_t parcel_reserve_u32(struct parcel *p);
void parcel_set_u32(struct parcel *p, size_t place, uint32_t value);

/* The next number. */
uint32_t parcel_get_u32(struct parcel *p);
/* The same with 64 bits. */
uint64_t parcel_get_u64(struct parcel *p);
/* Points into the parcel; *count bytes, 0 after an error. */
const void *parcel_get_bytes(struct parcel *p, size_t *count);
/* Copies exactly `count` bytes; other lengths break the parcel. */
void parcel_get_exactly(struct parcel *p, void *to, size_t count);
/* Points into the parcel. NULL: NULL was put, or an error. */
const char *parcel_get_text(struct parcel *p);

/* Writes the whole parcel to a file at offset 0, or reads a whole file into an empty parcel. 0 or -errno. */
int parcel_write(const struct parcel *p, int fd);
int parcel_read(struct parcel *p, int fd);
void parcel_free(struct parcel *p);

#endif
