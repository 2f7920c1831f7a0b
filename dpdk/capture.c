/* Frames that ports receive are written to files: one for each tap. A thread for each queue fetches, one for each tap
   writes: it may wait for the disk. */
#include "clock.h"
#include "file.h"
#include "port.h"
#include "stamps.h"
#include "stop.h"
#include "verbs.h"
#include "work.h"
#include <inttypes.h>
#include <pthread.h>
#include <rte_ring.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	BATCH = 64,
	/* Frames of a tap that wait to be written. */
	UNWRITTEN = 8192,
	LOOK_MS = 100,
	WRITER_US = 500,
	/* After the end, frames that came before it are fetched for at most so long. */
	LAST_NS = 120000000,
};

struct tap {
	const char *name;
	struct port port;
	struct stamps stamps;
	struct rte_ring *unwritten;
	struct file *file;
	pthread_t writer;
	/* No thread fetches any more. */
	atomic_bool fetched;
	counter packets;
	uint64_t bytes;
};

/* A queue of a tap. */
struct fetcher {
	struct tap *tap;
	uint16_t queue;
	uint64_t received, unstamped;
	/* Frames that the writer had no room for. */
	uint64_t unwritten;
} __rte_cache_aligned;

static struct tap taps[MOST_PORTS];
static struct fetcher fetchers[MOST_WORKERS];

static unsigned fetch(struct fetcher *fetcher)
{
	struct rte_mbuf *frames[BATCH];
	struct tap *tap = fetcher->tap;
	unsigned count = rte_eth_rx_burst(tap->port.id, fetcher->queue, frames, BATCH);

	if (count == 0)
		return 0;
	int64_t now_ns = clock_ns(CLOCK_REALTIME);

	if (atomic_load_explicit(&tap->stamps.stamping, memory_order_relaxed) == UNDECIDED)
		decide_stamps(&tap->stamps, frames[0]);
	unsigned unstamped = put_stamps(&tap->stamps, frames, count, now_ns);
	unsigned taken = rte_ring_mp_enqueue_burst(tap->unwritten, (void **)frames, count, NULL);

	rte_pktmbuf_free_bulk(frames + taken, count - taken);
	fetcher->received += count;
	fetcher->unstamped += unstamped;
	fetcher->unwritten += count - taken;
	return count;
}

static int work(void *argument)
{
	struct fetcher *fetcher = argument;

	while (!is_over())
		fetch(fetcher);
	int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + LAST_NS;

	while (fetch(fetcher) && clock_ns(CLOCK_MONOTONIC) < until_ns)
		;
	return 0;
}

static void *write_frames(void *argument)
{
	struct tap *tap = argument;
	struct rte_mbuf *frames[BATCH];

	for (;;) {
		bool last = atomic_load_explicit(&tap->fetched, memory_order_acquire);
		unsigned count = rte_ring_sc_dequeue_burst(tap->unwritten, (void **)frames, BATCH, NULL);

		for (unsigned n = 0; n < count && !tap->file->error; n++) {
			write_frame(tap->file, frames[n], stamp_ns(&tap->stamps, frames[n]));
			increase(&tap->packets, 1);
			tap->bytes += rte_pktmbuf_pkt_len(frames[n]);
		}
		rte_pktmbuf_free_bulk(frames, count);
		if (tap->file->error)
			end_all();
		if (count == 0 && last)
			return NULL;
		if (count == 0)
			usleep(WRITER_US);
	}
}

static uint64_t captured(void *argument)
{
	(void)argument;
	return taps[0].packets;
}

static void add_tap(struct line *line, const struct options *options, unsigned number)
{
	const struct tap *tap = &taps[number];
	struct fetcher sum = {.received = 0};

	for (uint16_t queue = 0; queue < options->queues; queue++) {
		const struct fetcher *fetcher = &fetchers[number * options->queues + queue];

		sum.received += fetcher->received;
		sum.unstamped += fetcher->unstamped;
		sum.unwritten += fetcher->unwritten;
	}
	struct rte_eth_stats driver = counts(&tap->port);

	add_string(line, tap->name);
	add(line, ":{\"packets\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"received\":%" PRIu64, (uint64_t)tap->packets, tap->bytes,
	    sum.received);
	add(line, ",\"dropped\":%" PRIu64, driver.imissed + driver.ierrors + driver.rx_nombuf + sum.unwritten);
	add(line, ",\"dropped_by\":{\"port\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"no_buffer\":%" PRIu64, driver.imissed,
	    driver.ierrors, driver.rx_nombuf);
	add(line, ",\"writer\":%" PRIu64 "},\"unstamped\":%" PRIu64, sum.unwritten, sum.unstamped);
	bool stamped = tap->stamps.stamping == DRIVER;

	add(line, ",\"stamps\":\"%s\"", stamped ? "driver" : "process");
	if (tap->stamps.why) {
		add(line, ",\"not_by_driver\":");
		add_string(line, tap->stamps.why);
	}
	add(line, ",\"file\":");
	add_string(line, tap->file->path);
	add(line, ",\"port\":");
	add_port(line, &tap->port);
	add(line, "}");
}

static void open_tap(const struct options *options, unsigned number, struct rte_mempool *buffers)
{
	const struct demands demands = {.queues = options->queues, .stamps = true};
	struct tap *tap = &taps[number];
	char ring[RTE_RING_NAMESIZE];

	tap->name = options->names[number];
	tap->file = begin_file(options->out, tap->name, options->snap);
	open_port(&tap->port, options->devices[number], &demands, buffers);
	prepare_stamps(&tap->stamps, &tap->port);
	snprintf(ring, sizeof(ring), "unwritten-%u", number);
	tap->unwritten = rte_ring_create(ring, UNWRITTEN, SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (!tap->unwritten || pthread_create(&tap->writer, NULL, write_frames, tap))
		fail(IMPOSSIBLE, "tap %s: no memory for frames, or no thread to write them", tap->name);
}

void run_capture(const struct options *options)
{
	struct rte_mempool *buffers = make_buffers(options->ports + workers(options));
	struct line line = {.length = 0};
	struct port ports[MOST_PORTS];

	for (unsigned tap = 0; tap < options->ports; tap++) {
		open_tap(options, tap, buffers);
		ports[tap] = taps[tap].port;
	}
	tell_ready(ports, options->ports);
	for (unsigned worker = 0; worker < workers(options); worker++) {
		fetchers[worker].tap = &taps[worker / options->queues];
		fetchers[worker].queue = (uint16_t)(worker % options->queues);
		start_worker(worker, work, &fetchers[worker]);
	}
	watch_workers(LOOK_MS, NULL, captured, NULL);
	add(&line, "{\"event\":\"result\",\"schema\":\"tailtrim.dpdk-capture/1\",\"taps\":{");
	for (unsigned number = 0; number < options->ports; number++) {
		struct tap *tap = &taps[number];

		atomic_store_explicit(&tap->fetched, true, memory_order_release);
		pthread_join(tap->writer, NULL);
		end_file(tap->file);
		if (tap->file->error)
			fail(DISTURBED, "%s: cannot be written after %" PRIu64 " frames: %s", tap->file->path, (uint64_t)tap->packets,
			     strerror(tap->file->error));
		add(&line, number ? "," : "");
		add_tap(&line, options, number);
		close_port(&tap->port);
	}
	add(&line, "}}");
	tell(&line);
}
