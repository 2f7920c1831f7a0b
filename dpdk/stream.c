#include "stream.h"

#include "clock.h"
#include "options.h"
#include "pcap.h"
#include "port.h"
#include "stop.h"
#include <inttypes.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	READ_BYTES = 1 << 18,
	/* Frames that are handed over, and buffers that are taken, together. */
	BATCH = 32,
	/* Time until a sender has made room: it sends 300 frames in it at 15 Mpkt/s. */
	WAIT_US = 20,
};

/* Frames of a queue that its sender does not have yet. */
struct waiting {
	struct rte_mbuf *frames[BATCH];
	unsigned count;
};

struct input {
	struct stream *stream;
	size_t from, to;
	unsigned char bytes[READ_BYTES];
	struct rte_mbuf *free[BATCH];
	unsigned free_count;
	struct waiting waiting[MOST_WORKERS];
};

/* Hands frames over to their sender; waits while it has no room. */
static void hand_over(const struct stream *stream, struct waiting *waiting, uint16_t queue)
{
	struct rte_mbuf **frames = waiting->frames;

	while (waiting->count && !is_over()) {
		unsigned taken = rte_ring_sp_enqueue_burst(stream->queues[queue], (void **)frames, waiting->count, NULL);

		frames += taken;
		waiting->count -= taken;
		if (waiting->count)
			usleep(WAIT_US);
	}
	waiting->count = 0;
}

static void hand_over_all(struct input *input)
{
	for (uint16_t queue = 0; queue < input->stream->queue_count; queue++)
		hand_over(input->stream, &input->waiting[queue], queue);
}

/* The next bytes, which stay until the next call; nothing at the end. */
static const void *next(struct input *input, size_t count)
{
	while (input->to - input->from < count) {
		/* Reading may wait. */
		hand_over_all(input);
		memmove(input->bytes, input->bytes + input->from, input->to - input->from);
		input->to -= input->from;
		input->from = 0;
		ssize_t got = read(STDIN_FILENO, input->bytes + input->to, sizeof(input->bytes) - input->to);

		if (got <= 0)
			return NULL;
		input->to += (size_t)got;
	}
	const void *found = input->bytes + input->from;

	input->from += count;
	return found;
}

/* A free buffer; nothing when the process is to end. */
static struct rte_mbuf *buffer(struct input *input)
{
	while (input->free_count == 0) {
		if (rte_pktmbuf_alloc_bulk(input->stream->buffers, input->free, BATCH) == 0) {
			input->free_count = BATCH;
		} else if (is_over()) {
			return NULL;
		} else {
			/* All wait for their time, or for the driver. */
			hand_over_all(input);
			usleep(WAIT_US);
		}
	}
	return input->free[--input->free_count];
}

/* Notes that the stream is cut, if it is. */
static bool ends(struct input *input, bool within)
{
	struct stream *stream = input->stream;

	if (within && !is_over())
		snprintf(stream->problem, sizeof(stream->problem), "it ends within frame %" PRIu64, stream->frames);
	return false;
}

/* Reads a frame. Returns false at the end. */
static bool take(struct input *input)
{
	struct stream *stream = input->stream;
	const void *head = next(input, sizeof(struct pcap_record));
	struct pcap_record record;

	if (!head)
		return ends(input, input->from < input->to);
	memcpy(&record, head, sizeof(record));
	if (record.kept > record.length || record.length < RTE_ETHER_HDR_LEN || record.length > LONGEST_FRAME) {
		snprintf(stream->problem, sizeof(stream->problem),
			 "frame %" PRIu64 " has %u bytes, %u of them there, expected %d to %d bytes without FCS",
			 stream->frames, record.length, record.kept, RTE_ETHER_HDR_LEN, LONGEST_FRAME);
		return false;
	}
	const void *kept = next(input, record.kept);

	if (!kept)
		return ends(input, true);
	struct rte_mbuf *frame = buffer(input);

	if (!frame)
		return false;
	unsigned char *bytes = (unsigned char *)rte_pktmbuf_append(frame, (uint16_t)record.length);

	memcpy(bytes, kept, record.kept);
	if (record.kept < record.length)
		memset(bytes + record.kept, 0, record.length - record.kept);
	*RTE_MBUF_DYNFIELD(frame, stream->departure, int64_t *) = record.seconds * SECOND_NS + record.nanoseconds;
	uint16_t queue = (uint16_t)(stream->frames++ % stream->queue_count);
	struct waiting *waiting = &input->waiting[queue];

	waiting->frames[waiting->count++] = frame;
	if (waiting->count == BATCH)
		hand_over(stream, waiting, queue);
	return true;
}

/* Reads the header of the capture. Nothing at all is an empty load. */
static bool begins(struct input *input)
{
	const void *head = next(input, sizeof(struct pcap_header));
	struct pcap_header header;

	if (!head && input->to == 0)
		return false;
	if (head)
		memcpy(&header, head, sizeof(header));
	if (!head || header.magic != PCAP_MAGIC || header.link != PCAP_ETHERNET) {
		snprintf(input->stream->problem, sizeof(input->stream->problem),
			 "expected a capture of Ethernet frames in nanoseconds, as tailtrim-agent writes it");
		return false;
	}
	return true;
}

void *read_stream(void *argument)
{
	static struct input input;

	input.stream = argument;
	if (begins(&input))
		while (!is_over() && take(&input))
			;
	hand_over_all(&input);
	atomic_store_explicit(&input.stream->ended, true, memory_order_release);
	return NULL;
}
