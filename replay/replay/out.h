/* A new data directory that a tool makes: worked on under another name beside it, and given its own when it is whole. */
#ifndef ORBIT_REPLAY_OUT_H
#define ORBIT_REPLAY_OUT_H

struct out {
  const char *path; /* OUT */
  char *work;       /* OUT.new */
};

/* Refuses an OUT that exists, and leftovers of an interrupted run. An exit code; out_clear in any case. */
int out_begin(struct out *out, const char *path);
/* Names it OUT, for good. An exit code. */
int out_keep(struct out *out);
/* Removes what out_begin's caller has made. */
void out_drop(const struct out *out);
void out_clear(struct out *out);

#endif
