/* A program that does nothing: attaching it changes the kernel's code, which disturbs all CPUs. */
#include "kernel.h"

SECTION("raw_tracepoint") int nothing(void)
{
	return 0;
}
