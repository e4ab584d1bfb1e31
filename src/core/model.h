/* The objects that Orbit keeps, as the rules see them: plain values, folded from the log and from nothing else
 * (schema/semantics.md). Texts and documents stay in the log; an object points at the event that holds them by seq. */
#ifndef ORBIT_CORE_MODEL_H
#define ORBIT_CORE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "base/limits.h"
#include "core/words.h"

struct application {
  struct id id;
  struct id namespace_id;
  uint64_t revision;
  uint64_t max_unfinished; /* 0: no limit */
  uint64_t unfinished;     /* projection: its tasks that are not terminal */
  uint64_t config_seq;     /* application.created or .changed: the name */
  bool disabled;
};

struct credential {
  struct id id;
  struct id namespace_id;   /* zero: root */
  struct id application_id; /* zero: root */
  uint64_t permissions;     /* bits, as granted (not expanded) */
  int64_t expires_at;       /* 0: never */
  uint64_t revision;
  uint64_t config_seq;  /* credential.created: the name */
  struct id *queue_ids; /* owned by the container; NULL: every queue of the namespace */
  uint32_t queue_count;
  bool revoked;
  uint8_t token_hash[token_hash_bytes];
};

struct queue_rate {
  uint64_t tasks; /* 0: no rate */
  uint64_t per_ms;
  uint64_t burst;
};

struct queue {
  struct id id;
  struct id namespace_id;
  uint64_t revision;
  uint64_t max_unfinished; /* 0: no limit */
  uint64_t max_running;    /* 0: no limit */
  uint64_t key_concurrency;
  struct queue_rate rate;
  uint64_t lease_ms;
  uint64_t config_seq; /* queue.created or .changed: the name */
  bool paused;
  uint64_t counts[TASK_ENUM_END]; /* projection: tasks by state */
  int64_t rate_at;                /* projection: GCRA's theoretical arrival time, µs; moved by task.leased */
};

/* Types of events, a bit each by number; none: every type that the feed shows. */
struct feed_types {
  uint64_t bits[2];
};

/* A durable named cursor over the feed. */
struct subscription {
  struct id id;
  struct id namespace_id;
  struct id queue_id; /* zero: any queue */
  struct id task_id;  /* zero: any task; else queue_id is the task's */
  struct feed_types types;
  uint64_t position; /* acknowledged up to here */
  uint64_t revision;
  uint64_t config_seq; /* subscription.created: the name */
  uint64_t name_hash;  /* of namespace and name; set by the container */
  bool deleted;
};

/* The current claim of a task, which is kept beside the task while somebody holds it; all zero when nobody does. Its number is
 * task.attempt_count, its epoch task.epoch. */
struct attempt {
  struct id id;
  struct id instance_id;
  struct id application_id; /* of the worker */
  int64_t leased_at;
  int64_t lease_until;         /* folded: as granted, as judged at the start grant, or as given back by node.started */
  int64_t live_until;          /* lease_until plus renewals; memory only, no part of any digest */
  int64_t started_at;          /* 0: no start grant */
  int64_t attempt_deadline_at; /* 0: no start grant */
  uint32_t lease_ms;
};

