/* Decisions about requests (allow list, rates, loops): the rules of `Reflector` in crates/roundtrip, in their order. */
#pragma once
#include "request.h"

/* Outcomes of requests, which are also the indices of their counters in `numbers`. */
enum outcome {
	REFLECTED,
	PASSED,
	SOURCE_PORT,
	NOBODY,
	NOT_ALLOWED,
	RATE,
	LOOP,
	COOKIE,
	REPLY,
	WRONG,
	OUTCOMES,
};

/* Numbers that this process and the programs share. */
struct numbers {
	/* CLOCK_TAI minus CLOCK_REALTIME. */
	u64 tai_offset_ns;
	/* The clock's error estimate in the format of packets. */
	u64 error;
	u64 counts[OUTCOMES];
};

struct prefix {
	u32 bits;
	/* Part of the address in bytes: no IPv6 prefix contains IPv4. */
	u32 family;
	u32 address[4];
};

struct flow {
	struct address client;
	u16 client_port;
	u16 port;
};

/* The fingerprints of four payloads, the latest first. */
struct payloads {
	u64 latest[4];
};

struct {
	NUMBER(type, ARRAY);
	NUMBER(max_entries, 1);
	NUMBER(map_flags, MMAPABLE);
	TYPE(key, u32);
	TYPE(value, struct numbers);
} numbers SECTION(".maps");

struct {
	NUMBER(type, LPM_TRIE);
	NUMBER(max_entries, 1);
	NUMBER(map_flags, NO_PREALLOC);
	TYPE(key, struct prefix);
	TYPE(value, u8);
} allowed SECTION(".maps");

/* Times at which the next request of each client is due. */
struct {
	NUMBER(type, LRU_HASH);
	NUMBER(max_entries, 1 << 16);
	TYPE(key, struct address);
	TYPE(value, u64);
} clients SECTION(".maps");

/* Times at which the next echo of each flow that may be in a loop is due. */
struct {
	NUMBER(type, LRU_HASH);
	NUMBER(max_entries, 1 << 14);
	TYPE(key, struct flow);
	TYPE(value, u64);
} flows SECTION(".maps");

enum { PLACES = 1 << 12, COMPARED = 64 };

struct {
	NUMBER(type, ARRAY);
	NUMBER(max_entries, PLACES);
	TYPE(key, u32);
	TYPE(value, struct payloads);
} echoed SECTION(".maps");

SETTING bool IS_RESTRICTED;
SETTING bool IS_LIMITED;
SETTING u64 LIMIT_INTERVAL_NS;
SETTING u64 LIMIT_SLACK_NS;
SETTING bool IS_REPEAT_LIMITED;
SETTING u64 REPEAT_INTERVAL_NS;
SETTING u64 REPEAT_SLACK_NS;
SETTING bool HAS_COOKIE;
SETTING u64 COOKIE_BYTES;
/* A random seed, so that others do not know which payloads share a place. */
SETTING u64 SEED;

/* Whether the source is a unicast address. */
INLINE bool is_somebody(const struct request *request)
{
	const u32 *from = request->source;

	if (request->v6)
		return *(u8 *)from != 0xff && (from[0] | from[1] | from[2] | from[3]);
	return (from[0] & network32(0xf0000000)) != network32(0xe0000000) && from[0] && ~from[0];
}

INLINE bool is_allowed(const struct request *request)
{
	struct prefix key = { 32 + (request->v6 ? 128 : 32), request->v6 ? 16 : 4, {} };

#pragma unroll
	for (int at = 0; at < (request->v6 ? 4 : 1); at++)
		key.address[at] = request->source[at];
	return map_lookup(&allowed, &key);
}

/* `Limit::admits`. Requests on several CPUs at the same moment may count as one. */
INLINE bool admits(void *map, const void *key, u64 interval_ns, u64 slack_ns)
{
	u64 now_ns = monotonic_ns(), next_ns = now_ns + interval_ns;
	u64 *due_ns = map_lookup(map, key);

	if (!due_ns) {
		map_update(map, key, &next_ns, 0);
		return true;
	}
	if (*due_ns > now_ns + slack_ns)
		return false;
	*due_ns = *due_ns > now_ns ? *due_ns + interval_ns : next_ns;
	return true;
}

