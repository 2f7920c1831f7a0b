/* Captures in nanoseconds, in the byte order of this machine: the form in which tailtrim-agent writes them. */
#ifndef PCAP_H
#define PCAP_H

#include <stdint.h>

struct pcap_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, accuracy;
	uint32_t snap;
	uint32_t link;
};

struct pcap_record {
	uint32_t seconds, nanoseconds;
	/* Bytes that follow, and bytes of the frame without FCS. */
	uint32_t kept, length;
};

#define PCAP_MAGIC UINT32_C(0xa1b23c4d)
#define PCAP_ETHERNET 1

/* Stands for the stamp of a frame that has none, as tailtrim reads it: the last one that the form has, in 2106. */
#define NO_STAMP_NS (INT64_C(4294967295) * 1000000000 + 999999999)

#endif