/* Kept in memory for every task by the million: what follows from other fields is no field. */
struct task {
  struct id id;
  uint64_t accepted_seq; /* task.accepted: texts, payload, owner ids */
  uint64_t last_seq;     /* newest event of its stream: head of the prev chain */
  uint64_t outcome_seq;  /* the attempt.result or task.reviewed whose result, or error, it shows; 0: none */
  int64_t created_at;
  int64_t updated_at; /* of the last revision: once it is over, when it ended */
  int64_t available_at;
  int64_t start_deadline_at; /* 0: none */
  int64_t deadline_at;
  int64_t cancel_requested_at; /* 0: none on record */
  uint32_t queue;              /* index in the container, set by the fold's owner */
  uint32_t application;        /* likewise: whose quota it counts against */
  uint32_t handler;            /* likewise: interned handler and version */
  uint32_t revision;
  uint32_t initial_delay_ms;
  uint32_t max_delay_ms;
  uint32_t attempt_timeout_ms;
  uint32_t payload_bytes; /* what an assignment of it will weigh */
  uint16_t epoch;         /* of the newest claim; 0 before the first */
  uint16_t attempt_count;
  uint16_t max_attempts;
  uint8_t state;           /* enum task_state */
  uint8_t recovery_safety; /* enum recovery_safety */
  uint8_t priority;
  uint8_t ended_as; /* enum attempt_state: how the attempt ended whose decision comes next in this commit; else NONE */
  bool is_error;    /* outcome_seq is that of an error */
  bool effect_uncertain;
  bool retried;   /* it has its one direct successor */
  bool scheduled; /* made by a schedule */
  bool is_retry;  /* made by hand from another task: retry_of in task.accepted */
};

/* Tasks made at certain times. Its texts and the template of its tasks stay in the event at config_seq. */
struct schedule {
  struct id id;
  struct id namespace_id;
  struct id application_id; /* whose quota its tasks count against */
  struct id queue_id;
  uint64_t revision;
  uint64_t config_seq;  /* schedule.created or .changed */
  uint64_t trigger_seq; /* the newest schedule.triggered or .skipped; 0: none */
  uint64_t interval_ms; /* 0: by the clock (cron) */
  int64_t start_at;     /* 0: none */
  int64_t end_at;       /* 0: none */
  int64_t anchor_at;    /* of an interval; 0 else */
  int64_t next_at;      /* 0: none, paused or deleted */
  int64_t created_at;
  int64_t updated_at;  /* of the last revision */
  int64_t free_at;     /* projection: when the last unfinished one of its tasks ended; 0: none has ended */
  uint32_t unfinished; /* projection: its tasks that are not terminal */
  uint32_t catch_up_limit;
  uint8_t kind;    /* enum schedule_kind */
  uint8_t overlap; /* enum overlap */
  uint8_t missed;  /* enum missed */
  bool paused;
  bool deleted;
};

/* True when its next time waits for one of its tasks to end, however late that is. */
bool schedule_waits_for_task(const struct schedule *schedule);
/* When Orbit must look at it; INT64_MAX: never, unless something else happens. */
int64_t schedule_next_timer(const struct schedule *schedule);

bool task_state_is_terminal(enum task_state state);
bool task_state_holds_lease(enum task_state state);
int64_t task_completed_at(const struct task *task); /* 0: not terminal */
/* Where the texts stand that it shows: FAILED by a report, the attempt.result with the error; ended with a result, the
 * attempt.result or task.reviewed. 0: it has none. */
uint64_t task_error_seq(const struct task *task);
uint64_t task_result_seq(const struct task *task);

/* Below, attempt is the task's current one, and is looked at only while the task holds a lease. */

/* The time at which Orbit must act on the task by itself if nothing else happens (lease, attempt timeout, deadlines, and
 * for a waiting task that is not yet due its available_at); INT64_MAX for a task that waits for people or is over. */
int64_t task_next_timer(const struct task *task, const struct attempt *attempt, int64_t now_us);
/* The first bound of the present lease: its end, or the attempt's or the task's, whichever is earliest. The task holds a lease.
 */
int64_t task_lease_bound(const struct task *task, const struct attempt *attempt);
/* True when the attempt has authority at now: the task holds a lease, started or not, and no bound of it has come. */
bool task_lease_is_live(const struct task *task, const struct attempt *attempt, int64_t now_us);
/* When the live lease ends if it is made longer by us: never past a bound of the attempt or the task, and never earlier than it
 * ends now. The task holds a lease. */
int64_t task_lease_longer(const struct task *task, const struct attempt *attempt, int64_t us);
/* time_us + ms; INT64_MAX where that would overflow, which is later than any deadline. */
int64_t time_after_ms(int64_t time_us, uint64_t ms);
int64_t time_earlier(int64_t a, int64_t b);

#endif
