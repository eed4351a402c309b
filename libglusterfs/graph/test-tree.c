/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A graph that is a tree: a layer with two children winds to the child it names, or copies of a call to
 * both, and gets the events of each. The types are the test's own (the linker puts its table in front of
 * the product's). */
#include "graph/graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/read-section.h"
#include "data/dict.h"
#include "fs/fd.h"
#include "fs/inode.h"
#include "graph/pools.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"

static struct graph *graph;
static struct xlator *spread; /* the layer with two children */

/* ---- the layers ------------------------------------------------------------------------------ */

struct leaf_conf {
    int64_t number;
};

static const struct option leaf_options[] = {OPT_INT(struct leaf_conf, number, "number", "0", 0, 100),
                                             OPT_END};
static const struct option no_options[] = {OPT_MUST_BE("feature", "off"), OPT_END};

/* Answers with its number, and leaves a mark in the call's xdata. */
static xl_verdict
leaf_any(struct xlator *xl, struct call_stack *stk)
{
    const struct leaf_conf *conf = xlator_conf(xl);

    if (stk->call.xdata && dict_set_int(stk->call.xdata, DICT_KEY_LINK_COUNT, conf->number))
        return -ENOMEM;
    stk->reply.op_ret = (int32_t)conf->number;
    return XL_DONE;
}

struct fan_out {
    struct call_stack *stk;
    unsigned left;
    int32_t sum;
};

static void
one_done(struct call_stack *fork)
{
    struct fan_out *o = fork->owner;
    int64_t said = 0;

    ck_assert_int_eq(dict_get_int(fork->call.xdata, DICT_KEY_LINK_COUNT, &said), 0);
    ck_assert_int_eq(said, fork->reply.op_ret);
    ck_assert_ptr_ne(fork->call.xdata, o->stk->call.xdata);
    o->sum += fork->reply.op_ret;
    call_stack_free(fork);
    if (--o->left)
        return;
    struct call_stack *stk = o->stk;
    stk->reply.op_ret = o->sum;
    call_stack_unwind(stk);
}

/* Winds to all children. The state lies in the call's own memory. */
static xl_verdict
spread_lookup(struct xlator *xl, struct call_stack *stk)
{
    struct fan_out *o = arena_alloc(&stk->arena, sizeof *o);
    struct call_stack *forks[2];

    *o = (struct fan_out){.stk = stk, .left = xl->child_count};
    for (unsigned i = 0; i < xl->child_count; i++) {
        forks[i] = call_stack_fork(stk, one_done, o);
        ck_assert_ptr_nonnull(forks[i]);
    }
    for (unsigned i = 0, n = xl->child_count; i < n; i++)
        call_stack_wind(forks[i], xl->children[i]);
    return XL_OWNED;
}

/* Winds to the child that `size` names. */
static xl_verdict
spread_stat(struct xlator *xl, struct call_stack *stk)
{
    if (stk->call.size >= xl->child_count)
        return -ENODEV;
    call_stack_wind_child(stk, xl->children[stk->call.size]);
    return XL_OWNED;
}

static bool is_down[2];
static unsigned connecting;

/* Reports "down" when all children are down. */
static void
spread_notify(struct xlator *xl, struct xlator *child, enum child_event event)
{
    unsigned i = child == xl->children[0] ? 0 : 1;

    ck_assert_ptr_eq(child, xl->children[i]);
    connecting += event == CHILD_CONNECTING;
    bool was_down = is_down[0] && is_down[1];
    if (event != CHILD_CONNECTING)
        is_down[i] = event == CHILD_DOWN;
    bool is_all = is_down[0] && is_down[1];
    if (is_all != was_down)
        xlator_tell_parent(xl, is_all ? CHILD_DOWN : CHILD_UP);
}

static bool
spread_event(struct xlator *xl, const struct layer_event *e)
{
    if (e->kind == EVENT_CHILD)
        spread_notify(xl, e->child, e->change);
    return e->kind == EVENT_CHILD;
}

struct spread_conf {
    bool is_on;
};

static const struct option spread_options[] = {OPT_BOOL(struct spread_conf, is_on, "spread", "on"), OPT_END};

static bool
spread_is_active(const void *conf)
{
    return ((const struct spread_conf *)conf)->is_on;
}

static bool
never(const void *conf)
{
    (void)conf;
    return false;
}

static const struct xlator_type types[] = {
    {.name = "test/leaf",
     .options = leaf_options,
     .conf_size = sizeof(struct leaf_conf),
     .ops = &(const struct xlator_ops){.any = leaf_any}},
    {.name = "test/line", .options = no_options},
    {.name = "test/spread",
     .options = spread_options,
     .conf_size = sizeof(struct spread_conf),
     .is_active = spread_is_active,
     .traits = LAYER_FANS_OUT,
     .event = spread_event,
     .ops = &(const struct xlator_ops){.lookup = spread_lookup, .stat = spread_stat}},
    {.name = "test/absent", .options = no_options, .traits = LAYER_FANS_OUT, .is_active = never},
};

