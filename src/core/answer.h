/* What Orbit answers, as values. An answer holds snapshots; texts and documents are read from the log by seq by whoever
 * writes the answer out (state/history.h), after the commit. */
#ifndef ORBIT_CORE_ANSWER_H
#define ORBIT_CORE_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "base/status.h"
#include "core/command.h"
#include "core/event.h"
#include "core/model.h"

/* The answer to a worker's request about an attempt (schema/worker.md "command.result"). */
struct worker_result {
  bool applied;
  bool deduplicated;
  bool evidence;             /* disposition EVIDENCE */
  enum decision disposition; /* of an applied report or release; DECISION_NONE else */
  bool has_task;             /* task fields are given */
  struct id task_id;
  enum task_state task_state;
  uint64_t task_revision;
  int64_t available_at; /* WAITING only; 0 else */
  bool lease_active;
  int64_t lease_expires_at; /* when active */
};

/* One attempt that an instance still holds, for worker.welcome. */
struct held_attempt {
  struct id task_id;
  struct id attempt_id;
  uint32_t number;
  uint64_t epoch;
  enum attempt_state state;
  int64_t lease_expires_at;
};

struct welcome {
  struct id session_id;
  int64_t server_time;
  uint32_t lease_ms;
  struct held_attempt *held; /* owned by the ticket (free) */
  uint32_t held_count;
};

/* A page of rows. The array is owned by the ticket (free). */
struct answer_list {
  union {
    struct task *tasks;
    struct queue *queues;
    struct application *applications;
    struct credential *credentials; /* queue_ids is NULL: read them from the event at config_seq */
    struct schedule *schedules;
    struct id *namespaces;
    struct subscription *subscriptions;
    uint64_t *seqs; /* audit.recorded */
    int64_t *times; /* PREVIEW_TIMES */
    void *rows;
  } of;
  int64_t *oldest_waiting_at; /* queues, by row (0: none waits); owned by the ticket (free) */
  uint32_t count;
  bool more;         /* rows may follow */
  struct id next;    /* where the next page goes on, when more (tasks: perhaps behind the last row) */
  uint64_t next_seq; /* the same for audit */
  uint64_t log_end;  /* subscriptions: the newest event, of which their lag is told */
};

struct namespace_made {
  struct id id;
  uint64_t created_seq; /* namespace.created: the name */
  struct application application;
  struct credential credential;
};

/* What a reader of the feed is shown, and where it begins. */
struct feed_opening {
  struct feed_filter filter;
  uint64_t after;
  struct id *scope; /* queues that the credential reaches; NULL: every queue; owned by the ticket (free) */
  uint32_t scope_count;
};

struct metrics; /* engine/metrics.h; owned by the ticket (free) */

struct answer {
  enum status status; /* OK, or what `fault` says */
  bool created;       /* a write took effect now (201); false with OK: read, or repeat */
  bool deduplicated;
  struct id audit_id;        /* zero: none */
  bool applied;              /* cancel */
  int64_t oldest_waiting_at; /* GET_QUEUE; 0: none waits */
  struct id source_task_id;  /* retry */
  uint64_t log_end;          /* GET_SUBSCRIPTION: the newest event */
  union {
    struct task task;            /* SUBMIT, GET_TASK, CANCEL, REVIEW, RETRY: as it stood then */
    struct worker_result worker; /* START, RENEW, FINISH, RELEASE */
    struct welcome welcome;      /* HELLO */
    uint64_t position;           /* GET_LOG_STATE: seq of the last durable event */
    struct queue queue;          /* QUEUE_…, GET_QUEUE */
    struct application application;
    struct credential credential;         /* queue_ids is NULL, as in lists */
    struct schedule schedule;             /* SCHEDULE_…, GET_SCHEDULE */
    struct namespace_made namespace_made; /* NAMESPACE_CREATE */
    struct subscription subscription;
    struct feed_opening feed; /* OPEN_FEED */
    struct answer_list list;
    struct metrics *metrics;
  } as;
  struct fault fault; /* when status is not OK */
};

/* One submission of a batch. An answer whose status is not OK already was refused by whoever read it, and is not decided. */
struct batch_item {
  struct command command; /* COMMAND_SUBMIT with operation and who */
  struct answer answer;
};

/* A task with all its texts, ready to be written as JSON. Spans belong to log records. */
struct task_document {
  struct task task;
  struct event_task_accepted accepted;
  struct bytes error_code, error_message, error_details; /* data NULL: absent */
  struct bytes result;                                   /* data NULL: absent */
};

/* The document of a task that this command has just made, without a look into the log: equal to what the log gives as far as it
 * is shown to people. Its texts are the command's. */
void submitted_document(const struct command *command, const struct task *task, struct task_document *ret_document);

/* One attempt as history shows it. Spans belong to log records. */
struct attempt_document {
  struct id attempt_id;
  uint32_t number;
  uint64_t epoch;
  enum attempt_state state;
  struct id instance_id;
  struct bytes instance_name; /* data NULL: absent */
  int64_t leased_at;
  int64_t lease_expires_at; /* as granted */
  int64_t started_at;       /* 0: no start grant */
  int64_t attempt_deadline_at;
  int64_t finished_at;    /* 0: goes on */
  enum ended_by ended_by; /* NONE while it goes on, REPORT is not shown */
  enum outcome outcome;   /* NONE: no report */
  bool retryable;
  struct bytes error_code, error_message, error_details, result;
  enum decision decision; /* NONE while it goes on */
  bool has_delay;
  uint64_t delay_ms;
  int64_t next_available_at; /* 0: none */
};

struct evidence_document {
  int64_t reported_at;
  struct event_evidence_recorded evidence;
};

#endif
