/* A capture that is being written. */
#ifndef FILE_H
#define FILE_H

#include <rte_mbuf.h>
#include <stddef.h>
#include <stdint.h>

struct file {
	char path[512];
	int descriptor;
	/* Bytes to keep of each frame. */
	uint32_t snap;
	/* The system's error at which writing ended, or 0. */
	int error;
	size_t used;
	unsigned char bytes[1 << 20];
};

/* Begins the capture NAME.pcap in a folder, which is made if it is missing; or ends the process with an error. */
struct file *begin_file(const char *folder, const char *name, uint32_t snap);

/* Adds a frame. After an error nothing is written. */
void write_frame(struct file *file, struct rte_mbuf *frame, int64_t stamp_ns);

/* Writes what is left, and closes it. */
void end_file(struct file *file);

#endif
