/* The bare table walk as a library: what a pointer query costs at least where it is a call. */
#include "walk.h"

static void ***root;

void walk_over(void ***table)
{
    root = table;
}

int walk_ask(struct walk_answer *answer, const void *address)
{
    if (!answer) return 1;
    const struct walk_block *found = walk_find(root, (uintptr_t)address);
    *answer = found ? (struct walk_answer){found->kind, found->device, address, found->kind == 2 ? NULL : address}
                    : (struct walk_answer){0, -2, NULL, address};
    return 0;
}
