/* What Orbit must do, said a second time in the plainest way: a model of tasks, attempts, receipts, queues and worker sessions
 * that reads requests (sim/request.h) and judges every event that the product commits, every answer and every message to a
 * worker. It shares vocabulary with the product (words, event structures), and no rule.
 *
 * It learns from the log only what the product is free to choose: new ids, and which ready task goes to which worker; and
 * judges whether the choice was lawful. Everything else it says by itself. */
#ifndef ORBIT_TESTS_SIM_MODEL_H
#define ORBIT_TESTS_SIM_MODEL_H

#include "base/status.h"
#include "core/event.h"
#include "sim/request.h"

enum { model_attempts_max = 8, model_sessions_max = 16, model_pushes_max = 512, model_touched_max = 256 };

/* Mistakes that can be put into the model on purpose, to see that a difference is found. */
enum mistake {
  MISTAKE_NONE = 0,
  MISTAKE_EQUAL_IS_IN_TIME,     /* a lease that ends now is still good */
  MISTAKE_CANCEL_FORGETS_DOUBT, /* a cancel of a waiting task in doubt ends it */
  MISTAKE_RETRY_AFTER_DOUBT,    /* RECONCILE_ONLY is tried again */
  MISTAKE_EXPIRY_COSTS_NOTHING, /* an unstarted expiry gives its attempt back */
  MISTAKE_SECOND_SUCCESSOR,     /* a task may be retried by hand twice */
  MISTAKE_COUNT
};

struct model_task {
  struct id id;
  uint32_t number;  /* its place in the model */
  uint8_t schedule; /* its number + 1; 0: none */
  uint8_t queue, handler, concurrency_key, business_key, priority, application, text;
  bool idempotent;
  uint32_t max_attempts, initial_delay_ms, max_delay_ms, attempt_timeout_ms;
  struct id retry_of; /* zero: none */
  enum task_state state;
  uint64_t revision, epoch, last_seq;
  uint32_t attempt_count;
  uint8_t cancels; /* requests that are kept */
  bool uncertain, retried, has_result, has_error;
  int64_t created_at, updated_at, available_at, start_deadline_at, deadline_at, completed_at, cancel_requested_at;
  /* the attempt that holds it; id zero: none */
  struct id attempt_id;
  uint8_t worker_application, instance;
  uint32_t lease_ms;
  int64_t lease_until, live_until, started_at, attempt_deadline_at;
};

/* A claim that was made, for reports that come late. */
struct model_attempt {
  struct id id;
  uint8_t application;
  uint32_t report;  /* number of the receipt of its applied report; 0: none */
  uint8_t evidence; /* reports without authority that are kept */
};

/* An object of administration as it is shown. */
struct model_object {
  struct id id;
  uint64_t revision;
  bool over; /* paused, disabled, revoked */
  uint64_t limits[limits_max];
  int64_t expires_at;
};

struct model_receipt {
  struct request request;
  struct model_task then; /* as it stood then: what repeats show */
  enum decision disposition;
  bool evidence, applied;
  struct id audit_id;
  struct model_object object; /* queues, applications, credentials */
  uint32_t next;              /* of the same hash; 0: none */
};

struct model_queue {
  struct id id;
  uint64_t revision, last_seq;
  uint64_t limits[limits_max];
  bool paused;
  int64_t rate_at;
  uint64_t counts[TASK_ENUM_END];
};

struct model_application {
  struct id id;
  uint64_t revision, last_seq, unfinished, max_unfinished;
  bool disabled;
};

struct model_credential {
  struct id id;
  uint8_t application;
  bool narrow, revoked;
  uint64_t revision, last_seq;
  uint64_t token, old_token; /* numbers; 0: none */
  int64_t expires_at;
};

