/* The desk of a worker: which attempts it holds, what has been asked and not answered, what is to be sent next. It knows
 * neither sockets nor threads nor clocks: frames and monotonic milliseconds come in, frames go out. One thread at a time
 * (worker.c holds a lock).
 *
 * An attempt's way: WAITING (assigned, no thread free) → STARTING (task.start) → GRANTED → RUNNING (in its handler) → REPORTING
 * (task.finish) → gone. Or RELEASING (task.release) for one that this worker cannot take. */
#ifndef ORBIT_SDK_DESK_H
#define ORBIT_SDK_DESK_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "base/limits.h"
#include "codec/json.h"
#include "report.h"
#include "sdk.h"
#include "view.h"

enum held_state { HELD_WAITING = 1, HELD_STARTING, HELD_GRANTED, HELD_RUNNING, HELD_REPORTING, HELD_RELEASING };

/* Messages about an attempt that can wait to be sent, as bits. */
enum { DUE_RENEW = 1, DUE_START = 2, DUE_FINISH = 4, DUE_RELEASE = 8 };

struct sdk_handler {
  const char *handler, *version;
  orbit_handler *function;
  void *context;
};

struct sdk_held {
  struct orbit_assignment assignment; /* first: handlers see this part */
  struct sdk_arena arena;             /* its texts */
  uint32_t slot;
  enum held_state state;
  struct sdk_attempt_name name;
  const struct sdk_handler *handler;
  struct id control_id; /* message id of the start, release or finish under way: the same in every repeat */
  struct id renew_id;   /* of the renewal under way; zero: none */
  unsigned due;         /* DUE_… bits */
  int64_t control_sent_ms, renew_sent_ms;
  int64_t start_sent_ms; /* the first task.start that may have been granted: the attempt's time runs from then on */
  int64_t retry_at_ms;   /* when a refused control message is sent again; 0: not refused */
  int64_t renew_at_ms;
  uint64_t lease_ms;                                 /* what a renewal is good for */
  int64_t lease_end_ms, attempt_end_ms, task_end_ms; /* no authority from the earliest on */
  uint64_t attempt_timeout_ms;
  bool in_outbox, seen, replaced;
  TAILQ_ENTRY(sdk_held) queue;  /* waiting, or granted */
  TAILQ_ENTRY(sdk_held) outbox; /* due != 0 */
  struct orbit_report report;   /* the handler's thread's while RUNNING */
  /* Polled by the handler without a lock. */
  atomic_bool cancelled, ended;
  _Atomic int64_t authority_end_ms;
};
TAILQ_HEAD(sdk_held_list, sdk_held);

struct sdk_desk {
  /* Set before desk_init's first use and constant then. */
  const char *instance_id, *name;
  const char *const *queue_ids;
  size_t queue_count;
  uint32_t capacity, threads, lease_ms;
  struct sdk_handler handlers[handlers_max];
  uint32_t handler_count;
  void (*log)(void *log_context, int level, const char *line);
  void *log_context;

  struct id_source ids;
  struct json json;
  struct sdk_held **slots; /* slot_count pointers; NULL: free */
  struct id *attempt_ids;  /* the same order, together for quick comparing; zero: free */
  uint32_t slot_count, held_count;
  uint32_t busy; /* threads that run a handler or are promised to an attempt: STARTING, GRANTED, RUNNING */
  struct sdk_held_list waiting, granted, outbox;

  /* The connection. */
  bool connected, welcomed, hello_due, drain_due, draining, server_drained;
  bool broken; /* the other side breaks the protocol, or does not answer: connect again */
  bool goaway; /* the server shuts down */
  uint64_t reconnect_after_ms;
  struct id hello_id, drain_id;
  int64_t hello_sent_ms, drain_sent_ms, welcomed_ms;
  int64_t server_offset_us; /* server time less 1,000 × monotonic ms, as of the welcome, or a little more */
  uint64_t welcome_lease_ms;

  int64_t next_due_ms; /* nothing is due by time before this */
  bool failed;         /* for good: failure says why */
  struct orbit_error failure;
  struct orbit_worker_stats stats;
};

/* Allocates the slots, once capacity and threads are set. False: no memory or randomness. */
bool sdk_desk_init(struct sdk_desk *desk);
void sdk_desk_clear(struct sdk_desk *desk);

/* The socket is open: hello is due. */
void sdk_desk_connected(struct sdk_desk *desk);
/* It is gone: what was not answered will be sent again, as it was, after the next welcome. */
void sdk_desk_disconnected(struct sdk_desk *desk);
/* One whole frame. Sets broken or failed where the connection cannot go on. */
void sdk_desk_receive(struct sdk_desk *desk, struct bytes frame, int64_t now_ms);
bool sdk_desk_has_output(const struct sdk_desk *desk);
/* Appends the next frame to out, which is not failed; the number of messages in it, 0 for none. Sets broken when memory ends.
 */
uint32_t sdk_desk_compose(struct sdk_desk *desk, int64_t now_ms, struct buffer *out);
/* Does what the time has come for and sets next_due_ms. */
void sdk_desk_tick(struct sdk_desk *desk, int64_t now_ms);
/* From now on no more work is taken. */
void sdk_desk_drain(struct sdk_desk *desk);
/* Drained: the server says so and nothing is held. */
bool sdk_desk_is_drained(const struct sdk_desk *desk);
/* Nothing is being carried out, and no answer is missed: a connection can be given up without loss. */
bool sdk_desk_is_idle(const struct sdk_desk *desk);
/* Every attempt has lost its lease: the worker stops. */
void sdk_desk_abandon(struct sdk_desk *desk);

/* The next attempt whose handler is to be called, RUNNING from now on, or NULL. */
struct sdk_held *sdk_desk_take(struct sdk_desk *desk);
/* Its handler has returned. */
void sdk_desk_return(struct sdk_desk *desk, struct sdk_held *held, enum orbit_outcome outcome, int64_t now_ms);

void sdk_desk_log(const struct sdk_desk *desk, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The worker cannot go on. */
void sdk_desk_fail(struct sdk_desk *desk, int http_status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- Between desk.c and desk_receive.c ---- */

struct sdk_held *sdk_held_new(struct sdk_desk *desk, const struct id *attempt_id); /* NULL: no slot or no memory */
void sdk_held_forget(struct sdk_desk *desk, struct sdk_held *held);                /* out of all lists, and freed */
void sdk_held_due(struct sdk_desk *desk, struct sdk_held *held, unsigned due);     /* to be sent */
/* A message id that leads back to the slot: its last two bytes are the slot's number. */
struct id sdk_held_message_id(struct sdk_desk *desk, const struct sdk_held *held);
void sdk_held_authority(struct sdk_held *held); /* publishes the earliest of the three ends */
void sdk_held_renewable(struct sdk_desk *desk, struct sdk_held *held, int64_t granted_ms); /* sets renew_at_ms */
void sdk_desk_due_at(struct sdk_desk *desk, int64_t at_ms);
void sdk_desk_admit(struct sdk_desk *desk); /* asks for starts as far as threads are free */

#endif
