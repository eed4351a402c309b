/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A mount with open files, for unit tests of the hand-over to a newer program (saved.c).
 *
 *      handover_begin(options)     objects at the brick; the kernel knows them, with files, a lock, a listing
 *      handover_freeze()           as the old program does: 1 if the mount can be saved
 *      handover_exec()             saves the mount and ends the old program
 *      handover_next(options)      the new program: the result of fuse_go_on() */
#ifndef KILN_MOUNT_FUSE_TEST_HANDOVER_H
#define KILN_MOUNT_FUSE_TEST_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parcel.h"
#include "stack/call-stack.h"
#include "xlators/cluster/test-children.h"

struct fuse_mount;

enum { LOCK_OWNER = 77 };

/* The objects that the kernel knows. The kernel has all of them open but /e. */
struct known {
    uint64_t file, handle;            /* /f with "contents", and with a lock of LOCK_OWNER */
    uint64_t program, program_handle; /* /s with a set-user-id bit */
    uint64_t folder, folder_handle;   /* /d with five names */
    uint64_t other_folder;            /* /e */
    uint64_t root_handle;
    uint64_t list_offset; /* at which an unfinished listing of /d continues */
};
extern struct known known;

extern unsigned calls_of[FOP_COUNT]; /* number of calls of each operation at the brick */
extern int32_t latest_open_pid;      /* the caller's pid in the latest OPEN */
extern char latest_name[128];        /* the latest name of an xattr */
extern struct parcel saved;          /* of the old program */
extern bool only_restores;           /* the next mounts end after fuse_restore() */

/* Counts a call: kernel.lie of handover_begin(). */
void note_call(struct call_stack *stk, int *ret);
void calls_clear(void);

/* Requests; the functions return the errno. */
void put_read(uint32_t opcode, uint64_t number, uint64_t fh, uint64_t offset, uint32_t size);
void put_lock(uint32_t opcode, uint64_t owner);
int read_file(void);
bool file_has(const char *text);
int list_folder(uint64_t offset);
int write_to(uint64_t number, uint64_t fh, uint32_t write_flags);
int getattr_of(uint64_t number);
int flush_file(void);
void close_all(void);
/* Sends SETLKW with `more_bytes` behind the request; the brick does not answer until scene_release_held(). */
void wait_for_lock(size_t more_bytes);

struct stored_object *stored(const char *path);
void make_objects(void);
/* Removes the name of /f, as another client does. */
void remove_file(void);

/* Makes the next mount one of a program that runs first in its process. handover_begin() does so, too. */
void handover_first(void);
void handover_begin(const char *options);
struct fuse_mount *mount_now(void);
/* Returns the number of files that the new program could not open again. */
unsigned lost_files(void);
/* Begins a freeze, and looks for 200 ms: returns 1, 0, or -errno. */
int handover_freeze(void);
int handover_look(void);
void handover_exec(void);
int handover_next(const char *options);
/* All three steps; no reply goes to the kernel. */
void upgrade(const char *options);
void check_that_mount_serves(void);

#endif
