/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* tree: a treap. Recursion is as deep as the tree, some fifty levels with a million nodes. */
#include "base/tree.h"

#include <sys/random.h>

uint64_t tree_seed;

static void __attribute__((constructor))
tree_draw_seed(void)
{
    if (getrandom(&tree_seed, sizeof tree_seed, GRND_NONBLOCK) != sizeof tree_seed)
        tree_seed = (uintptr_t)&tree_seed; /* early boot: better than a constant */
}

static uint32_t
node_count(const struct tree_node *n)
{
    return n ? n->count : 0;
}

static void
node_update(struct tree_node *n, const struct tree_kind *kind)
{
    n->count = 1 + node_count(n->left) + node_count(n->right);
    if (kind->update)
        kind->update(n);
}

/* Splits the tree: nodes before `at` go to *left, the others to *right. */
static void
tree_split(struct tree_node *root, const struct tree_node *at, struct tree_node **left,
           struct tree_node **right, const struct tree_kind *kind)
{
    if (!root) {
        *left = *right = NULL;
        return;
    }
    if (kind->order(root, at) < 0) {
        *left = root;
        tree_split(root->right, at, &root->right, right, kind);
    } else {
        *right = root;
        tree_split(root->left, at, left, &root->left, kind);
    }
    node_update(root, kind);
}

/* Joins two trees; all nodes of `a` are before all nodes of `b`. */
static struct tree_node *
tree_merge(struct tree_node *a, struct tree_node *b, const struct tree_kind *kind)
{
    if (!a || !b)
        return a ? a : b;
    if (a->priority > b->priority) {
        a->right = tree_merge(a->right, b, kind);
        node_update(a, kind);
        return a;
    }
    b->left = tree_merge(a, b->left, kind);
    node_update(b, kind);
    return b;
}

void
tree_insert_among(struct tree_node **at, struct tree_node *n, const struct tree_kind *kind)
{
    struct tree_node *root = *at;

    if (root && root->priority >= n->priority) {
        tree_insert_among(kind->order(n, root) < 0 ? &root->left : &root->right, n, kind);
        node_update(root, kind);
        return;
    }
    tree_split(root, n, &n->left, &n->right, kind);
    node_update(n, kind);
    *at = n;
}

void
tree_remove_among(struct tree_node **at, struct tree_node *n, const struct tree_kind *kind)
{
    struct tree_node *root = *at;

    if (root == n) {
        *at = tree_merge(n->left, n->right, kind);
        return;
    }
    tree_remove_among(kind->order(n, root) < 0 ? &root->left : &root->right, n, kind);
    node_update(root, kind);
}

struct tree_node *
tree_first(struct tree_node *root)
{
    while (root && root->left)
        root = root->left;
    return root;
}

struct tree_node *
tree_last(struct tree_node *root)
{
    while (root && root->right)
        root = root->right;
    return root;
}

struct tree_node *
tree_lower(struct tree_node *root, tree_side side, const void *arg)
{
    struct tree_node *found = NULL;

    while (root) {
        if (side(root, arg) < 0) {
            root = root->right;
        } else {
            found = root;
            root = root->left;
        }
    }
    return found;
}

uint32_t
tree_rank(const struct tree_node *root, tree_side side, const void *arg)
{
    uint32_t before = 0;

    while (root) {
        if (side(root, arg) < 0) {
            before += 1 + node_count(root->left);
            root = root->right;
        } else {
            root = root->left;
        }
    }
    return before;
}
