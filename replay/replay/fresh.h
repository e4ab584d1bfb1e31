/* A new data directory that a tool makes: worked on under another name beside it, and given its own when it is whole. */
#ifndef ORBIT_REPLAY_FRESH_H
#define ORBIT_REPLAY_FRESH_H

struct fresh {
  const char *path; /* OUT */
  char *work;       /* OUT.new */
};

/* Refuses an OUT that exists, and leftovers of an interrupted run. An exit code; fresh_clear in any case. */
int fresh_begin(struct fresh *fresh, const char *path);
/* Names it OUT, for good. An exit code. */
int fresh_keep(struct fresh *fresh);
/* Removes what fresh_begin's caller has made. */
void fresh_drop(const struct fresh *fresh);
void fresh_clear(struct fresh *fresh);

#endif
