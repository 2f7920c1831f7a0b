/* The XDP program that reflects: from the driver back to the driver.
 *
 * It answers what needs neither a key nor memory of a session: UDP echo, and STAMP and TWAMP-Light packets without
 * TLVs. Other requests to the same ports go up to the sockets of the process that loaded it, other traffic to whom it
 * is for. */
#include "reply.h"

/* Whether these are answered here, not by the sockets. */
SETTING bool ANSWERS_STAMP;
SETTING bool ANSWERS_TWAMP;

INLINE enum outcome echo(struct request *request)
{
	enum outcome outcome;
	u16 checksum;
	u8 hops;

	/* Behind the driver it stays as it is. */
	if (!IS_GENERIC && !take_checksum(request, &checksum))
		return PASSED;
	outcome = judge_echo(request, &hops);
	if (outcome != REFLECTED)
		return outcome;
	turn_round(request);
	write_header(request, hops);
	return REFLECTED;
}

INLINE enum outcome test(struct request *request, const struct numbers *numbers, u64 received_ns)
{
	struct test_packet *packet = (void *)request->payload, old;
	u32 least = sizeof(struct udp) + TEST_LENGTH;
	u16 checksum;

	if (!(request->service == STAMP ? ANSWERS_STAMP : ANSWERS_TWAMP))
		return PASSED;
	/* Too short, and for STAMP also TLVs and authentication. */
	if (request->service == STAMP ? request->length != least : request->length < least)
		return PASSED;
	if (!is_within(packet, TEST_LENGTH, request->end))
		return PASSED;
	if (is_reply(packet))
		return REPLY;
	if (!take_checksum(request, &checksum))
		return PASSED;
	old = *packet;
	write_test_packet(request, packet, &old, numbers, received_ns);
	update_checksum(request, checksum, &old, packet);
	turn_round(request);
	write_header(request, TEST_HOPS);
	return REFLECTED;
}

INLINE int reflected(struct request *request, enum kind kind)
{
	/* First of all, since all else takes time. An echo has no use for it. */
	u64 received_ns = request->service == ECHO ? 0 : tai_ns();
	u32 zero = 0;
	struct numbers *shared = map_lookup(&numbers, &zero);
	enum outcome outcome = WRONG;

	if (!shared)
		return PASS;
	if (kind == REQUEST)
		outcome = judge(request);
	if (outcome == REFLECTED)
		outcome = request->service == ECHO ? echo(request) : test(request, shared, received_ns);
	__sync_fetch_and_add(&shared->counts[outcome], 1);
	return outcome == REFLECTED ? SEND_BACK : outcome == PASSED ? PASS : DROP;
}

SECTION("xdp") int reflect(struct xdp_md *context)
{
	struct request request = {};
	enum kind kind;

	if (!starts(&request, context))
		return PASS;
	if (request.ethernet->type == network16(0x0800)) {
		kind = request_at(&request, request.ethernet + 1, false);
		return kind == OTHERS ? PASS : reflected(&request, kind);
	}
	if (request.ethernet->type == network16(0x86dd)) {
		kind = request_at(&request, request.ethernet + 1, true);
		return kind == OTHERS ? PASS : reflected(&request, kind);
	}
	return PASS;
}
