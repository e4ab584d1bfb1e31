/* What orbit-bench-peer needs to know of another queue's protocol: how to ask, and what an answer looks like. All of them are
 * bytes over one TCP connection, answered in order. */
#ifndef ORBIT_TOOLS_PEERS_PEER_H
#define ORBIT_TOOLS_PEERS_PEER_H

#include "base/bytes.h"

enum { peer_job_id_size = 40 };

struct peer_job {
  char id[peer_job_id_size];
  struct bytes payload; /* into what was read */
};

enum peer_answer {
  PEER_WAIT,
  PEER_DONE,
  PEER_BROKEN
}; /* more bytes are needed; one whole answer; not what the protocol says */

struct peer {
  const char *name, *promise; /* what an answer to a submission means */
  bool batches;               /* many submissions in one sync */
  /* What must be said once before all else, on a connection of its own; NULL: nothing. *ret_answers: how many will come. */
  void (*set_up)(struct buffer *out, unsigned *ret_answers);
  /* What every other connection says first; NULL: nothing. */
  void (*greet)(struct buffer *out, unsigned *ret_answers);
  /* So many tasks; the payloads have the same size and follow each other. *ret_answers: how many answers will come. */
  void (*submit)(struct buffer *out, struct bytes payloads, unsigned count, unsigned *ret_answers);
  /* Asks for up to so many tasks as soon as there are any; again: the last such answer had none. */
  void (*claim)(struct buffer *out, unsigned worker, unsigned count, bool again);
  /* *ret_used: bytes of a whole answer; *ret_count tasks of it, at most limit; 0 where a queue cannot wait for tasks. */
  enum peer_answer (*claimed)(struct bytes in, struct peer_job *jobs, unsigned limit, unsigned *ret_count, size_t *ret_used);
  void (*complete)(struct buffer *out, const struct peer_job *jobs, unsigned count, unsigned *ret_answers);
  /* One answer to anything but a claim. */
  enum peer_answer (*answered)(struct bytes in, size_t *ret_used);
};

extern const struct peer peer_redis, peer_beanstalkd, peer_postgres;

#endif