static const struct xlator_type *
test_type_find(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    }
    return NULL;
}

/* ---- the tree -------------------------------------------------------------------------------- */

#define LEAVES                                                                                               \
    "volume a\n type test/leaf\n option number 3\nend-volume\n"                                              \
    "volume b\n type test/leaf\n option number 40\nend-volume\n"
#define TREE                                                                                                 \
    LEAVES "volume line\n type test/line\n subvolumes a\nend-volume\n"                                       \
           "volume gone\n type debug/nothing\n subvolumes b\nend-volume\n"                                   \
           "volume spread\n type test/spread\n subvolumes line gone\nend-volume\n"                           \
           "volume top\n type test/line\n subvolumes spread\nend-volume\n"

static struct volfile *
parsed(const char *text)
{
    char error[256] = "";
    struct volfile *v = volfile_parse("tree.vol", text, strlen(text), error, sizeof error);

    ck_assert_msg(v != NULL, "%s", error);
    return v;
}

static void
setup(void)
{
    char error[256] = "";

    ck_assert_int_eq(graph_pools_init(), 0);
    rcu_register_thread();
    graph = graph_new(test_type_find, parsed(TREE), NULL, error, sizeof error);
    ck_assert_msg(graph != NULL, "%s", error);
    spread = graph->top->children[0];
    memset(is_down, 0, sizeof is_down);
    connecting = 0;
}

static void
teardown(void)
{
    uint16_t owner = graph->owner;

    graph_free(graph);
    ck_assert_int_eq(mem_owner_balance(owner, NULL), 0);
    rcu_unregister_thread();
}

START_TEST(layers_are_linked_as_in_the_volfile)
{
    /* each before the layers below it */
    static const char *const names[] = {"top", "spread", "line", "b", "a"};

    ck_assert_uint_eq(graph->layer_count, 5);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_str_eq(graph->layers[i].name, names[i]);
    ck_assert_ptr_null(graph->top->parent);
    ck_assert_uint_eq(graph->top->child_count, 1);
    ck_assert_str_eq(spread->name, "spread");
    ck_assert_uint_eq(spread->child_count, 2);
    ck_assert_str_eq(spread->children[0]->name, "line");
    ck_assert_str_eq(spread->children[1]->name, "b"); /* the debug layer between is passed over */
    ck_assert_ptr_eq(spread->children[1]->parent, spread);
    ck_assert_str_eq(spread->children[0]->children[0]->name, "a");
    /* A line costs as before: one step to the layer that implements the fop. */
    ck_assert_ptr_eq(xlator_next(graph->top, FOP_stat), spread);
    /* the layer that fans out does not implement it, so there is no next layer */
    ck_assert_ptr_null(xlator_next(graph->top, FOP_open));
    ck_assert_ptr_null(xlator_next(spread, FOP_stat));
}
END_TEST

/* ---- calls ----------------------------------------------------------------------------------- */

static int answers, last_ret, last_errno;

static void
answered(struct call_stack *stk)
{
    answers++;
    last_ret = stk->reply.op_ret;
    last_errno = stk->reply.op_errno;
    call_stack_free(stk);
}

static void
wind(enum fop fop, uint64_t size)
{
    struct call_stack *stk = call_stack_new(answered, NULL);
    struct inode *root = inode_root(graph->inodes);

    ck_assert_ptr_nonnull(stk);
    answers = 0;
    stk->call.fop = fop;
    stk->call.size = size;
    stk->call.loc.inode = inode_ref(root);
    stk->call.fd = fd_new(root, NULL, 0, true);
    stk->call.xdata = dict_new(&stk->arena);
    inode_unref(root);
    call_stack_wind(stk, graph->top);
    ck_assert_int_eq(answers, 1);
}

START_TEST(a_call_goes_to_the_named_child)
{
    wind(FOP_stat, 0);
    ck_assert_int_eq(last_ret, 3);
    wind(FOP_stat, 1);
    ck_assert_int_eq(last_ret, 40);
    wind(FOP_stat, 2);
    ck_assert_int_eq(last_errno, ENODEV);
    wind(FOP_open, 0);
    ck_assert_int_eq(last_errno, EOPNOTSUPP);
}
END_TEST

START_TEST(copies_of_a_call_reach_both_children)
{
    wind(FOP_lookup, 0);
    ck_assert_int_eq(last_ret, 43);
}
END_TEST

/* ---- events ---------------------------------------------------------------------------------- */

static int events;
static enum child_event last_event;
static const struct gfid changed = {{9}};
static uint32_t changes; /* flags of EVENT_INVALIDATED */

static void
watch(struct graph *g, const struct layer_event *e)
{
    ck_assert_ptr_eq(g, graph);
    if (e->kind == EVENT_CHILD) {
        events++;
        last_event = e->change;
    } else {
        ck_assert_int_eq(e->kind, EVENT_INVALIDATED);
        ck_assert(gfid_equal(e->gfid, &changed));
        changes |= e->flags;
    }
}

