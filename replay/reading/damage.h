/* The last net under a damaged log: liblmdb trusts its pages, and a flipped bit in one can end the process. */
#ifndef ORBIT_REPLAY_DAMAGE_H
#define ORBIT_REPLAY_DAMAGE_H

/* From here on SIGSEGV, SIGBUS and SIGABRT end the program with a message and exit code 3. */
void damage_guard(void);

#endif
