/* What the files of this room share: the containers behind struct state. */
#ifndef ORBIT_STATE_INTERNAL_H
#define ORBIT_STATE_INTERNAL_H

#include "state/heap.h"
#include "state/index.h"
#include "state/pool.h"
#include "state/state.h"

/* A stream that is no task: namespace, application, credential, queue, node, schedule, subscription. */
enum object_kind {
  OBJECT_NAMESPACE = 1,
  OBJECT_APPLICATION,
  OBJECT_CREDENTIAL,
  OBJECT_QUEUE,
  OBJECT_NODE,
  OBJECT_TASK,
  OBJECT_SCHEDULE,
  OBJECT_SUBSCRIPTION = 8, /* the numbers stand in checkpoints */
};

/* What a namespace counts of its own. */
struct tenant {
  uint32_t subscriptions; /* that are not deleted */
};

/* What objects add to the digest of all views: hashes, summed modulo 2^128, so that what left memory is but a number. */
struct digest_sum {
  uint64_t low, high;
};

/* Where a list of tasks begins and ends. */
struct task_list {
  uint32_t newest, oldest; /* 0: none */
};

struct object {
  struct id id;
  uint64_t last_seq;
  enum object_kind kind;
  struct task_list tasks;  /* queue: those of its tasks that are in memory */
  struct heap waiting;     /* queue: its waiting tasks by available_at */
  uint64_t away;           /* queue: tasks of its counts that are not in memory; all of them have ended */
  uint32_t timer_position; /* schedule: in the heap of schedules */
  union {
    struct schedule schedule;
    struct application application;
    struct credential credential;
    struct queue queue;
    struct subscription subscription;
    struct tenant tenant; /* of a namespace */
  } as;
};

/* What only one kind of state has shares its bytes: places among the ready and the waiting ones, the attempt, the place among
 * the ended ones. Each is 0 before another begins. */
struct task_node {
  struct task task;
  uint32_t timer_position;
  uint32_t key; /* number of the key slot while unfinished; 0: none */
  union {
    struct {                     /* WAITING */
      uint32_t ready_position;   /* in its bucket's heap or its turn's */
      uint32_t waiting_position; /* in its queue's heap of waiting tasks */
    };
    uint32_t attempt; /* LEASED, RUNNING: in the pool of attempts; 0: it has just ended, and its decision comes next */
    struct {          /* ended: among the ended ones */
      uint32_t ended_next, ended_prev;
    };
  };
  uint32_t older, newer;                   /* the task in memory that was accepted before it, after it; 0: none */
  uint32_t queue_older, queue_newer;       /* the same in its queue */
  uint32_t business_older, business_newer; /* the same with the same hash of its business key */
  uint32_t handler_hash;                   /* of handler alone: most tasks of others are passed over without reading the log */
  bool aside : 1;                          /* WAITING: stands in its turn's heap, not in the bucket's */
  bool named : 1;                          /* has a business key */
  bool visits : 1;                         /* came back from the store: stands in no list but that of the ended ones */
};
static_assert(sizeof(struct task_node) == 184, "a finished task takes this, and its places in the indexes");

/* A claim: what is kept of a task only while somebody holds it. */
struct attempt_node {
  struct attempt attempt;
  uint64_t started_identity, started_seq; /* receipt of its start; seq 0: none */
  uint32_t instance;                      /* holder */
  uint32_t next, prev;                    /* tasks among those of its holder */
};

/* A receipt to which its task's history leads too. */
struct recent_receipt {
  uint64_t identity, seq;
  uint32_t task; /* 0: none */
};

struct bucket_node {
  struct bucket bucket;
  uint64_t hash;
  struct heap ready;
};

/* Tasks of one queue with one concurrency key. While the key has room for n more, of each bucket the first n of its tasks with
 * this key stand in the bucket's heap, so that whoever has a worker goes on. */
struct key_slot {
  struct id id; /* XXH3-128 of queue and key */
  uint32_t queue;
  uint32_t held; /* leased or running */
  uint32_t unfinished;
  uint32_t turns; /* first of its turns; 0: none */
};

/* The tasks of one bucket that wait for a key. */
struct turn {
  uint32_t bucket;
  uint32_t next;
  struct heap aside;
};

