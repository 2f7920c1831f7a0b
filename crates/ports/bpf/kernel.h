/* Declarations that these programs need, as in <linux/bpf.h>: so neither kernel headers nor libbpf are needed to build
 * them. */
#pragma once
#include <stdbool.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
/* Written by the loader before the kernel verifies the program, which then drops the branches that are never taken. */
#define SETTING SECTION(".rodata") volatile const
/* Fields of a map's definition: numbers and types as the sizes and targets of pointers. */
#define NUMBER(name, value) int (*name)[value]
#define TYPE(name, type) typeof(type) *name

enum map_type { ARRAY = 2, LRU_HASH = 9, LPM_TRIE = 11, XSKMAP = 17 };
enum map_flags { NO_PREALLOC = 1 << 0, MMAPABLE = 1 << 10 };
enum verdict { DROP = 1, PASS = 2, SEND_BACK = 3 };

/* The context of an XDP program. */
struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static u64 (*const monotonic_ns)(void) = (void *)5;
static long (*const csum_diff)(void *from, u32 from_size, void *to, u32 to_size, u32 seed) = (void *)28;
static long (*const redirect_map)(void *map, u64 key, u64 verdict) = (void *)51;
static long (*const adjust_meta)(struct xdp_md *context, int bytes) = (void *)54;
/* Since Linux 6.1. */
static u64 (*const tai_ns)(void) = (void *)208;
/* bpf_xdp_metadata_rx_timestamp: the driver's answer is an error or 0. Since Linux 6.3, for programs that are bound to their
 * interface; the loader (src/bpf/bound.rs) puts the kernel's number of it in place of this one. */
static int (*const nic_stamp)(struct xdp_md *context, u64 *ns) = (void *)0x7fff0001;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define network16(value) __builtin_bswap16(value)
#define network32(value) __builtin_bswap32(value)
#define network64(value) __builtin_bswap64(value)
#else
#define network16(value) ((u16)(value))
#define network32(value) ((u32)(value))
#define network64(value) ((u64)(value))
#endif
#define host16(value) network16(value)
#define host32(value) network32(value)

/* Some helpers are for programs with a licence that is compatible with the GPL. */
SECTION("license") const char LICENSE[] = "Dual MIT/GPL";
