#include "file.h"

#include "clock.h"
#include "pcap.h"
#include "tell.h"
#include <errno.h>
#include <fcntl.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct file *begin_file(const char *folder, const char *name, uint32_t snap)
{
	struct pcap_header header = {.magic = PCAP_MAGIC, .major = 2, .minor = 4, .snap = snap, .link = PCAP_ETHERNET};
	struct file *file = calloc(1, sizeof(*file));

	if (!file)
		fail(IMPOSSIBLE, "no memory for a capture");
	if ((size_t)snprintf(file->path, sizeof(file->path), "%s/%s.pcap", folder, name) >= sizeof(file->path))
		fail(USAGE, "%s/%s.pcap: the path is longer than %zu bytes", folder, name, sizeof(file->path) - 1);
	if (mkdir(folder, 0777) && errno != EEXIST)
		fail(USAGE, "%s: cannot be created: %m", folder);
	file->descriptor = open(file->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (file->descriptor < 0)
		fail(USAGE, "%s: cannot be written: %m", file->path);
	file->snap = snap;
	memcpy(file->bytes, &header, sizeof(header));
	file->used = sizeof(header);
	return file;
}

static void flush(struct file *file)
{
	for (size_t done = 0; done < file->used && !file->error;) {
		ssize_t wrote = write(file->descriptor, file->bytes + done, file->used - done);

		if (wrote > 0)
			done += (size_t)wrote;
		else if (errno != EINTR)
			file->error = errno;
	}
	file->used = 0;
}

void write_frame(struct file *file, struct rte_mbuf *frame, int64_t stamp_ns)
{
	uint32_t length = rte_pktmbuf_pkt_len(frame), kept = RTE_MIN(length, file->snap);
	struct pcap_record record = {
		.seconds = (uint32_t)(stamp_ns / SECOND_NS),
		.nanoseconds = (uint32_t)(stamp_ns % SECOND_NS),
		.kept = kept,
		.length = length,
	};

	if (file->used + sizeof(record) + kept > sizeof(file->bytes))
		flush(file);
	unsigned char *to = file->bytes + file->used;

	memcpy(to, &record, sizeof(record));
	/* A frame may be in several buffers; then they are copied one after the other. */
	const void *from = rte_pktmbuf_read(frame, 0, kept, to + sizeof(record));

	if (from != to + sizeof(record))
		memcpy(to + sizeof(record), from, kept);
	file->used += sizeof(record) + kept;
}

void end_file(struct file *file)
{
	flush(file);
	/* Some file systems tell only here that there was no room. */
	if (close(file->descriptor) && !file->error)
		file->error = errno;
}