START_TEST(events_go_up_to_layers_with_notify)
{
    struct xlator *a = spread->children[0]->children[0], *b = spread->children[1];

    events = 0;
    graph->watch = watch;
    xlator_tell_parent(a, CHILD_DOWN); /* through the line, which has no notify */
    ck_assert_int_eq(events, 0);
    ck_assert(is_down[0] && !is_down[1]);
    xlator_tell_parent(b, CHILD_DOWN);
    ck_assert_int_eq(events, 1);
    ck_assert_int_eq(last_event, CHILD_DOWN);
    ck_assert(!atomic_load(&graph->is_child_up));
    xlator_tell_parent(b, CHILD_CONNECTING);
    ck_assert_uint_eq(connecting, 1);
    ck_assert_int_eq(events, 1);
    xlator_tell_parent(a, CHILD_UP);
    ck_assert_int_eq(events, 2);
    ck_assert_int_eq(last_event, CHILD_UP);
    ck_assert(atomic_load(&graph->is_child_up));
    xlator_tell_invalidated(a, &changed, 0x18);
    ck_assert_uint_eq(changes, 0x18);
    xlator_tell_contended(a, &changed, "domain"); /* is not for the watch */
    ck_assert_int_eq(events, 2);
    ck_assert(atomic_load(&graph->is_child_up));
}
END_TEST

/* ---- options --------------------------------------------------------------------------------- */

START_TEST(reconfigure_changes_options_of_all_layers)
{
    char error[256] = "", *text = strdup(TREE), *at = strstr(text, "number 40");

    memcpy(at, "number 50", 9);
    ck_assert_int_eq(graph_reconfigure(graph, parsed(text), error, sizeof error), 0);
    wind(FOP_lookup, 0);
    ck_assert_int_eq(last_ret, 53);
    memcpy(strstr(text, "line gone"), "gone line", 9);
    ck_assert_int_eq(graph_reconfigure(graph, parsed(text), error, sizeof error), -EINVAL);
    free(text);
}
END_TEST

START_TEST(a_layer_that_fans_out_cannot_be_switched_off)
{
    static const char off[] =
        LEAVES "volume line\n type test/line\n subvolumes a\nend-volume\n"
               "volume gone\n type debug/nothing\n subvolumes b\nend-volume\n"
               "volume spread\n type test/spread\n option spread off\n subvolumes line gone\nend-volume\n"
               "volume top\n type test/line\n subvolumes spread\nend-volume\n";
    char error[256] = "";

    ck_assert_int_eq(graph_reconfigure(graph, parsed(off), error, sizeof error), -EINVAL);
    ck_assert_msg(strstr(error, "volume spread (test/spread) cannot be switched off: it has 2 subvolumes"),
                  "%s", error);
    wind(FOP_lookup, 0); /* as before */
    ck_assert_int_eq(last_ret, 43);
    ck_assert_ptr_null(graph_new(test_type_find, parsed(off), NULL, error, sizeof error));
}
END_TEST

/* ---- volfiles that are no tree --------------------------------------------------------------- */

static const struct bad_tree {
    const char *text, *says;
} bad_trees[] = {
    {LEAVES "volume top\n type test/line\n subvolumes a b\nend-volume\n", "has 2 subvolumes"},
    {LEAVES "volume top\n type test/spread\n subvolumes a a\nend-volume\n", "subvolume twice"},
    {LEAVES "volume x\n type test/line\n subvolumes a\nend-volume\nvolume top\n type test/spread\n "
            "subvolumes x a\nend-volume\n",
     "a is a subvolume twice"},
    {LEAVES "volume top\n type test/absent\n subvolumes a b\nend-volume\n", "cannot be left out"},
    {LEAVES "volume top\n type debug/nothing\n subvolumes a b\nend-volume\n",
     "type debug/nothing is not built"},
    {LEAVES "volume top\n type test/unheard-of\n subvolumes a\nend-volume\n",
     "type test/unheard-of is not built"},
};

START_TEST(a_volfile_that_is_no_tree_is_refused)
{
    const struct bad_tree *t = &bad_trees[_i];
    char error[256] = "";

    ck_assert_ptr_null(graph_new(test_type_find, parsed(t->text), NULL, error, sizeof error));
    ck_assert_msg(strstr(error, t->says), "%s", error);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("tree");
    TCase *t = tcase_create("tree");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, layers_are_linked_as_in_the_volfile);
    tcase_add_test(t, a_call_goes_to_the_named_child);
    tcase_add_test(t, copies_of_a_call_reach_both_children);
    tcase_add_test(t, events_go_up_to_layers_with_notify);
    tcase_add_test(t, reconfigure_changes_options_of_all_layers);
    tcase_add_test(t, a_layer_that_fans_out_cannot_be_switched_off);
    tcase_add_loop_test(t, a_volfile_that_is_no_tree_is_refused, 0, sizeof bad_trees / sizeof bad_trees[0]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