struct model_schedule {
  struct id id;
  uint8_t queue, application;
  struct planned plan;
  struct request template; /* what its tasks are */
  bool paused, deleted;
  uint64_t revision, last_seq, config_seq;
  int64_t anchor_at, next_at, free_at; /* as the product's (core/model.h) */
  uint32_t unfinished;
  uint32_t decided; /* in this tick */
};

/* What a reader of the feed is shown. */
struct model_filter {
  uint8_t types, queue; /* asked_any: any */
  struct id task_id;    /* zero: any; else queue is the task's */
};

struct model_subscription {
  struct id id;
  struct model_filter filter;
  uint8_t name;
  bool deleted;
  uint64_t position, revision, last_seq;
};

struct model_session {
  uint64_t session; /* 0: none */
  uint8_t who, instance, queue_mask, handler_mask;
  uint32_t capacity, lease_ms;
  bool draining, drained_told;
};

/* What a worker must be told. */
enum told { TOLD_ASSIGN = 1, TOLD_CANCEL, TOLD_ENDED, TOLD_DRAINED, TOLD_CLOSE };
struct model_push {
  enum told told;
  uint64_t session;
  struct id task_id, attempt_id;
  enum ended_by ended_by;
};

/* An administrative audit record. */
struct model_audit {
  uint64_t seq;
  struct id target_id;
};

/* An event of the log, by its seq. */
struct model_event {
  int64_t time_us;
  enum event_type type;
  struct id stream;
};

/* What the answer must be. */
struct expected {
  enum status status;
  bool created, deduplicated, applied, evidence;
  enum decision disposition;
  bool has_task; /* also on a refusal of a worker's request */
  struct model_task task;
  bool lease_active;
  int64_t lease_expires_at;
  struct id audit_id;
  struct model_queue queue;
  struct model_object object;
  const struct model_schedule *schedule; /* as it lives; NULL: none */
  uint32_t held_count;                   /* hello */
  uint64_t log_end, after;               /* subscriptions, the feed */
  struct model_filter filter;
  uint32_t lease_ms;
};

/* The events of one commit as they were found in the log. */
struct seen {
  const struct event *events;
  uint32_t count, at;
};

/* One that was foreseen: filled by the rules, compared field by field. */
struct foreseen {
  struct event event;
  char texts[512];
  uint32_t texts_used;
};

struct model {
  int64_t now_us;
  enum mistake mistake;
  struct id namespace_id, node_id;
  struct model_application applications[applications_max];
  struct model_credential credentials[credentials_max]; /* the first are the principals' */
  struct model_queue queues[queues_max];
  struct model_schedule schedules[schedules_max];
  struct model_subscription subscriptions[subscriptions_here_max];
  uint32_t queue_count, credential_count, schedule_count, subscription_count;
  int64_t up_since;    /* when the server came up */
  bool tokens_changed; /* which tokens are good */
  uint32_t held[applications_max][instances_max];
  uint32_t key_held[queues_max][concurrency_keys_max];
  struct model_task *tasks;
  struct model_attempt (*attempts)[model_attempts_max]; /* by task number */
  uint32_t task_count, task_capacity;
  uint32_t *unfinished;    /* numbers of tasks */
  uint32_t *unfinished_at; /* by task number: its place there */
  uint32_t unfinished_count;
  uint32_t *task_table;           /* hash of the id -> number + 1 */
  struct model_receipt *receipts; /* from 1 on */
  uint32_t receipt_count, receipt_capacity;
  uint32_t *receipt_table;
  struct model_audit *audits; /* in the order of the log */
  uint32_t audit_count, audit_capacity;
  struct model_session sessions[model_sessions_max];
  struct model_event *log; /* from seq 1 on */
  uint64_t log_count, log_capacity;
  uint64_t node_last_seq;
  int64_t retention_us;  /* how long ended tasks are answered; 0: for ever */
  uint64_t retained_seq; /* those that ended by then, and to which nothing happened since, are gone */
  int64_t retention_waits_until;
  /* the tick */
  struct seen seen;
  struct id operation_id; /* of the operation whose events are read; of the one before it until the first is read */
  bool operation_begun;
  struct id actor, identity, digest;
  struct foreseen want;
  const struct event *have;
  bool disk_full, starved, draining; /* draining: the server gives out no new work */
  bool views_short;                  /* what left memory may be out of reach, */
  bool refused_for_now;              /* and the request that is taken up was refused as if it were so */
  struct model_push pushes[model_pushes_max];
  uint32_t push_count;
  uint32_t touched[model_touched_max]; /* tasks that changed */
  uint32_t touched_count;
  char complaint[512]; /* the first thing that was wrong; empty: nothing */
};

