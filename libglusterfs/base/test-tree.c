/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "base/tree.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <urcu/compiler.h>

enum { N = 20000 };

struct item {
    struct tree_node node;
    int key;
    int64_t sum; /* sum over the subtree's keys */
    bool is_in;
};

static struct item items[N];

static struct item *
item_of(const struct tree_node *n)
{
    return caa_container_of(n, struct item, node);
}

static int
by_key(const struct tree_node *a, const struct tree_node *b)
{
    return item_of(a)->key < item_of(b)->key ? -1 : item_of(a)->key > item_of(b)->key;
}

static void
add_up(struct tree_node *n)
{
    item_of(n)->sum =
        item_of(n)->key + (n->left ? item_of(n->left)->sum : 0) + (n->right ? item_of(n->right)->sum : 0);
}

static const struct tree_kind kind = {.order = by_key, .update = add_up};

static int
before(const struct tree_node *n, const void *key)
{
    return item_of(n)->key < *(const int *)key ? -1 : 0;
}

static unsigned
check(const struct tree_node *n, const struct tree_node *low, const struct tree_node *high)
{
    if (!n)
        return 0;
    ck_assert(!low || by_key(low, n) < 0);
    ck_assert(!high || by_key(n, high) < 0);
    ck_assert(!n->left || n->left->priority <= n->priority);
    ck_assert(!n->right || n->right->priority <= n->priority);
    unsigned left = check(n->left, low, n), right = check(n->right, n, high);
    uint32_t count = 1 + (n->left ? n->left->count : 0) + (n->right ? n->right->count : 0);
    int64_t sum =
        item_of(n)->key + (n->left ? item_of(n->left)->sum : 0) + (n->right ? item_of(n->right)->sum : 0);

    ck_assert_uint_eq(n->count, count);
    ck_assert_int_eq(item_of(n)->sum, sum);
    return 1 + (left > right ? left : right);
}

/* Inserts in order, the worst case of an unbalanced tree. */
START_TEST(inserting_in_order_is_not_deep)
{
    struct tree_node *root = NULL;

    for (int i = 0; i < N; i++) {
        items[i].key = i;
        tree_insert(&root, &items[i].node, &kind);
    }
    ck_assert_uint_eq(root->count, N);
    ck_assert_uint_lt(check(root, NULL, NULL), 64);
    for (int i = 0; i < N; i += 1000) {
        ck_assert_ptr_eq(tree_lower(root, before, &i), &items[i].node);
        ck_assert_uint_eq(tree_rank(root, before, &i), (unsigned)i);
    }
    for (int i = 0; i < N; i++) {
        ck_assert_ptr_eq(tree_first(root), &items[i].node);
        tree_remove(&root, &items[i].node, &kind);
    }
    ck_assert_ptr_null(root);
}
END_TEST

START_TEST(the_tree_agrees_with_an_array)
{
    struct tree_node *root = NULL;
    unsigned in = 0;

    srandom(7);
    for (int i = 0; i < N; i++) {
        items[i].key = i * 2;
        items[i].is_in = false;
    }
    for (int round = 0; round < 200000; round++) {
        struct item *one = &items[random() % 300];

        if (one->is_in)
            tree_remove(&root, &one->node, &kind);
        else
            tree_insert(&root, &one->node, &kind);
        one->is_in = !one->is_in;
        in += one->is_in ? 1 : -1u;
        ck_assert_uint_eq(root ? root->count : 0, in);
        if (round % 1000)
            continue;
        check(root, NULL, NULL);
        int key = (int)(random() % 600), at = (key + 1) / 2;
        while (at < 300 && !items[at].is_in)
            at++;
        ck_assert_ptr_eq(tree_lower(root, before, &key), at < 300 ? &items[at].node : NULL);
    }
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("tree");
    TCase *t = tcase_create("tree");

    tcase_add_test(t, inserting_in_order_is_not_deep);
    tcase_add_test(t, the_tree_agrees_with_an_array);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
