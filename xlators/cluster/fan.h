/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fan: one call to several children at once, for layers that keep parts or copies of an object on each of
 * them (cluster/replicate, cluster/disperse). Each child gets a separate call stack. The operation keeps
 * these stacks until all replies are examined, and then frees them together.
 *
 * This process may run out of memory for a call to a child or for a child's reply. Then no child has
 * failed. A change that must be the same everywhere goes to all children or to none (fan_send()): first all
 * calls are made, then all are wound; a call that cannot go out after others have is wound again until it
 * can. Calls that must not fail, marks and unlocks, wait for memory from the beginning (fan_press()).
 *
 * thread: all functions run in the coroutine of one operation; the struct lies on its stack. */
#ifndef KILN_CLUSTER_FAN_H
#define KILN_CLUSTER_FAN_H

#include "stack/coro-call.h"
#include "xlators/cluster/children.h"

struct fan {
    struct coro_group group;
    child_set sent;
    /* Valid after fan_wait(). good: children that succeeded, with a complete reply. unsent: children that
     * the call did not reach for lack of memory. unread: children that succeeded, but whose reply did not
     * fit into memory. Lack of memory is this process's failure: no child is blamed for it. */
    child_set good, unsent, unread;
    struct call_stack *stk[FAN_CHILDREN_MAX];
    int ret[FAN_CHILDREN_MAX]; /* as coro_call() returns; for children in `sent` */
};

/* The calls of a fan. A layer embeds this struct in its own. */
struct fan_maker {
    struct xlator *xl; /* the layer whose children are called */
    /* Returns the call for child i; NULL: out of memory. is_spare: from the reserve for lack of memory. */
    struct call_stack *(*make)(const struct fan_maker *m, unsigned i, bool is_spare);
};

/* Makes an empty fan of the running coroutine. */
void fan_begin(struct fan *f);
/* Begins another round of calls, to other children; fan_wait() is due again. */
void fan_again(struct fan *f);
/* Winds `stk`, which the fan then owns, to child i. `stk` may be NULL (out of memory). */
void fan_wind_to(struct fan *f, struct xlator *xl, unsigned i, struct call_stack *stk);
/* A call of a sequence, and the fan that owns the call. `always`: as for call_stack_join(). */
struct fan_step {
    struct fan *fan;
    struct call_stack *stk;
    bool always;
};
/* Winds the calls to child i in one message where that is possible (call_stack_join()). If any is NULL (out
 * of memory), none is wound, and all fans have the child in `unsent`. */
void fan_wind_joined(const struct fan_step *steps, unsigned count, struct xlator *xl, unsigned i);
/* Returns whether all of `to` take joined calls in one message. */
bool fan_takes_joined(const struct xlator *xl, child_set to);
/* Waits for the replies; called once for each fan_begin(). */
void fan_wait(struct fan *f);
/* Makes all calls, winds them and waits, for a change that either all of `to` must get or none. Returns 0
 * with the replies; or -ENOMEM: no call has gone out, and the fan is empty. If the call has reached any
 * child, it goes to all the rest as soon as memory is available. */
int fan_send(struct fan *f, const struct fan_maker *m, child_set to);
/* The second half of fan_send(), for calls that the caller has wound, and whose replies it has waited for. */
int fan_send_rest(struct fan *f, const struct fan_maker *m);
/* Does the same for a call that must succeed in any case: waits for memory. Only the results of the replies
 * are certain to remain: `stk` of a child may be NULL. */
void fan_press(struct fan *f, const struct fan_maker *m, child_set to);
/* The second half of fan_press(), as fan_send_rest(). */
void fan_press_rest(struct fan *f, const struct fan_maker *m);
/* Returns the children that have succeeded. */
static inline child_set
fan_done(const struct fan *f)
{
    return f->good | f->unread;
}
/* Returns whether a child was not asked or its reply was lost for lack of memory. The other replies then
 * prove nothing. */
static inline bool
fan_is_short(const struct fan *f)
{
    return f->unsent | f->unread;
}
/* Frees the calls and their replies. */
void fan_end(struct fan *f);
/* Copies results, attributes and dicts of child i's reply into the reply of `to`. Returns 0 or -ENOMEM. */
int fan_copy_reply(const struct fan *f, unsigned i, struct call_stack *to);
/* Winds `stk`, the caller's own call, to child i of `xl`, with `fd` in the place of the caller's (NULL: the
 * caller's). The reply is then in stk->reply, without the reply of a child that was asked before. Returns as
 * coro_call(). */
int fan_wind_own(struct call_stack *stk, struct xlator *xl, unsigned i, struct fd *fd);
/* Sets the reply to the caller's GETXATTR of pathinfo, "(<EC:V-disperse-0> PLACE PLACE)", with the path on
 * each child that has answered; `kind` is the word for the layer. Returns 0 or -ENOMEM. */
int fan_join_places(const struct fan *f, struct call_stack *to, const struct xlator *xl, const char *kind);
/* Returns the call's xdata, made on first use. NULL: out of memory. */
struct dict *call_xdata(struct call_stack *stk);

#endif
