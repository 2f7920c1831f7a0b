/* Sets the frequency of the clock of a NIC, as a daemon of PTP does: phc DEVICE PARTS-PER-MILLION. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timex.h>
#include <time.h>

int main(int count, char **words)
{
	struct timex change = { .modes = ADJ_FREQUENCY };
	int file;

	if (count != 3 || (file = open(words[1], O_RDWR)) < 0)
		return 1;
	/* Millionths, with 16 bits behind the point. The clock of a file: clock_gettime(2). */
	change.freq = atol(words[2]) * 65536;
	if (clock_adjtime((~(clockid_t)file << 3) | 3, &change) < 0) {
		perror(words[1]);
		return 1;
	}
	return 0;
}