struct state {
  uint64_t last_seq;
  int64_t last_time_us;
  struct pool objects; /* struct object */
  struct index object_ids;
  struct pool tasks; /* struct task_node */
  struct index task_ids;
  struct pool attempts;                              /* struct attempt_node */
  struct index receipts;                             /* first 8 bytes of the identity -> seq, of those behind receipts_floor */
  struct recent_receipt recent[recent_receipts_max]; /* of tasks, the newest ones, in a ring */
  uint32_t recent_at;                                /* where the next one goes */
  bool keeps_receipts;                               /* of ended tasks, too */
  struct pool buckets;                               /* struct bucket_node */
  struct index bucket_keys;
  struct pool keys; /* struct key_slot */
  struct index key_ids;
  struct pool turns;     /* struct turn */
  struct pool instances; /* struct instance */
  struct index instance_ids;
  struct heap timers;
  struct heap schedule_timers;
  struct index schedule_tasks; /* number of an unfinished task -> number of the schedule that made it */
  uint32_t trigger_pending;    /* schedule whose task was accepted by the last event: its trigger comes next; 0: none */
  struct index business_keys;  /* hash of namespace and business key -> newest task */
  uint64_t *audits;            /* seqs of audit records whose target is no task, oldest first */
  uint64_t audit_count, audit_capacity;
  uint64_t ready_count;            /* over all buckets */
  struct index subscription_names; /* hash of namespace and name -> object, of those that are not deleted */
  struct task_list order;          /* tasks in memory by acceptance */
  struct task_list ended;          /* ended ones in memory by their newest event; those that visit are the oldest */
  uint64_t retained_seq;           /* ended tasks whose newest event is not after this one are gone */

  /* what left memory, and may be in the store (state/cold.h) */
  struct cold *cold;       /* not owned; NULL: nothing ever leaves but what is gone */
  uint64_t tasks_away;     /* ended tasks that are not in memory */
  uint32_t visiting;       /* tasks in memory that only visit: lists find them by their rows */
  uint64_t left_seq;       /* ended tasks whose newest event is not after this one have left */
  uint64_t receipts_floor; /* receipts up to this seq are not in memory */
  uint64_t needed_seq;    /* how far the store must have followed the log to hold what is not here; 0: nothing is there alone */
  struct digest_sum away; /* what all of it adds to the digest */
};

static inline struct task_node *node_at(const struct state *state, uint32_t number) { return pool_at(&state->tasks, number); }
static inline struct attempt_node *attempt_at(const struct state *state, uint32_t number) {
  return pool_at(&state->attempts, number);
}
/* The number of the task's attempt; 0: it has none. */
static inline uint32_t node_claim(const struct task_node *node) {
  return node->task.state == TASK_LEASED || node->task.state == TASK_RUNNING ? node->attempt : 0;
}
/* The attempt of this task; all zero when nobody holds it. */
const struct attempt *node_attempt(const struct state *state, const struct task_node *node);
/* False for the numbers of tasks that left memory. */
static inline bool node_is_there(const struct task_node *node) { return node->task.accepted_seq != 0; }
static inline struct object *object_at(const struct state *state, uint32_t number) { return pool_at(&state->objects, number); }
static inline struct bucket_node *bucket_at(const struct state *state, uint32_t number) {
  return pool_at(&state->buckets, number);
}
static inline struct key_slot *key_at(const struct state *state, uint32_t number) { return pool_at(&state->keys, number); }
static inline struct turn *turn_at(const struct state *state, uint32_t number) { return pool_at(&state->turns, number); }

uint32_t object_find(const struct state *state, const struct id *id); /* 0: none */
struct object *object_of_kind(const struct state *state, const struct id *id, enum object_kind kind);
enum object_kind event_object_kind(enum event_type type); /* of the stream; 0 for audit.recorded */

/* subscriptions.c: names and counts follow. */
uint64_t subscription_name_hash(const struct id *namespace_id, struct bytes name); /* never 0 */
bool subscription_name_is_taken(const struct state *state, uint64_t name_hash);
/* The subscription, which is not deleted, takes its name and counts in its namespace. False: its namespace is not there. */
bool subscription_place(struct state *state, uint32_t number);
void subscription_fold(struct state *state, uint32_t number, const struct event *event);
/* Why the event, whose object is there and its revision right, does not fit; NULL: it does. */
const char *subscription_misfit(const struct state *state, const struct event *event);
/* What is wrong with names or counts; NULL: nothing. For state_check. */
const char *subscription_disorder(const struct state *state);

/* What an event's stream is, looked up once for judging and folding it. Holds until the next fold. */
struct footing {
  bool is_task;
  uint32_t number; /* of the task or the object; 0: there is none yet */
};
struct footing footing_find(const struct state *state, const struct event *event);
/* can_apply.c: as state_can_apply. */
bool footing_fits(const struct state *state, const struct event *event, const struct footing *footing, const char **ret_reason);

/* ready.c: after a task's state changed, its places in timers, ready order, key slot and instance follow. */
void ready_attach(struct state *state, uint32_t number, const struct event_task_accepted *accepted);
/* A task that comes from a checkpoint takes all its places at once, as they are at this time; bucket is its bucket while it is
 * unfinished, attempt its attempt while it is held. */
