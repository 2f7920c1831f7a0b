/* Which frames are requests to this host: the kernel's own rules for what a UDP socket gets.
 *
 * What only the kernel can judge or reassemble is passed to it: options, extension headers, fragments, broadcasts,
 * wrong header checksums, martian addresses. */
#pragma once
#include "kernel.h"

struct ethernet {
	u16 to[3];
	u16 from[3];
	u16 type;
};

struct ipv4 {
	u8 version_and_length;
	u8 class;
	u16 length;
	u16 id;
	u16 fragment;
	u8 hops;
	u8 protocol;
	u16 checksum;
	u32 source[1];
	u32 destination[1];
};

struct ipv6 {
	u8 version_and_class;
	u8 class_and_label;
	u16 label;
	u16 length;
	u8 protocol;
	u8 hops;
	u32 source[4];
	u32 destination[4];
};

struct udp {
	u16 source;
	u16 destination;
	u16 length;
	u16 checksum;
};

/* IPv4 addresses are mapped ones. */
struct address {
	u32 words[4];
};

enum { UDP = 17, FIRST_CLIENT_PORT = 1024 };
enum service { NOTHING, ECHO, STAMP, TWAMP };
enum kind { OTHERS, MALFORMED, REQUEST };

/* Service on each port; ports are in network byte order. */
struct services {
	u8 of_port[1 << 16];
};

struct request {
	bool v6;
	u8 service;
	struct ethernet *ethernet;
	union {
		struct ipv4 *ipv4;
		struct ipv6 *ipv6;
	};
	u32 *source;
	u32 *destination;
	u8 *hops;
	struct udp *udp;
	u8 *payload;
	void *end;
	/* Length of UDP with its header. */
	u32 length;
	const struct services *services;
};

struct {
	NUMBER(type, ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct services);
} services SECTION(".maps");

enum { MOST_ADDRESSES = 64 };

/* The host's addresses; a table would take longer for the few that an interface has. */
SETTING struct address ADDRESSES[MOST_ADDRESSES];
SETTING u32 ADDRESS_COUNT;
/* The interface's own address. */
SETTING u16 MAC[3];

INLINE bool is_within(const void *start, u32 bytes, const void *end)
{
	return start + bytes <= end;
}

INLINE struct address canonical(bool v6, const u32 *from)
{
	if (v6)
		return (struct address){ { from[0], from[1], from[2], from[3] } };
	return (struct address){ { 0, 0, network32(0xffff), from[0] } };
}

INLINE bool is_ours(struct address address)
{
	for (u32 at = 0; at < MOST_ADDRESSES && at < ADDRESS_COUNT; at++)
		if (address.words[3] == ADDRESSES[at].words[3] && address.words[2] == ADDRESSES[at].words[2] &&
		    address.words[1] == ADDRESSES[at].words[1] && address.words[0] == ADDRESSES[at].words[0])
			return true;
	return false;
}

INLINE u16 folded(u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

INLINE u64 sum_words(const u32 *words, int count)
{
	u64 sum = 0;
#pragma unroll
	for (int at = 0; at < count; at++)
		sum += words[at];
	return sum;
}

INLINE bool is_plain_ipv4(struct request *request)
{
	struct ipv4 *ip = request->ipv4;

	/* Neither options nor a fragment. */
	return ip->version_and_length == 0x45 && !(ip->fragment & network16(0x3fff)) && ip->protocol == UDP;
}

INLINE bool is_plain_ipv6(struct request *request)
{
	struct ipv6 *ip = request->ipv6;

	return ip->version_and_class >> 4 == 6 && ip->protocol == UDP;
}

/* The kernel drops these as martians, or as damaged. */
INLINE bool is_dropped_by_kernel(const struct request *request)
{
	const u32 *from = request->source, *to = request->destination;

	if (!request->v6)
		return (from[0] & network32(0xff000000)) == network32(0x7f000000) || from[0] == to[0] ||
		       folded(sum_words((u32 *)request->ipv4, 5)) != 0xffff;
	if (from[3] == to[3] && from[2] == to[2] && from[1] == to[1] && from[0] == to[0])
		return true;
	/* ::1 and mapped addresses; :: is counted. */
	return !(from[0] | from[1]) && ((!from[2] && from[3] == network32(1)) || from[2] == network32(0xffff));
}

/* The datagram lies within the packet and the packet within the frame. Behind the datagram there may be UDP options
 * (RFC 9868), behind the packet padding of Ethernet. */
INLINE bool is_well_formed(struct request *request)
{
	u32 header = request->v6 ? sizeof(struct ipv6) : sizeof(struct ipv4);
	u64 frame = request->end - (void *)request->ipv4;
	u32 packet = request->v6 ? header + host16(request->ipv6->length) : host16(request->ipv4->length);
	u32 room = packet - header;

	if (packet < header + sizeof(struct udp) || packet > frame)
		return false;
	request->length = host16(request->udp->length);
	if (request->v6) {
		/* A checksum is required. Without a length, as in a jumbogram, the kernel takes that of IP. */
		if (!request->udp->checksum)
			return false;
		if (!request->length)
			request->length = room;
	}
	return request->length >= sizeof(struct udp) && request->length <= room;
}

/* Finds a request in the frame whose IP header begins at `ip`. */
INLINE enum kind request_at(struct request *request, void *ip, bool v6)
{
	u32 zero = 0, header = v6 ? sizeof(struct ipv6) : sizeof(struct ipv4);

	request->v6 = v6;
	request->ipv4 = ip;
	request->udp = ip + header;
	request->payload = (void *)(request->udp + 1);
	request->source = v6 ? request->ipv6->source : request->ipv4->source;
	request->destination = v6 ? request->ipv6->destination : request->ipv4->destination;
	request->hops = v6 ? &request->ipv6->hops : &request->ipv4->hops;
	if (!is_within(ip, header + sizeof(struct udp), request->end))
		return OTHERS;
	if (v6 ? !is_plain_ipv6(request) : !is_plain_ipv4(request))
		return OTHERS;
	request->services = map_lookup(&services, &zero);
	if (!request->services)
		return OTHERS;
	request->service = request->services->of_port[request->udp->destination];
	if (request->service == NOTHING)
		return OTHERS;
	if (!is_ours(canonical(v6, request->destination)) || is_dropped_by_kernel(request))
		return OTHERS;
	return is_well_formed(request) ? REQUEST : MALFORMED;
}

/* Whether the frame is for this interface alone. */
INLINE bool starts(struct request *request, const struct xdp_md *context)
{
	request->ethernet = (void *)(long)context->data;
	request->end = (void *)(long)context->data_end;
	if (!is_within(request->ethernet, sizeof(struct ethernet), request->end))
		return false;
#pragma unroll
	for (int at = 0; at < 3; at++)
		if (request->ethernet->to[at] != MAC[at])
			return false;
	return true;
}
