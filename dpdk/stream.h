/* The load: a capture on standard input whose stamps are the times at which its frames are to depart. */
#ifndef STREAM_H
#define STREAM_H

#include <rte_mempool.h>
#include <rte_ring.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct stream {
	/* Frames for each queue, which take turns. */
	struct rte_ring **queues;
	uint16_t queue_count;
	struct rte_mempool *buffers;
	/* Place of the departure in a frame's buffer. */
	int departure;
	/* Frames that were read. */
	uint64_t frames;
	/* Why it cannot be read, or nothing. */
	char problem[256];
	/* All has been read that can be. */
	atomic_bool ended;
};

/* Reads the stream to its end, in a thread of its own: `argument` is the stream. */
void *read_stream(void *argument);

#endif
