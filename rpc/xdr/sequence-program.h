/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* sequence-program: several fops in one record, between a client and a brick that are both Kiln. The program
 * is offered in DUMP's list; stock peers neither offer nor use it. All numbers are XDR's, of 32 bits.
 *
 *   call    number of steps, then for each step: the fop, flags, two references, a credential, the arguments
 *   reply   number of steps, then for each step the results; no bytes: the step was not run
 *
 * Arguments and results are those of the fop's own record. The steps run one after another, and end with the
 * first one that fails, except for steps with SEQUENCE_ALWAYS.
 *
 * thread: any; nothing is kept. Decoded fields point into the record. */
#ifndef KILN_RPC_XDR_SEQUENCE_PROGRAM_H
#define KILN_RPC_XDR_SEQUENCE_PROGRAM_H

#include "rpc/xdr/xdr.h"

#define SEQUENCE_PROGRAM 1265200238 /* "Kiln" */
#define SEQUENCE_PROGRAM_VERSION 1
enum { SEQUENCE_NULL, SEQUENCE_RUN, SEQUENCE_PROCEDURE_COUNT };

enum { SEQUENCE_STEPS_MAX = 8, SEQUENCE_BYTES_MAX = 256 << 10 };

/* The step runs also if an earlier one has failed or was not run. */
#define SEQUENCE_ALWAYS 0x1u

struct sequence_step {
    uint32_t fop, flags;
    /* The step, counted from 1, whose new fd or object replaces the fd number or gfid of the arguments; 0:
     * none. It comes before this step. */
    uint32_t fd_of, gfid_of;
    char *cred; /* NULL: the credential of the record */
    uint32_t cred_bytes;
    char *args;
    uint32_t args_bytes;
};

/* Writes all but the arguments' bytes, for which the caller leaves room: xdr_padded(args_bytes). By the rules
 * of xdr-types.h. */
void xdr_put_sequence_step(struct xdr *x, const struct sequence_step *s);
/* The bytes of a step, arguments and all. */
static inline size_t
sequence_step_size(uint32_t cred_bytes, size_t args_bytes)
{
    return 16 + xdr_opaque_size(cred_bytes) + xdr_opaque_size(args_bytes);
}

/* Decodes a record's steps. Returns their number; 0: x->error is set. -EBADMSG: no step or too many of them,
 * an unknown fop or flag, a reference to a step that does not come before, bytes missing or left over. */
unsigned xdr_get_sequence(struct xdr *x, struct sequence_step out[SEQUENCE_STEPS_MAX]);

/* The results of `count` steps: for each, the bytes and their number, 0 if the step was not run. The decoder
 * wants exactly this many steps. */
struct sequence_result {
    char *bytes;
    uint32_t size;
};
size_t xdr_sequence_results_size(const struct sequence_result *r, unsigned count);
void xdr_put_sequence_results(struct xdr *x, const struct sequence_result *r, unsigned count);
void xdr_get_sequence_results(struct xdr *x, struct sequence_result *out, unsigned count);

#endif
