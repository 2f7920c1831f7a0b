/* Frees the register for stamps of received packets of an igb of QEMU, again and again: unlatch PCI-ADDRESS.
 *
 * QEMU holds a stamp until RXSATRH is read. Linux reads RXSTMPH, as the real card wants it, so that one packet has a stamp and no
 * other. Needs iomem=relaxed on the boot line. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TSYNCRXCTL = 0xb620, RXSATRH = 0xb630, VALID = 1, SIZE = 0x10000 };

int main(int count, char **words)
{
	char path[128];
	volatile uint32_t *registers;
	int file;

	if (count != 2)
		return 1;
	snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/resource0", words[1]);
	file = open(path, O_RDWR);
	registers = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (registers == MAP_FAILED) {
		perror(path);
		return 1;
	}
	for (;;) {
		if (registers[TSYNCRXCTL / 4] & VALID) {
			/* The driver has to read it first. */
			usleep(200);
			(void)registers[RXSATRH / 4];
		}
		usleep(200);
	}
}