void model_init(struct model *model, enum mistake mistake);
void model_clear(struct model *model);
/* Says what is wrong, once. */
void model_complain(struct model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline bool model_is_well(const struct model *model) { return model->complaint[0] == 0; }

/* ---- the parts of a tick, in their order ---- */

void model_tick_begin(struct model *model, int64_t now_us, const struct event *events, uint32_t count, bool disk_full,
                      bool starved);
/* Reads what Orbit did to tasks whose time had come, and complains of those it forgot. */
void model_expire(struct model *model);
/* Reads what became of the times of schedules, and complains of those that were forgotten. */
void model_triggers(struct model *model);
/* Reads which tasks are no more, and complains of those that should be gone. */
void model_retain(struct model *model);
/* Reads what the request led to, and says what the answer must be. identity and digest are those that the product was given. */
void model_take(struct model *model, const struct request *request, const struct operation *operation,
                struct expected *ret_expected);
/* Reads the claims at the end of the commit, and complains of ready tasks that were forgotten beside a free worker. */
void model_dispatch(struct model *model);
/* The time at which Orbit must act next at the latest; INT64_MAX: never. */
int64_t model_next_us(const struct model *model);
/* The server stopped without a word and came up again with node.started at this time. */
void model_restart(struct model *model, const struct event *started);

/* The event is in the log. */
void model_log_add(struct model *model, const struct event *event);

/* ---- looking up ---- */

const struct model_event *model_log_at(const struct model *model, uint64_t seq);
/* Its time is over: as if it never was. */
bool model_is_gone(const struct model *model, const struct model_task *task);
struct model_task *model_task_there(struct model *model, const struct id *id); /* NULL: none, or gone */

/* The wait that would follow if the task's present attempt failed now; it holds one. */
uint64_t model_delay_ms(const struct model_task *task);
/* available_at of the waiting task of the queue that waits longest; 0: none waits. */
int64_t model_oldest_waiting(const struct model *model, unsigned queue);
/* The schedule's first time after this; 0: none. */
int64_t model_time_after(const struct planned *plan, int64_t anchor_at, int64_t after_us);
/* The reader is shown the event; its queue. */
bool model_shows(struct model *model, const struct model_filter *filter, unsigned who, uint64_t seq, unsigned *ret_queue);
struct model_object model_subscription_object(const struct model_subscription *subscription); /* limits[0]: its position */
struct model_object model_schedule_object(const struct model_schedule *schedule);
/* The schedule's next time waits until none of its tasks is unfinished. */
bool model_schedule_waits(const struct model_schedule *schedule);
/* When Orbit must act on the task by itself; INT64_MAX: never. */
int64_t model_due(const struct model_task *task);

struct model_task *model_task(struct model *model, const struct id *id); /* NULL: none */
struct model_session *model_session(struct model *model, uint64_t session);
static inline bool model_is_over(enum task_state state) { return state >= TASK_SUCCEEDED; }
static inline bool model_is_held(enum task_state state) { return state == TASK_LEASED || state == TASK_RUNNING; }
/* The token that the credential has now lets somebody in. */
bool model_token_is_good(const struct model *model, const struct model_credential *credential);
/* Counts everything again from the tasks, and complains where the counts differ. */
void model_recount(struct model *model);

#endif
