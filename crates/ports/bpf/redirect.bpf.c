/* The XDP program of an AF_XDP port: stamps a frame and redirects it to the port's socket. */
#include "request.h"

/* The stamp that the program writes in front of a frame. */
struct front {
	/* Distinguishes a stamp from other data there. */
	u64 mark;
	u64 tai_ns;
};

/* In front of that, the driver's answer about the NIC's stamp. */
struct hinted {
	u64 nic_ns;
	long long error;
	struct front front;
};

struct {
	NUMBER(type, XSKMAP);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u32);
} sockets SECTION(".maps");

/* Counts frames that came to another queue and went to the kernel. */
struct {
	NUMBER(type, ARRAY);
	NUMBER(max_entries, 1);
	NUMBER(map_flags, MMAPABLE);
	TYPE(key, u32);
	TYPE(value, u64);
} elsewhere SECTION(".maps");

/* Whether only requests are redirected. */
SETTING bool IS_FOR_REQUESTS;
/* Whether the kernel has `tai_ns`. */
SETTING bool STAMPS;
/* Whether the driver is asked for the NIC's stamp. */
SETTING bool HINTS;
SETTING u64 MARK;

INLINE bool is_request(const struct xdp_md *context)
{
	struct request request = {};
	u16 *type;

	if (!starts(&request, context))
		return false;
	type = &request.ethernet->type;
	/* A tag with a priority and no VLAN, which the kernel accepts, too. */
	if (*type == network16(0x8100) && is_within(type, 6, request.end) && !(type[1] & network16(0x0fff)))
		type += 2;
	if (*type == network16(0x0800))
		return request_at(&request, type + 1, false) != OTHERS;
	if (*type == network16(0x86dd))
		return request_at(&request, type + 1, true) != OTHERS;
	return false;
}

INLINE void stamp(struct xdp_md *context)
{
	u64 now_ns = tai_ns();
	struct front *front;

	/* A driver may have no room for the stamp. */
	if (adjust_meta(context, -(int)sizeof(*front)))
		return;
	front = (void *)(long)context->data_meta;
	if (!is_within(front, sizeof(*front), (void *)(long)context->data))
		return;
	front->mark = MARK;
	front->tai_ns = now_ns;
}

INLINE void hint(struct xdp_md *context)
{
	u64 nic_ns = 0, now_ns = tai_ns();
	long long error = nic_stamp(context, &nic_ns);
	struct hinted *hinted;

	if (adjust_meta(context, -(int)sizeof(*hinted)))
		return;
	hinted = (void *)(long)context->data_meta;
	if (!is_within(hinted, sizeof(*hinted), (void *)(long)context->data))
		return;
	hinted->nic_ns = nic_ns;
	hinted->error = error;
	hinted->front.mark = MARK;
	hinted->front.tai_ns = now_ns;
}

INLINE int redirected(struct xdp_md *context)
{
	u32 zero = 0;
	u64 *passed;
	int verdict;

	if (IS_FOR_REQUESTS && !is_request(context))
		return PASS;
	if (HINTS)
		hint(context);
	else if (STAMPS)
		stamp(context);
	verdict = redirect_map(&sockets, context->rx_queue_index, PASS);
	if (verdict == PASS) {
		passed = map_lookup(&elsewhere, &zero);
		if (passed)
			__sync_fetch_and_add(passed, 1);
	}
	return verdict;
}

/* For a socket that only sends: drivers have queues for AF_XDP only while there is a program. */
SECTION("xdp") int pass(struct xdp_md *context)
{
	return PASS;
}

SECTION("xdp") int redirect(struct xdp_md *context)
{
	return redirected(context);
}

/* For interfaces that may give a frame in several pieces. */
SECTION("xdp.frags") int redirect_pieces(struct xdp_md *context)
{
	return redirected(context);
}
