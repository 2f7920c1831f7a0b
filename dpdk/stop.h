/* Ends: SIGINT, SIGTERM, the end of standard input, the death of the parent. */
#ifndef STOP_H
#define STOP_H

#include <stdbool.h>

/* Catches the signals. The process also ends with its parent, or with its standard input, if that is asked for. */
void watch_ends(bool with_parent, bool with_input);

/* Whether the process is to end. */
bool is_over(void);

/* Ends the work of all threads. */
void end_all(void);

/* Waits for so long, or until the process is to end. */
void wait_ms(int ms);

#endif
