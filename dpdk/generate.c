/* Frames leave at the times that the stream has: an open loop. One that is late leaves at once, and its sender says when;
   one that the port does not take is given up. */
#include "clock.h"
#include "port.h"
#include "stop.h"
#include "stream.h"
#include "verbs.h"
#include "work.h"
#include <inttypes.h>
#include <pthread.h>
#include <rte_malloc.h>
#include <rte_mbuf_dyn.h>
#include <rte_pause.h>
#include <rte_ring_elem.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	MOST_BATCH = 64,
	/* Frames of a queue that wait for their time, and departures that wait to be told: 0.3 and 16 ms at 15 Mpkt/s. */
	WAITING = 4096,
	UNTOLD = 1 << 18,
	LOOK_MS = 1,
	/* The longest time until a driver has sent what it took. */
	SENT_MS = 200,
};

/* The departure of a frame as it is told: both times in ns of CLOCK_REALTIME without its steps; 0: the port did not take
   the frame. */
struct departure {
	int64_t intended_ns, actual_ns;
};

struct sender {
	struct rte_ring *frames;
	/* Departures that are to be told; NULL if not asked for. */
	struct rte_ring *departures;
	const struct stream *stream;
	int64_t ahead_ns;
	uint16_t port, queue;
	uint64_t due, sent_bytes;
	counter sent;
	/* Departures that found no room to be told. */
	uint64_t untold;
	/* Frames that were due before they had been read. */
	uint64_t late_stream;
	int64_t latest_ns;
} __rte_cache_aligned;

struct generator {
	struct sender senders[MOST_WORKERS];
	uint16_t count;
};

/* A batch of frames and their departures. */
struct held {
	struct rte_mbuf *frames[MOST_BATCH];
	struct departure departures[MOST_BATCH];
	unsigned from, to;
};

/* Fetches the next frames. Returns false when there will be none. */
static bool fetch(struct sender *sender, struct held *held)
{
	bool ended = atomic_load_explicit(&sender->stream->ended, memory_order_acquire);

	held->from = 0;
	held->to = rte_ring_sc_dequeue_burst(sender->frames, (void **)held->frames, MOST_BATCH, NULL);
	for (unsigned n = 0; n < held->to; n++)
		held->departures[n].intended_ns =
			*RTE_MBUF_DYNFIELD(held->frames[n], sender->stream->departure, int64_t *);
	return held->to > 0 || !ended;
}

/* Sends the frames that are due at this time. */
static void send_due(struct sender *sender, struct held *held, int64_t now_ns)
{
	struct rte_mbuf **frames = held->frames + held->from;
	struct departure *departures = held->departures + held->from;
	uint16_t count = 0, taken = 0;
	uint64_t bytes[MOST_BATCH];

	while (held->from + count < held->to && departures[count].intended_ns <= now_ns) {
		bytes[count] = rte_pktmbuf_pkt_len(frames[count]);
		count++;
	}
	for (uint16_t more = 1; taken < count && more; taken += more)
		more = rte_eth_tx_burst(sender->port, sender->queue, frames + taken, count - taken);
	rte_pktmbuf_free_bulk(frames + taken, count - taken);
	for (uint16_t n = 0; n < count; n++) {
		departures[n].actual_ns = n < taken ? now_ns : 0;
		sender->sent_bytes += n < taken ? bytes[n] : 0;
	}
	sender->latest_ns = RTE_MAX(sender->latest_ns, now_ns - departures[0].intended_ns);
	sender->due += count;
	increase(&sender->sent, taken);
	held->from += count;
	if (sender->departures)
		sender->untold += count - rte_ring_sp_enqueue_burst_elem(sender->departures, departures,
									 sizeof(*departures), count, NULL);
}

static int work(void *argument)
{
	struct sender *sender = argument;
	struct held held = {.from = 0, .to = 0};
	int64_t before_ns = 0;

	while (!is_over()) {
		int64_t now_ns = clock_ns(CLOCK_MONOTONIC) + sender->ahead_ns;

		if (held.from == held.to) {
			if (!fetch(sender, &held))
				break;
			/* Frames of this batch were due when there were none yet. */
			for (unsigned n = 0; n < held.to && held.departures[n].intended_ns < before_ns; n++)
				sender->late_stream++;
			before_ns = held.to ? 0 : now_ns;
		} else if (held.departures[held.from].intended_ns <= now_ns) {
			send_due(sender, &held, now_ns);
		} else {
			rte_pause();
		}
	}
	rte_pktmbuf_free_bulk(held.frames + held.from, held.to - held.from);
	return 0;
}