void ready_restore(struct state *state, uint32_t number, uint32_t bucket, const struct id *key_id,
                   const struct attempt *attempt, int64_t now_us);
uint32_t bucket_make(struct state *state, uint32_t queue, struct bytes handler, struct bytes handler_version);
uint64_t bucket_hash(uint32_t queue, struct bytes handler, struct bytes handler_version);
struct id key_id_make(const struct id *queue_id, struct bytes key);
void ready_follow(struct state *state, uint32_t number, enum task_state before, int64_t time_us);
/* A waiting task leaves the ready and the waiting ones. Before it is leased, since its attempt stands in the same place; else
 * ready_follow does it. */
void ready_withdraw(struct state *state, uint32_t number);
void ready_queue_changed(struct state *state, uint32_t queue);
void timer_set(struct state *state, uint32_t number, int64_t now_us);
/* The turn of a key's tasks in this bucket; 0: none ever waited. */
uint32_t turn_find(const struct state *state, const struct key_slot *slot, uint32_t bucket);
/* How many more of its tasks may be leased. */
uint64_t key_room(const struct state *state, const struct key_slot *slot);
/* What is wrong with the order of timers, ready, aside or waiting tasks; NULL: nothing. For state_check. */
const char *ready_misfit(const struct state *state);

/* listing.c: a new task takes its place in the lists; an ended one that leaves memory gives it up. business_hash: 0 unless it
 * is named. */
void listing_leave(struct state *state, uint32_t number, uint64_t business_hash);
void listing_attach(struct state *state, uint32_t number, const struct event_task_accepted *accepted);
/* The same from the hashes alone: business_hash 0: no business key; the node's handler_hash is set. */
void listing_place(struct state *state, uint32_t number, uint64_t business_hash);
uint64_t business_key_hash(const struct id *namespace_id, struct bytes key); /* never 0 */
uint32_t handler_name_hash(struct bytes handler);
void listing_audit(struct state *state, uint64_t seq);

/* schedules.c */
uint32_t schedule_of_task(const struct state *state, uint32_t task); /* while that is unfinished; 0: none */
/* The schedule or what it waits for changed: its place in the order follows. */
void schedule_follow(struct state *state, uint32_t number);
void schedule_take_task(struct state *state, uint32_t number, uint32_t task);
/* The same from a checkpoint, where the count stands in the schedule's row. */
void schedule_link(struct state *state, uint32_t number, uint32_t task);
void schedule_let_task_go(struct state *state, uint32_t task, int64_t time_us);
const char *schedules_misfit(const struct state *state); /* for state_check */

/* instances.c: attempts. The task gets this one, and whoever it names holds it; or it has none any more. */
void attempt_begin(struct state *state, uint32_t number, const struct attempt *attempt);
void attempt_end(struct state *state, uint32_t number);

/* evict.c: an event of a task that has ended, or ends, was folded: it stands behind all other ended ones. */
void ended_touch(struct state *state, uint32_t number);
/* Something that is not gone left memory: else nobody asks the store, and nobody waits for it. */
static inline bool store_is_needed(const struct state *state) { return state->cold != NULL && state->needed_seq != 0; }
/* What the log holds of it is gone (retention): it is found no more, wherever it still stands. */
static inline bool task_is_gone(const struct state *state, const struct task *task) {
  return task->last_seq <= state->retained_seq && task_state_is_terminal((enum task_state)task->state);
}

/* digest.c */
void digest_sum_add(struct digest_sum *sum, struct digest_sum part);
void digest_sum_subtract(struct digest_sum *sum, struct digest_sum part);
/* It has no attempt. */
struct digest_sum digest_of_ended(const struct task *task, const struct id *queue_id, const struct id *application_id,
                                  uint32_t handler_hash);
struct digest_sum digest_of_receipt(uint64_t identity, uint64_t seq);
/* digest.c: the object of this id is the same in both (in neither: the same). */
bool state_task_equal(const struct state *state, const struct state *other, const struct id *id);
bool state_object_equal(const struct state *state, const struct state *other, const struct id *id);

/* receipts.c */
uint64_t identity_key(const struct id *identity); /* what stands for it in memory */
void receipt_add(struct state *state, const struct id *identity, uint64_t seq);
/* A receipt of a task: of one that has ended, its history is asked instead, so that memory holds none. */
void receipt_add_of_task(struct state *state, uint32_t task, const struct id *identity, uint64_t seq);
/* The start of the task's attempt, which ends: as if its receipt had just been added. */
void receipt_recall_start(struct state *state, uint32_t task, const struct attempt_node *attempt);
/* The task has ended: its newest receipts leave memory. */
void receipts_leave(struct state *state, uint32_t task);
/* It leaves memory, if it is there. */
void receipt_drop(struct state *state, uint64_t identity, uint64_t seq);

#endif
