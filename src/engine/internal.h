/* What the files of this room share. */
#ifndef ORBIT_ENGINE_INTERNAL_H
#define ORBIT_ENGINE_INTERNAL_H

#include <pthread.h>

#include "base/limits.h"
#include "core/decide.h"
#include "engine/clock.h"
#include "engine/engine.h"
#include "engine/mailbox.h"
#include "engine/metrics.h"
#include "engine/zones.h"
#include "state/evict.h"
#include "state/heap.h"
#include "state/index.h"
#include "state/pool.h"

/* A connected worker: a session of an instance. */
struct worker {
  uint64_t session; /* 0: free */
  struct outbox *home;
  struct session_gauge *gauge;
  struct principal who;
  struct id instance_id;
  struct id session_id;
  struct bytes name; /* owned; data NULL: none */
  uint32_t number;
  uint32_t instance; /* number in the state */
  uint32_t group;
  uint32_t capacity;
  uint32_t lease_ms; /* 0: the queue's */
  uint32_t position; /* in its group's heap; 0: takes nothing now */
  bool draining;
  bool drained_told;
  bool slow; /* its socket lags: looked at again in the next tick */
};

/* Workers that offer the same handlers in the same queues. */
struct worker_group {
  uint32_t number;
  uint32_t workers;
  struct id offer;   /* digest of namespace, queues and handlers */
  uint32_t *buckets; /* owned */
  uint32_t bucket_count;
  struct heap free; /* workers with free capacity: most free first, then the one that was idle longest */
};

/* The groups that serve a bucket, by bucket number. */
struct bucket_service {
  uint32_t *groups;
  uint32_t count, capacity;
  uint32_t hot_position; /* in the heap of buckets that may give a task now */
  uint32_t hot_task;     /* its first task when it was put there */
};

/* Mail that leaves with this tick, for one outbox. */
struct departure {
  struct outbox *home;
  struct mail *oldest, *newest;
};

/* A tick whose commit is on its way to the disk, with all that waits for it. */
struct flight {
  struct commit commit;
  int64_t handed_us; /* monotonic */
  struct departure departures[departures_max];
  uint32_t departure_count;
};

/* A ring: they land in the order in which they were made. */
struct flights {
  struct flight *places; /* owned; commits_in_flight_max of them; NULL: every commit is waited for */
  uint32_t first, count;
  uint64_t bytes;
};

struct engine {
  struct journal *journal;
  struct journal_reader *reader;
  struct state *state;
  struct history *history;
  struct directory *directory;
  struct id_source ids;
  struct zones *zones;
  int64_t up_since; /* when this server came up, in Orbit's time */
  struct id node_id;
  char version[32];
  int64_t hot_window_us;
  int64_t retention_us;
  int64_t retain_at_us; /* when it is looked at again */
  uint64_t memory_max;

  struct mailbox mailbox;
  struct mail *waiting; /* taken from the mailbox, not yet handled; oldest first */
  struct departure departures[departures_max];
  uint32_t departure_count;

  uint32_t company_min;
  int64_t slow_disk_us;
  int64_t commit_us; /* what commits took of late */
  struct flights flights;
  int64_t made_up_us; /* until then leases were made longer for what was not heard */

  /* the tick */
  struct commit commit;
  int64_t now_us;
  bool reader_fresh;
  bool disk_full; /* no new work; what goes on lives on the reserve */
  bool starved;   /* and the reserve is used up: something had to wait */
  bool directory_stale;
  uint32_t handled; /* tickets */
  struct event_list list;
  struct buffer scratch; /* texts read from the log that must outlive the next staged event */

  /* dispatch */
  struct pool workers, groups;
  struct index sessions;           /* session -> worker */
  struct index offers;             /* offer digest -> group */
  struct bucket_service *services; /* by bucket number */
  uint32_t service_count;
  uint32_t slow_count;
  uint64_t assignments;      /* counts up: who was served last */
  uint32_t asides_left;      /* of this tick: tasks that may be put aside */
  int64_t dispatch_again_us; /* rate limits, slow sockets; INT64_MAX: nothing to wait for */
  struct heap hot;

  _Atomic bool draining;
  _Atomic bool stopping;
  _Atomic uint64_t ticks;
  pthread_mutex_t clock_lock;
  struct clock clock;
  struct engine_counters counters;
  struct watches watches;
  _Atomic uint64_t mailbox_full;
};

/* engine.c: numbers, stages and folds what a command led to; spans of the events must be alive. NO_MEMORY ends the process. */
void engine_append(struct engine *engine);
/* Records as this tick sees them: the log's and those of the commit that is being made. */
/* False when the disk is full and the reserve cannot take one more command: nothing may be decided. */
bool engine_has_room(struct engine *engine);
struct record_source engine_source(struct engine *engine);
struct decide_env engine_env(struct engine *engine);
/* Counts a commit that is durable, and what it took. */
void engine_committed(struct engine *engine, int64_t took_us);
/* The mail leaves when the tick's commit is durable. */
void engine_depart(struct engine *engine, struct outbox *home, struct mail *mail);

/* Sends off everything that waits for the tick's commit, which is durable. */
void engine_depart_all(struct engine *engine, struct departure *departures, uint32_t *count);

/* flights.c: commits on their way. */
void flights_begin(struct engine *engine);
/* What is on its way lands or is lost; nobody is answered. */
void flights_end(struct engine *engine);
/* Lets land what is durable, the oldest first, and waits until at most `left` are on their way. Anything but OK: a write
 * failed, and nothing of it or behind it has left or will. */