/* Tells departures: standard input is a socket, whose other end has the schedule. */
static void tell_departures(void *argument)
{
	struct generator *generator = argument;
	static struct departure departures[4096];

	for (uint16_t number = 0; number < generator->count; number++) {
		struct rte_ring *ring = generator->senders[number].departures;
		unsigned count;

		while (ring && (count = rte_ring_sc_dequeue_burst_elem(ring, departures, sizeof(*departures),
								      RTE_DIM(departures), NULL))) {
			const char *bytes = (const char *)departures;

			for (size_t left = count * sizeof(*departures); left;) {
				ssize_t wrote = write(STDIN_FILENO, bytes, left);

				if (wrote <= 0) {
					end_all();
					return;
				}
				bytes += wrote;
				left -= (size_t)wrote;
			}
		}
	}
}

static uint64_t sent(void *argument)
{
	const struct generator *generator = argument;
	uint64_t sum = 0;

	for (uint16_t number = 0; number < generator->count; number++)
		sum += generator->senders[number].sent;
	return sum;
}

static struct rte_ring *ring(const char *what, uint16_t queue, unsigned size, unsigned count)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "%s-%u", what, queue);
	struct rte_ring *ring = rte_ring_create_elem(name, size, count, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);

	if (!ring)
		fail(IMPOSSIBLE, "no memory for %u frames of queue %u", count, queue);
	return ring;
}

static void tell_result(const struct generator *generator, const struct port *port)
{
	struct line line = {.length = 0};
	struct sender sum = {.due = 0};

	for (uint16_t number = 0; number < generator->count; number++) {
		const struct sender *sender = &generator->senders[number];

		sum.due += sender->due;
		sum.sent += sender->sent;
		sum.sent_bytes += sender->sent_bytes;
		sum.untold += sender->untold;
		sum.late_stream += sender->late_stream;
		sum.latest_ns = RTE_MAX(sum.latest_ns, sender->latest_ns);
	}
	/* A driver takes frames before they leave. */
	for (int ms = 0; ms < SENT_MS && counts(port).opackets + counts(port).oerrors < sum.sent; ms++)
		usleep(1000);
	struct rte_eth_stats driver = counts(port);

	add(&line, "{\"event\":\"result\",\"schema\":\"tailtrim.dpdk-generator/1\",\"due\":%" PRIu64 ",\"sent\":%" PRIu64,
	    sum.due, sum.sent);
	add(&line, ",\"refused\":%" PRIu64 ",\"discarded\":%" PRIu64 ",\"sent_bytes\":%" PRIu64, sum.due - sum.sent,
	    driver.oerrors, sum.sent_bytes);
	add(&line, ",\"latest_ns\":%" PRId64 ",\"late_stream\":%" PRIu64 ",\"untold\":%" PRIu64, sum.latest_ns,
	    sum.late_stream, sum.untold);
	/* No driver's claim to send on timestamp has been proven. */
	add(&line, ",\"departures\":\"software\",\"port\":");
	add_port(&line, port);
	add(&line, "}");
	tell(&line);
}

static bool is_socket(int descriptor)
{
	int type;
	socklen_t length = sizeof(type);

	return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0;
}

void run_generate(const struct options *options)
{
	static struct generator generator;
	struct rte_ring *queues[MOST_WORKERS];
	struct demands demands = {.queues = options->queues};
	struct stream stream = {
		.queues = queues, .queue_count = options->queues, .buffers = make_buffers(options->queues)};
	struct port port;
	pthread_t reader;
	bool told = is_socket(STDIN_FILENO);

	open_port(&port, options->devices[0], &demands, stream.buffers);
	if (rte_mbuf_dyn_tx_timestamp_register(&stream.departure, NULL))
		fail(IMPOSSIBLE, "DPDK's buffers have no room for a departure");
	generator.count = options->queues;
	for (uint16_t queue = 0; queue < options->queues; queue++) {
		queues[queue] = ring("frames", queue, sizeof(void *), WAITING);
		generator.senders[queue] = (struct sender){
			.frames = queues[queue],
			.departures = told ? ring("departures", queue, sizeof(struct departure), UNTOLD) : NULL,
			.stream = &stream,
			.ahead_ns = realtime_ahead_ns(),
			.port = port.id,
			.queue = queue,
		};
	}
	tell_ready(&port, 1);
	if (pthread_create(&reader, NULL, read_stream, &stream))
		fail(IMPOSSIBLE, "a thread that reads standard input cannot be started");
	for (uint16_t queue = 0; queue < options->queues; queue++)
		start_worker(queue, work, &generator.senders[queue]);
	watch_workers(LOOK_MS, tell_departures, sent, &generator);
	tell_departures(&generator);
	/* It may wait for its input. */
	pthread_cancel(reader);
	pthread_join(reader, NULL);
	if (stream.problem[0])
		fail(USAGE, "standard input: %s", stream.problem);
	tell_result(&generator, &port);
	close_port(&port);
}
