/* One HTTP request from its first line to its answer, without the library that carries it: judged, read, handed to the engine,
 * answered. Everything here belongs to one HTTP thread. */
#ifndef ORBIT_EDGE_REQUEST_H
#define ORBIT_EDGE_REQUEST_H

#include "codec/digest.h"
#include "codec/json.h"
#include "edge/edge.h"
#include "edge/feed.h"
#include "edge/http_head.h"
#include "edge/http_target.h"
#include "state/history.h"

struct route;
struct request;

/* What requests share: one a thread. */
struct request_pool {
  struct edge *edge;
  struct outbox *outbox;        /* where tickets come back */
  _Atomic uint64_t *body_bytes; /* room taken by bodies, over all threads */
  const _Atomic bool *stopping; /* new requests are refused */
  struct id_source ids;         /* request ids */
  struct history *history;
  struct journal_reader *reader; /* NULL until first needed */
  bool snapshot_taken;           /* the reader's snapshot is of this round */
  struct job *free_jobs;
  uint32_t free_job_count;
  uint32_t jobs_out;              /* tickets that the engine has */
  struct feed *feed;              /* NULL until somebody reads it */
  _Atomic uint32_t *feed_readers; /* requests that read the feed, over all threads */
};
void request_pool_init(struct request_pool *pool, struct edge *edge, struct outbox *outbox, _Atomic uint64_t *body_bytes,
                       _Atomic uint32_t *feed_readers, const _Atomic bool *stopping);
void request_pool_clear(struct request_pool *pool); /* no ticket may be out */
/* Ends a round: lets the snapshot of the log go. Spans that handlers got from it die. */
void request_pool_release(struct request_pool *pool);
/* The log as it stands in this round. UNAVAILABLE. */
enum status request_pool_source(struct request_pool *pool, struct record_source *ret_source, struct fault *fault);
/* A fresh request id into out, NUL-terminated. */
void request_pool_next_id(struct request_pool *pool, char out[request_id_chars + 1]);

/* A command under way with all that its spans point at. The engine has it between engine_submit and its return; when the
 * request is answered before (the ticket took too long), `request` is NULL and the job is freed when it comes back. */
struct job {
  struct ticket ticket;
  struct request *request; /* NULL: nobody waits for it any more */
  struct job *next;
  struct json json;
  struct buffer body, texts;
  struct batch_item *items;    /* of a batch; owned */
  uint64_t reserved;           /* its share of body_bytes */
  char token[token_chars + 1]; /* of a new credential, to be shown once; wiped when the job is over */
  uint8_t token_hash[token_hash_bytes];
};
/* Makes the job's token and returns its hash, which lives as long as the job's command. */
struct bytes job_token(struct job *job);

enum request_phase {
  REQUEST_NEW = 0,  /* request_open comes next */
  REQUEST_READING,  /* the body, if any, is awaited */
  REQUEST_WAITING,  /* the engine has the ticket */
  REQUEST_FEEDING,  /* it reads the feed: request->feed is there */
  REQUEST_ANSWERED, /* out, http_status and the header values are ready */
};

/* A reader of the feed. */
struct request_feed {
  struct feed_reader reader;
  int64_t due_ms; /* monotonic: a page is answered then with nothing on it, a stream gets a heartbeat */
  uint64_t told;  /* stream: the last position that the client knows of */
  size_t sent;    /* stream: of out */
  bool over;      /* stream: it ends when out is sent */
};

struct request {
  struct request_pool *pool;
  enum request_phase phase;
  const struct route *route;     /* NULL: none fits */
  struct principal who;          /* zero on open routes */
  struct directory_place *place; /* among the requests of its credential; NULL on open routes */
  struct head head;              /* filled by the carrier before request_open */
  struct target target;
  struct buffer target_text;       /* the raw target, decoded in place by target_parse */
  struct id ids[2];                /* path ids in order */
  uint32_t page_start, page_limit; /* list routes */
  uint32_t wait_ms;                /* a page of the feed: how long it may wait */
  bool stream;                     /* the client wants the feed as text/event-stream */
  struct request_feed *feed;       /* FEEDING; owned */
  struct job *job;                 /* NULL: none, or let go */
  size_t discarded;                /* bytes of the body that were read after the refusal */
  bool close;                      /* the connection must not be used again */
  /* the answer */
  enum status status;
  unsigned http_status;
  uint32_t retry_after_ms; /* 0: no Retry-After */
  char allow[64];          /* value of Allow, for 405 */
  char id[request_id_chars + 1];
  struct buffer out; /* the body */
};

void request_init(struct request *request, struct request_pool *pool);
void request_clear(struct request *request); /* gives its job up or away */
/* Makes it ready for the next request of the connection. */
void request_reset(struct request *request);

/* The raw target of the request line, as it came. */
void request_start(struct request *request, const char *target);
/* All headers are in request->head: judges everything that can be judged without the body. Leaves READING, or ANSWERED with a
 * refusal. */
void request_open(struct request *request, const char *method, bool http_1_1);
/* A piece of the body. False: far too much of it came after the refusal; the connection must be closed now. */
bool request_body(struct request *request, const void *data, size_t size);
/* More of the body is to come, as far as is known: of a chunked one its end is told by request_complete alone. */
bool request_lacks_body(const struct request *request);
/* It reads the feed, and may wait for long after its ticket came back. */
bool request_is_feed(const struct request *request);
/* The body is whole: leaves WAITING or ANSWERED. Does nothing in WAITING. */
void request_complete(struct request *request);
/* The ticket came back and the request waits for it: leaves ANSWERED, or FEEDING. */
void request_returned(struct request *request);
/* The ticket took too long: answers 503 and leaves the job to the engine. */
void request_give_up(struct request *request);
/* Content-Type of the answer. */
const char *request_media_type(const struct request *request);
/* Takes back a job that came through the outbox; returns its request, or NULL when nobody waits for it (it is freed then). */
struct request *job_returned(struct request_pool *pool, struct mail *mail);

/* ---- request_feed.c: requests in FEEDING ---- */

/* It begins to wait; a stream that has nothing to say gets a heartbeat so often. */
void request_feed_wait(struct request *request, int64_t now_ms, int64_t heartbeat_ms);
/* Its turn, while pool->feed shows the log: true when there is something to be sent: a page (the request is ANSWERED), or bytes
 * of the stream, or the stream is over. *ret_more: else its next turn should come soon, there is more of the log to be looked
 * at. */
bool request_feed_step(struct request *request, int64_t now_ms, bool *ret_more);
/* Nobody waits any longer: a page is answered as it is, with a refusal when the log cannot be read, and a stream ends. */
void request_feed_end(struct request *request, bool readable);
/* The first bytes of a stream. */
void request_feed_greet(struct request *request);
/* Takes at most room bytes of the stream; returns how many. */
size_t request_feed_take(struct request *request, char *out, size_t room);

/* ---- between request.c and request_feed.c ---- */

/* OPEN_FEED was answered: the request becomes a reader. UNAVAILABLE: there are too many. */
enum status request_feed_open(struct request *request, struct answer *answer, struct fault *fault);
void request_feed_close(struct request *request); /* it is none any more; also when it was none */
void request_finish(struct request *request, const struct answer *answer);
void request_refuse(struct request *request, struct fault *fault);

/* For handlers that answer several things at once: makes a refusal fit to be told, as the whole request's would be. */
void request_publish_fault(const struct request *request, struct fault *fault);
/* For handlers: true when the client wants no more than this many bytes on a page. */
static inline bool request_page_is_full(const struct request *request) { return request->out.size >= http_page_bytes; }

#endif