enum status flights_land(struct engine *engine, uint32_t left, struct fault *fault);
/* Waits until one more commit may be on its way. */
enum status flights_wait(struct engine *engine, struct fault *fault);
/* The tick's commit begins its way, and what waits for it goes along. */
void flights_take_off(struct engine *engine);
/* What the tick made beside a commit waits until all that it has seen is durable. */
void flights_join(struct engine *engine);
/* A commit is on its way for longer than flight_us_max. */
bool flights_hang(const struct engine *engine);
/* The time of the oldest tick on its way. */
int64_t flights_since_us(const struct engine *engine);
/* The record, if its commit is on its way; data NULL: not here. */
struct bytes flights_record(const struct engine *engine, uint64_t seq);

/* retention.c: moves retention on, when ended tasks are old enough; looks now and then. */
void retention_move(struct engine *engine);

/* commands.c: fills ticket->answer. */
void command_handle(struct engine *engine, struct ticket *ticket);
/* OK with the task when it is in the principal's namespace and queue scope; else NOT_FOUND, never telling which. */
enum status command_reach_task(struct engine *engine, const struct principal *who, const struct id *task_id,
                               uint32_t *ret_number, struct fault *fault);
bool command_reaches_queue(struct engine *engine, const struct principal *who, const struct id *queue_id);
/* Looks for the receipt of the command, which is about this task (NULL: about none that exists). END: none. OK: *ret_event
 * carries it and the content is the same. IDEMPOTENCY_CONFLICT, UNAVAILABLE. */
enum status command_receipt(struct engine *engine, const struct command *command, const struct task *task,
                            struct event *ret_event, struct fault *fault);
/* UNAVAILABLE, to be asked again: what left memory cannot be read at the moment. */
enum status command_store_fault(struct fault *fault);
enum status refuse(struct answer *answer, enum status status);
#ifdef ORBIT_ANALYSIS /* as in base/status.h */
#define refuse(answer, code) (((void)(refuse)(answer, code)), (enum status)(code))
#endif
/* UNAVAILABLE when the disk is full: a new task needs room in the log. */
enum status command_room(struct engine *engine, struct fault *fault);
/* One submission, alone or of a batch. */
enum status command_submit(struct engine *engine, const struct command *command, struct answer *answer);

/* recovery.c and admin.c */
enum status recovery_cancel(struct engine *engine, struct ticket *ticket);
enum status recovery_review(struct engine *engine, struct ticket *ticket);
enum status recovery_retry(struct engine *engine, struct ticket *ticket);
enum status recovery_batch(struct engine *engine, struct ticket *ticket);
/* The instance is back: it is told again of the cancel request that is on record for what it runs, if there is one. */
void recovery_tell_again(struct engine *engine, struct worker *worker, uint32_t number);
enum status admin_namespace(struct engine *engine, struct ticket *ticket);
enum status admin_application(struct engine *engine, struct ticket *ticket);
enum status admin_queue(struct engine *engine, struct ticket *ticket);
enum status admin_credential(struct engine *engine, struct ticket *ticket);
enum status admin_get_queue(struct engine *engine, struct ticket *ticket);
enum status admin_get_application(struct engine *engine, struct ticket *ticket);
enum status admin_get_credential(struct engine *engine, struct ticket *ticket);
enum status admin_list_tasks(struct engine *engine, struct ticket *ticket);
enum status admin_list_objects(struct engine *engine, struct ticket *ticket);
enum status admin_list_audit(struct engine *engine, struct ticket *ticket);
/* subscriptions.c */
enum status feed_write_subscription(struct engine *engine, struct ticket *ticket);
enum status feed_get_subscription(struct engine *engine, struct ticket *ticket);
enum status feed_open(struct engine *engine, struct ticket *ticket);
enum status metrics_get(struct engine *engine, struct ticket *ticket);

/* schedules.c and triggers.c */
enum status schedule_write(struct engine *engine, struct ticket *ticket);
enum status schedule_get(struct engine *engine, struct ticket *ticket);
enum status schedule_preview(struct engine *engine, struct ticket *ticket);
/* Decides the times of schedules that have come. Before any ticket of the tick is taken up. */
void triggers_fire(struct engine *engine);
/* When the next one comes; INT64_MAX: none, or none will be decided any more. */
int64_t triggers_next(const struct engine *engine);

/* attempts.c: start, renew, finish, release. */
enum status attempt_start(struct engine *engine, struct ticket *ticket);
enum status attempt_renew(struct engine *engine, struct ticket *ticket);
enum status attempt_finish(struct engine *engine, struct ticket *ticket);
enum status attempt_release(struct engine *engine, struct ticket *ticket);
/* Orbit acts on a task whose timer has come. */
void attempt_expire(struct engine *engine, uint32_t number);

/* workers.c */
enum status worker_hello(struct engine *engine, struct ticket *ticket);
enum status worker_set_capacity(struct engine *engine, struct ticket *ticket);
enum status worker_drain(struct engine *engine, struct ticket *ticket);
enum status worker_bye(struct engine *engine, struct ticket *ticket);
struct worker *worker_of_session(struct engine *engine, uint64_t session);
struct worker *worker_of_task(struct engine *engine, uint32_t task_number); /* who holds it and is connected; NULL */
/* Its capacity, held attempts or socket changed: its place among the free ones follows. */
void worker_settle(struct engine *engine, struct worker *worker);
/* An attempt of the instance ended (the fold is done): its slot is free; tells a drained worker so. */
void worker_freed(struct engine *engine, struct worker *worker);
void workers_clear(struct engine *engine);
/* The free worker of the bucket that should take the next task; NULL: none. */
struct worker *worker_choose(struct engine *engine, uint32_t bucket);
void worker_push_assign(struct engine *engine, struct worker *worker, uint32_t task_number);

/* dispatch.c */
void dispatch(struct engine *engine);

#endif
