/* A bare table walk: what finding a block by address costs at least. Three levels by address, 4 KiB a slot, then the block itself, which says
 * whether it holds the address, what it is and where. 32 bytes, so that two share a line of the cache. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct walk_block { uintptr_t base; uint64_t size; int32_t kind, device; uint64_t id; };

static inline const struct walk_block *walk_find(void ***root, uintptr_t a)
{
    void **mid = a >> 48 ? NULL : (void **)root[a >> 36];
    void **leaf = mid ? mid[a >> 24 & 0xfff] : NULL;
    const struct walk_block *found = leaf ? leaf[a >> 12 & 0xfff] : NULL;
    return found && a - found->base < found->size ? found : NULL;
}

/* The same behind an exported symbol, of a library of its own (walk.c): one that fills in what `cudaPointerGetAttributes` does. */
struct walk_answer { int32_t kind, device; const void *device_pointer, *host_pointer; };
void walk_over(void ***root);
int walk_ask(struct walk_answer *answer, const void *address);
