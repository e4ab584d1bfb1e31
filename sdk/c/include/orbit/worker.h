/* liborbit for workers. Part of orbit.h.
 *
 * A worker holds one connection, on a thread of its own, and runs handlers on a pool of threads. For every task that Orbit
 * assigns it asks for the start grant, runs the handler once the grant is there, renews the lease at a third of its length, and
 * reports. When the connection breaks it connects again (with growing, jittered pauses, as the same instance) and repeats the
 * start and finish messages that have not been answered, each with the message id that it had: Orbit carries each out once, and
 * the handler is never called twice for one attempt.
 *
 * A handler runs only with a start grant. It says what became of the work by what it returns; anything but a well-formed
 * success, failure or confirmed cancellation is reported as UNKNOWN, and so is whatever a handler says after its lease is over
 * (what it said is then kept in the report's details, for people). Orbit decides what follows, by the policy that the task was
 * submitted with. A handler must return; it must not end its thread. */
#ifndef ORBIT_WORKER_H
#define ORBIT_WORKER_H

#include "../orbit.h"

#ifdef __cplusplus
extern "C" {
#endif

struct orbit_worker;
struct orbit_report;

/* What is to be done. Lives until the handler returns. */
struct orbit_assignment {
  const char *task_id; /* the same in every attempt: the key for a handler that must not do its work twice */
  const char *queue_id;
  const char *handler;
  const char *handler_version;
  const char *payload_version;
  const char *payload; /* JSON as submitted, with a NUL after it */
  size_t payload_size;
  const char *business_key; /* NULL for none */
  const char *attempt_id;
  uint32_t number;       /* of the attempt: 1, 2, … */
  uint64_t epoch;        /* rises with each claim of the task: a fencing token for resources that can check it */
  bool effect_uncertain; /* an earlier attempt may have had an effect */
  const char *task_json; /* the whole task, with a NUL after it */
  size_t task_json_size;
};

/* Called on a thread of the pool, for several attempts at once. Returns what one of the orbit_report_… functions returned last,
 * or ORBIT_UNKNOWN. */
typedef enum orbit_outcome orbit_handler(void *context, const struct orbit_assignment *assignment, struct orbit_report *report);

/* For use within a handler, on the report that it was given. Each replaces what was said before, copies its arguments, and
 * returns the outcome to return; ORBIT_UNKNOWN (with INVALID_REPORT as the code that people will see) where its arguments are
 * not well-formed: a result or details that are not JSON or larger than 256 KiB, a code that is not 1–128 of
 * [A-Za-z0-9._:/-], a message that is not UTF-8 or longer than 4,096 characters.
 * message and details may be NULL. A result must not be null.
 * retryable: the work was refused before it had any effect, and may be tried again. Never for "I do not know". */
enum orbit_outcome orbit_report_success(struct orbit_report *report, const char *result, size_t result_size);
enum orbit_outcome orbit_report_failure(struct orbit_report *report, const char *code, bool retryable, const char *message,
                                        const char *details, size_t details_size);
enum orbit_outcome orbit_report_unknown(struct orbit_report *report, const char *code, const char *message, const char *details,
                                        size_t details_size);
/* Only after orbit_assignment_cancelled has been true; otherwise it is an UNKNOWN. code "CANCELLED" is usual. */
enum orbit_outcome orbit_report_cancelled(struct orbit_report *report, const char *code, const char *message);

/* For polling from a handler, or from threads that work for it until it returns. */
bool orbit_assignment_cancelled(const struct orbit_assignment *assignment); /* somebody asked for the task to be cancelled */
bool orbit_assignment_lost(const struct orbit_assignment *assignment);      /* the lease is over: stop acting */
/* Milliseconds until the lease ends unless it is renewed meanwhile, as far as the worker knows; 0 when it is over. */
uint64_t orbit_assignment_remaining_ms(const struct orbit_assignment *assignment);

enum orbit_log_level { ORBIT_LOG_ERROR = 1, ORBIT_LOG_WARNING = 2, ORBIT_LOG_INFO = 3 };

struct orbit_worker_options {
  size_t size;             /* ORBIT_WORKER_OPTIONS_INIT sets it */
  const char *url;         /* the server's, as for a client: where /v1/info names the worker address; NULL with worker_url */
  const char *worker_url;  /* ws://… or wss://…; NULL: ask the server */
  const char *token;       /* required */
  const char *instance_id; /* id; NULL: a random one, made by orbit_worker_new. Two running workers must not share one. */
  const char *name;        /* 1–128 characters, shown to people; NULL: none */
  const char *const *queue_ids;
  size_t queue_count;  /* 1–256 */
  uint32_t capacity;   /* 1–1,000: attempts held at once; 0: 8 */
  uint32_t threads;    /* 1–1,000: handlers running at once; 0: capacity. Attempts without a thread wait unstarted. */
  uint32_t lease_ms;   /* 5,000–300,000; 0: the queue's */
  const char *ca_file; /* as for a client */
  /* Called with a line of text, from the worker's threads; NULL: silence. It never holds a secret, and the function must not
   * call this worker. */
  void (*log)(void *log_context, int level, const char *line);
  void *log_context;
};
#define ORBIT_WORKER_OPTIONS_INIT \
  { sizeof(struct orbit_worker_options), NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL }

/* Keeps copies of all texts; nothing runs yet. For orbit_worker_free. ORBIT_IO_ERROR: no randomness. */
int orbit_worker_new(const struct orbit_worker_options *options, struct orbit_worker **ret_worker, struct orbit_error *error);
/* Offers a handler, at most 256, before orbit_worker_start. fn may be called from several threads at once, with context. One
 * handler and version may be offered once. ORBIT_WRONG_STATE: already started. */
int orbit_worker_handle(struct orbit_worker *worker, const char *handler, const char *handler_version, orbit_handler *fn,
                        void *context, struct orbit_error *error);
/* Starts the threads and returns; connecting goes on by itself. ORBIT_WRONG_STATE: started before, or no handler offered.
 * ORBIT_IO_ERROR: no thread. */
int orbit_worker_start(struct orbit_worker *worker, struct orbit_error *error);
/* Waits until Orbit has welcomed the worker. ORBIT_TIMEOUT (error holds the last failure to connect), ORBIT_STOPPED (see
 * orbit_worker_run), ORBIT_WRONG_STATE: not started. */
int orbit_worker_wait_ready(struct orbit_worker *worker, uint64_t timeout_ms, struct orbit_error *error);
/* Takes no more work and waits until everything held has been reported and Orbit says that the worker is drained.
 * ORBIT_TIMEOUT: that has not come within timeout_ms; the worker goes on draining: call again to wait on, or stop.
 * ORBIT_STOPPED, ORBIT_WRONG_STATE. After ORBIT_OK the connection is closed and only orbit_worker_stop, _stats and _free
 * remain. Not from a handler. */
int orbit_worker_drain(struct orbit_worker *worker, uint64_t timeout_ms, struct orbit_error *error);
/* Starts the worker if need be and returns when it has ended: ORBIT_OK after a drain or a stop from another thread;
 * ORBIT_STOPPED with the reason when it cannot go on: the token was refused, the hello was refused, or another connection took
 * over the instance id. */
int orbit_worker_run(struct orbit_worker *worker, struct orbit_error *error);
/* Closes the connection, waits for running handlers to return (their orbit_assignment_lost is true from now on), and ends the
 * threads. What was not reported ends by its lease. Not from a handler. Calling it again does nothing. */
void orbit_worker_stop(struct orbit_worker *worker);
/* Stops, if need be, and frees. Not from a handler; no other call may be under way. */
void orbit_worker_free(struct orbit_worker *worker);

struct orbit_worker_stats {
  size_t size;       /* ORBIT_WORKER_STATS_INIT sets it */
  uint64_t assigned; /* attempts that Orbit assigned */
  uint64_t started;  /* start grants, each followed by one call of a handler */
  uint64_t start_refused;
  uint64_t running;     /* handlers running now */
  uint64_t held;        /* attempts held now, in whatever state */
  uint64_t confirmed;   /* reports that Orbit confirmed, failures and evidence too */
  uint64_t evidence;    /* of these: kept as evidence alone */
  uint64_t refused;     /* reports that Orbit refused for good */
  uint64_t lost;        /* attempts whose lease ended before their handler returned */
  uint64_t released;    /* attempts given back unstarted */
  uint64_t connections; /* welcomes received: 1, and one more for each reconnection */
  bool connected;       /* welcomed and not disconnected since */
  bool drained;         /* orbit_worker_drain has been fulfilled */
};
#define ORBIT_WORKER_STATS_INIT \
  { sizeof(struct orbit_worker_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, false }
/* A consistent copy of the counters. */
void orbit_worker_stats(struct orbit_worker *worker, struct orbit_worker_stats *ret_stats);
/* The instance id in use. Lives as long as the worker. */
const char *orbit_worker_instance_id(const struct orbit_worker *worker);

#ifdef __cplusplus
}
#endif

#endif
