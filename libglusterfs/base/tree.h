/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* tree: an intrusive ordered tree that stays balanced even if peers choose the keys.
 *
 * A treap: a search tree by the order of its kind, a heap by each node's priority. The priority is a mix
 * of the node's address with a number that is drawn when the process starts, so no order of insertions
 * makes the tree deep; n nodes are about 2 ln n deep. Nothing is allocated. Each node counts its subtree;
 * a kind may keep more data about subtrees (such as the farthest end of an interval) in its `update`.
 *
 * Threads: the tree has no lock. The owner of the root must have one. */
#ifndef KILN_BASE_TREE_H
#define KILN_BASE_TREE_H

#include <stddef.h>
#include <stdint.h>

/* Embedded in its owner; contents undefined while it is in no tree. */
struct tree_node {
    struct tree_node *left, *right;
    uint32_t priority;
    uint32_t count; /* nodes of this subtree */
};

struct tree_kind {
    /* <0, >0; 0 only for a node and itself. The compared values must not change while the node is in a
     * tree. */
    int (*order)(const struct tree_node *a, const struct tree_node *b);
    /* Recomputes the node's data about its subtree; the children's data is right already. NULL: no such
     * data. */
    void (*update)(struct tree_node *n);
};

/* The general case of tree_insert() and tree_remove(). */
void tree_insert_among(struct tree_node **root, struct tree_node *n, const struct tree_kind *kind);
void tree_remove_among(struct tree_node **root, struct tree_node *n, const struct tree_kind *kind);

/* The number that the process drew; set before main(). */
extern uint64_t tree_seed;

/* Inserts a node. Inline because most trees have one node: inserting into and removing from an empty tree
 * takes a few stores. */
static inline void
tree_insert(struct tree_node **root, struct tree_node *n, const struct tree_kind *kind)
{
    uint64_t x = (uintptr_t)n ^ tree_seed;

    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    n->priority = (uint32_t)((x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53) >> 32);
    n->left = n->right = NULL;
    n->count = 1;
    if (*root) {
        tree_insert_among(root, n, kind);
        return;
    }
    *root = n;
    if (kind->update)
        kind->update(n);
}

/* Removes `n`, which must be in the tree. */
static inline void
tree_remove(struct tree_node **root, struct tree_node *n, const struct tree_kind *kind)
{
    if (n->count == 1 && *root == n)
        *root = NULL;
    else
        tree_remove_among(root, n, kind);
}

/* The first and the last node; NULL: empty. */
struct tree_node *tree_first(struct tree_node *root);
struct tree_node *tree_last(struct tree_node *root);

/* Tells on which side of a place in the order a node is: <0 before it. Must agree with the order of the
 * nodes. */
typedef int (*tree_side)(const struct tree_node *n, const void *arg);
/* Returns the first node that is not before the place; NULL: all nodes are before it. */
struct tree_node *tree_lower(struct tree_node *root, tree_side side, const void *arg);
/* Returns the number of nodes before the place. */
uint32_t tree_rank(const struct tree_node *root, tree_side side, const void *arg);

#endif
