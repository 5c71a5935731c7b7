/* Zeroed memory for vectorised loops: aligned to a cache line, in huge pages if it is large; and sizes of blocks. */
#ifndef VARIFOLD_ALIGNED_H
#define VARIFOLD_ALIGNED_H

#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <malloc.h>
#include <sys/mman.h>
#endif

static size_t varifold_block_size(void *block)
{
#if defined(__linux__)
    return malloc_usable_size(block);
#else
    return 0;   /* unknown: a block that grows is counted again */
#endif
}

static void *varifold_aligned(size_t bytes)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const size_t line = 64, page = (size_t) 1 << 21;
    void *block = NULL;
    if (posix_memalign(&block, bytes < 2 * page ? line : page, bytes ? bytes : 1))
        return NULL;
    if (bytes >= 2 * page) {
        /* Discarded pages read as zeros, and take no memory before they are written to. */
        const size_t pages = bytes / page * page;
        madvise(block, bytes, MADV_HUGEPAGE);
        if (madvise(block, pages, MADV_DONTNEED) == 0) {
            memset((char *) block + pages, 0, bytes - pages);
            return block;
        }
    }
    return memset(block, 0, bytes);
#else
    return calloc(1, bytes ? bytes : 1);
#endif
}

#endif