INLINE bool is_within_limit(const struct request *request)
{
	struct address client = canonical(request->v6, request->source);

	/* A host takes any address within the 64 bits that its network has. */
	if (request->v6)
		client.words[2] = client.words[3] = 0;
	return admits(&clients, &client, LIMIT_INTERVAL_NS, LIMIT_SLACK_NS);
}

/* REFLECTED, or the reason for a refusal. */
INLINE enum outcome judge(const struct request *request)
{
	u16 port = request->udp->source;

	if (request->services->of_port[port] != NOTHING || host16(port) < FIRST_CLIENT_PORT)
		return SOURCE_PORT;
	if (!is_somebody(request))
		return NOBODY;
	if (IS_RESTRICTED && !is_allowed(request))
		return NOT_ALLOWED;
	if (IS_LIMITED && !is_within_limit(request))
		return RATE;
	return REFLECTED;
}

/* A word's part of a hash. Parts are added, so that no multiplication waits for the one before. */
INLINE u64 part(u64 word, u64 factor)
{
	return (word ^ word >> 32) * factor;
}

/* Hash of the flow, the payload's length and its first bytes; never 0. */
INLINE u64 fingerprint(const struct request *request, const struct flow *flow)
{
	static const u64 factors[] = {
		0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93,
		0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53, 0xa0761d6478bd642f, 0xe7037ed1a0b428db,
	};
	u32 length = request->length - sizeof(struct udp);
	const u32 *client = flow->client.words;
	const u8 *at = request->payload;
	u64 rest = 0, hash = SEED;

	hash += part((u64)client[2] << 32 | client[3], 0x8ebc6af09c88c6e3);
	hash += part((u64)length << 32 | (u32)flow->client_port << 16 | flow->port, 0x589965cc75374cc3);
	if (request->v6)
		hash += part((u64)client[0] << 32 | client[1], 0x1d8e4e27c47d124f);
#pragma unroll
	for (u32 word = 0; word < COMPARED / 8; word++) {
		if (8 * (word + 1) > length || !is_within(at, 8, request->end))
			break;
		hash += part(*(u64 *)at, factors[word]);
		at += 8;
	}
	if (length < COMPARED) {
		if (length & 4 && is_within(at, 4, request->end)) {
			rest = *(u32 *)at;
			at += 4;
		}
		if (length & 2 && is_within(at, 2, request->end)) {
			rest = rest << 16 | *(u16 *)at;
			at += 2;
		}
		if (length & 1 && is_within(at, 1, request->end))
			rest = rest << 8 | *at;
		hash += part(rest, 0xeb44accab455d165);
	}
	return part(hash ^ hash >> 29, 0x9e3779b97f4a7c15) | 1;
}

/* Returns whether the payload came before, and remembers it. */
INLINE bool is_repeated(u64 payload)
{
	u32 place = payload >> 32 & (PLACES - 1);
	struct payloads *of_place = map_lookup(&echoed, &place);
	u64 moved = payload;

	if (!of_place)
		return false;
#pragma unroll
	for (int at = 0; at < 4; at++) {
		u64 next = of_place->latest[at];

		of_place->latest[at] = moved;
		if (next == payload)
			return true;
		moved = next;
	}
	return false;
}

/* An echo and its request are the same bytes: two reflectors could send each other the same one for ever
 * (crates/roundtrip has the reasons). Leaves the TTL or hop limit of the reply. */
INLINE enum outcome judge_echo(const struct request *request, u8 *hops)
{
	struct flow flow = {
		canonical(request->v6, request->source), request->udp->source, request->udp->destination,
	};
	u8 came = *request->hops;
	bool is_repeat, is_low = came <= 32;

	if (HAS_COOKIE && (request->length < sizeof(struct udp) + 8 || !is_within(request->payload, 8, request->end) ||
			   *(u64 *)request->payload != COOKIE_BYTES))
		return COOKIE;
	is_repeat = is_repeated(fingerprint(request, &flow));
	if (IS_REPEAT_LIMITED && (is_repeat || is_low) && !admits(&flows, &flow, REPEAT_INTERVAL_NS, REPEAT_SLACK_NS))
		return LOOP;
	if (!is_low)
		*hops = (came < 64 ? came : 64) - 1;
	else if (!is_repeat)
		/* The last hop of a traceroute: its reply has to find the way back. */
		*hops = 32;
	else if (came <= 1)
		return LOOP;
	else
		*hops = came - 1;
	return REFLECTED;
}
