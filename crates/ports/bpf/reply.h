/* Turning a request into its reply, in the same bytes. */
#pragma once
#include "judge.h"

enum { TEST_HOPS = 255, TEST_LENGTH = 44, PTP_FORMAT = 0x40, NS_PER_S = 1000000000 };
/* Seconds from 1900 to 1970, and the largest difference between T2 and T3 of one reply. */
#define NTP_TO_UNIX_S 2208988800ull
#define RESIDENCE_S 10

/* RFC 8762 section 4.3.1; RFC 5357 section 4.2.1 has the same fields at the same places. */
struct test_packet {
	u32 sequence;
	/* T1 of a request, T3 of a reply. */
	u32 stamp[2];
	u16 error;
	u16 session;
	/* Of replies. */
	u32 received[2];
	u32 sender_sequence;
	u32 sender_stamp[2];
	u16 sender_error;
	u16 zero;
	u8 sender_hops;
	u8 zeros[3];
};

/* The DSCP of replies: that of the request, or this one. */
SETTING bool HAS_FIXED_CLASS;
SETTING u8 DSCP;
/* Whether the program runs behind the driver, where the kernel still knows which part of a checksum is missing. */
SETTING bool IS_GENERIC;

/* Whether a test packet was sent by a reflector; `stamp::is_reply` in crates/wire has the reasons. */
INLINE bool is_reply(const struct test_packet *packet)
{
	u32 apart = host32(packet->stamp[0]) - host32(packet->received[0]) + RESIDENCE_S;

	return (packet->received[0] | packet->received[1]) && apart <= 2 * RESIDENCE_S &&
	       ((u8 *)&packet->sender_error)[1] && !packet->zero && packet->sender_hops;
}

/* Stores the checksum that the request came with, or 0 where none has to be updated: the sender left it out, or leaves
 * it to a NIC that, as within a veth pair, does not exist. Such a checksum is that of the pseudo header alone. Returns
 * false where only the sockets can answer. */
INLINE bool take_checksum(const struct request *request, u16 *checksum)
{
	u64 pseudo_header;

	*checksum = request->udp->checksum;
	if (!*checksum)
		return true;
	pseudo_header = sum_words(request->source, request->v6 ? 8 : 2) + network16((u16)request->length) + network16(UDP);
	if (folded(pseudo_header) != *checksum)
		return true;
	/* In generic mode the kernel knows that the checksum is not finished, and the receiver learns that. Otherwise IPv6
	 * requires a checksum: the sockets get the request as it came. */
	if (!IS_GENERIC && request->v6)
		return false;
	*checksum = 0;
	if (!IS_GENERIC)
		request->udp->checksum = 0;
	return true;
}

/* RFC 1624: the old checksum, less the old payload, plus the new one. */
INLINE void update_checksum(struct request *request, u16 checksum, struct test_packet *old, struct test_packet *new)
{
	u16 updated;

	if (!checksum)
		return;
	updated = ~folded((u32)csum_diff((u32 *)old, sizeof(*old), (u32 *)new, sizeof(*new), (u16)~checksum));
	/* 0 would mean that there is no checksum. */
	request->udp->checksum = updated ? updated : 0xffff;
}

/* A time of CLOCK_TAI as a packet has it, in the format of the request. */
INLINE void write_time(u32 *to, u64 time_ns, const struct numbers *numbers, bool ptp)
{
	u64 since_1970_ns = time_ns - numbers->tai_offset_ns;
	u64 seconds = since_1970_ns / NS_PER_S, part = since_1970_ns % NS_PER_S;

	if (!ptp) {
		seconds += NTP_TO_UNIX_S;
		/* Rounded up as the sockets do. */
		part = ((part << 32) + NS_PER_S - 1) / NS_PER_S;
	}
	to[0] = network32((u32)seconds);
	to[1] = network32((u32)part);
}

INLINE void write_test_packet(struct request *request, struct test_packet *packet, const struct test_packet *old,
			      const struct numbers *numbers, u64 received_ns)
{
	bool ptp = ((u8 *)&old->error)[0] & PTP_FORMAT;

	packet->sender_sequence = old->sequence;
	packet->sender_stamp[0] = old->stamp[0];
	packet->sender_stamp[1] = old->stamp[1];
	packet->sender_error = old->error;
	packet->zero = 0;
	packet->sender_hops = *request->hops;
	if (request->service == STAMP)
		packet->zeros[0] = packet->zeros[1] = packet->zeros[2] = 0;
	else
		packet->session = 0;
	packet->error = (u16)numbers->error | (old->error & network16(PTP_FORMAT << 8));
	write_time(packet->received, received_ns, numbers, ptp);
	write_time(packet->stamp, tai_ns(), numbers, ptp);
}

INLINE void swap16(u16 *one, u16 *other)
{
	u16 kept = *one;

	*one = *other;
	*other = kept;
}

/* Swaps source and destination: addresses of Ethernet and IP, ports. This changes no checksum. */
INLINE void turn_round(struct request *request)
{
	struct ethernet *ethernet = request->ethernet;

#pragma unroll
	for (int at = 0; at < 3; at++)
		swap16(&ethernet->to[at], &ethernet->from[at]);
#pragma unroll
	for (int at = 0; at < (request->v6 ? 4 : 1); at++) {
		u32 kept = request->source[at];

		request->source[at] = request->destination[at];
		request->destination[at] = kept;
	}
	swap16(&request->udp->source, &request->udp->destination);
}

/* A TTL, the DSCP of the request or ours, no ECN. */
INLINE void write_header(struct request *request, u8 hops)
{
	struct ipv4 *ipv4 = request->ipv4;
	struct ipv6 *ipv6 = request->ipv6;

	*request->hops = hops;
	if (!request->v6) {
		ipv4->class = HAS_FIXED_CLASS ? DSCP << 2 : ipv4->class & 0xfc;
		ipv4->checksum = 0;
		ipv4->checksum = ~folded(sum_words((u32 *)ipv4, 5));
	} else if (HAS_FIXED_CLASS) {
		ipv6->version_and_class = 0x60 | DSCP >> 2;
		ipv6->class_and_label = (ipv6->class_and_label & 0x0f) | (u8)(DSCP << 6);
	} else {
		ipv6->class_and_label &= 0xcf;
	}
}
