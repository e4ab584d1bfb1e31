/* What people, producers and workers ask for, and what Orbit asks of itself. Commands are values; their texts are spans
 * borrowed from whoever made the command (a request's body) and must live until the command is answered. Ids of new objects
 * come in with the command, so that deciding stays pure. */
#ifndef ORBIT_CORE_COMMAND_H
#define ORBIT_CORE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/id.h"
#include "core/feed.h"
#include "core/words.h"

/* Who asks: the authenticated credential, by value. */
struct principal {
  struct id credential_id;
  struct id application_id;
  struct id namespace_id;
  uint64_t permissions;         /* expanded */
  uint64_t credential_revision; /* as it was when the token was judged: a rotation ends what was let in before */
};

/* The operation identity and the meaning's digest (schema/semantics.md "Receipts"). identity zero: none (reads, renewals). */
struct operation {
  struct id identity;
  struct id digest;
};

struct submit_command {
  struct id queue_id;
  struct bytes handler, handler_version, payload_version;
  struct bytes payload;         /* JSON without outside white space */
  struct bytes business_key;    /* data NULL: absent */
  struct bytes concurrency_key; /* data NULL: absent */
  uint64_t task_timeout_ms;
  int64_t available_at;      /* 0: absent */
  int64_t start_deadline_at; /* 0: absent */
  enum recovery_safety recovery_safety;
  uint32_t max_attempts;
  uint32_t initial_delay_ms, max_delay_ms;
  uint32_t attempt_timeout_ms; /* filled with task_timeout_ms when omitted */
  uint32_t priority;
};

/* What every worker request about an attempt names. */
struct attempt_ref {
  struct id message_id;
  struct id task_id;
  struct id attempt_id;
  uint64_t epoch;
};

/* The content of task.finish. */
struct report {
  enum outcome outcome;
  bool retryable;
  struct bytes error_code, error_message; /* data NULL: absent */
  struct bytes error_details, result;     /* JSON; data NULL: absent */
  struct id identity;                     /* keyed digest of the attempt alone: finds an applied report under another message */
};

struct finish_command {
  struct attempt_ref ref;
  struct report report;
};

struct handler_offer {
  struct bytes handler, handler_version;
};

struct hello_command {
  struct id message_id;
  struct id instance_id;
  struct bytes name; /* data NULL: absent */
  const struct id *queue_ids;
  const struct handler_offer *handlers;
  uint32_t queue_count, handler_count;
  uint32_t capacity;
  uint32_t lease_ms; /* 0: the queue's */
};

struct capacity_command {
  struct id message_id;
  uint32_t capacity;
};

struct cancel_command {
  struct id task_id;
  struct bytes reason;
  uint64_t expected_revision; /* 0: any */
};

struct review_command {
  struct id task_id;
  uint64_t expected_revision;
  struct bytes reason, evidence_ref;
  enum outcome outcome; /* SUCCEEDED or FAILED */
  struct bytes result;  /* JSON */
  struct id result_digest;
  struct id attempt_id; /* the newest attempt, named in the event; filled by the engine; zero: there was none */
};

struct retry_command {
  struct id task_id;
  uint64_t expected_revision;
  struct bytes reason, evidence_ref;
  uint64_t task_timeout_ms;
  int64_t available_at;      /* 0: absent */
  int64_t start_deadline_at; /* 0: absent */
};

/* Several submissions in one commit; each item is a submission of its own with its own answer. */
struct batch_item;
struct batch_command {
  struct batch_item *items; /* core/answer.h; the caller's, alive until the ticket is back */
  uint32_t count;
};

/* Filters of GET /v1/tasks; newest first. */
struct list_tasks_command {
  struct id queue_id;        /* zero: any within reach */
  enum task_state state;     /* NONE: any */
  struct bytes handler;      /* data NULL: any */
  struct bytes business_key; /* data NULL: any */
  int64_t created_after;     /* strictly; 0: any */
  int64_t created_before;    /* strictly; 0: any */
  struct id after;           /* the last task of the page before; zero: the first page */
  uint32_t limit;
};

/* Lists of administrative objects, oldest first; reads of one. */
enum object_list {
  LIST_QUEUES = 1,
  LIST_APPLICATIONS,
  LIST_CREDENTIALS,
  LIST_NAMESPACES,
  LIST_SUBSCRIPTIONS,
  LIST_SCHEDULES,
};
struct list_objects_command {
  enum object_list list;
  struct id after; /* the last object of the page before; zero: the first page */
  uint32_t limit;
};

/* Administrative audit, newest first. */
struct list_audit_command {
  struct id target_id; /* zero: all of the namespace */
  uint64_t before_seq; /* records below this; 0: from the newest */
  uint32_t limit;
};

/* A namespace comes with an application and a credential (permission admin) for whoever will run it. */
struct namespace_command {
  struct bytes name;
  struct bytes token_hash;                 /* of the credential's token */
  struct id application_id, credential_id; /* new ids, filled by the engine */
};

/* Which members of a change were given. */
enum {
  GIVEN_NAME = 1,
  GIVEN_MAX_UNFINISHED = 2,
  GIVEN_MAX_RUNNING = 4,
  GIVEN_KEY_CONCURRENCY = 8,
  GIVEN_RATE = 16,
  GIVEN_LEASE_MS = 32,
  GIVEN_DISABLED = 64,
  GIVEN_CRON = 128,
  GIVEN_TIMEZONE = 256,
  GIVEN_INTERVAL = 512,
  GIVEN_START = 1024,
  GIVEN_END = 2048,
  GIVEN_OVERLAP = 4096,
  GIVEN_MISSED = 8192,
  GIVEN_CATCH_UP = 16384,
  GIVEN_TEMPLATE = 32768,
};

struct queue_command {
  struct id id;               /* zero: create */
  uint64_t expected_revision; /* change */
  unsigned given;             /* change: GIVEN_…; a limit that was given as null is 0 here */
  struct bytes name;
  uint64_t max_unfinished, max_running;         /* 0: no limit */
  uint64_t key_concurrency;                     /* create: 0 when omitted, 1 then */
  uint64_t rate_tasks, rate_per_ms, rate_burst; /* 0: no rate */
  uint64_t lease_ms;                            /* create: 0 when omitted, the default then */
  struct bytes reason;                          /* pause, resume; data NULL: none */
};

struct application_command {
  struct id id;               /* zero: create */
  uint64_t expected_revision; /* change */
  unsigned given;             /* change */
  struct bytes name;
  uint64_t max_unfinished; /* 0: no limit */
  bool disabled;
};

struct credential_command {
  struct id id;             /* rotate, revoke */
  struct id application_id; /* create */
  struct bytes name;        /* data NULL: none */
  uint64_t permissions;
  struct bytes queue_ids;  /* 16 bytes each; data NULL: every queue */
  int64_t expires_at;      /* 0: never */
  struct bytes token_hash; /* create, rotate */
};

enum feed_from { FEED_FROM_EARLIEST = 1, FEED_FROM_LATEST, FEED_FROM_POSITION };

struct subscription_command {
  struct id id;            /* ack, delete */
  struct bytes name;       /* create, as all but position */
  struct feed_types types; /* none: every type of the feed */
  struct id queue_id;      /* zero: any; the engine fills in the task's when task_id is given */
  struct id task_id;       /* zero: any */
  enum feed_from from;
  uint64_t position; /* create: with FEED_FROM_POSITION; ack */
};

/* Somebody wants to read the feed, or a subscription: what may be shown, and from where on. */
struct open_feed_command {
  struct id subscription_id; /* zero: the feed itself */
  struct feed_filter filter; /* of the feed */
  uint64_t after;
  bool after_header; /* it came in the header Last-Event-ID */
};

struct schedule_command {
  struct id id;               /* zero: create */
  uint64_t expected_revision; /* change */
  unsigned given;             /* change; a time that was given as null is 0 here */
  struct bytes name;
  struct id queue_id;       /* create */
  enum schedule_kind kind;  /* create */
  struct bytes cron;        /* data NULL: none */
  struct bytes timezone;    /* likewise */
  uint64_t interval_ms;     /* 0: none */
  int64_t start_at, end_at; /* 0: none */
  enum overlap overlap;
  enum missed missed;
  uint32_t catch_up_limit;
  bool paused;                    /* create */
  struct submit_command template; /* queue_id and times are zero */
  struct id template_digest;      /* of its meaning; zero: not given */
  struct bytes reason;            /* pause, resume, delete; data NULL: none */
};

/* What times would a schedule have? */
struct preview_command {
  enum schedule_kind kind;
  struct bytes cron, timezone; /* CRON */
  uint64_t interval_ms;        /* INTERVAL */
  int64_t after;               /* strictly; 0: now */
  uint32_t count;
};

enum command_kind {
  COMMAND_SUBMIT = 1,
  COMMAND_GET_TASK,      /* read */
  COMMAND_GET_LOG_STATE, /* read: position, for /v1/info */
  COMMAND_HELLO,         /* a worker session's first message; no event */
  COMMAND_CAPACITY,
  COMMAND_DRAIN,
  COMMAND_BYE, /* the session's socket is gone; no answer is expected by anybody, but the ticket returns */
  COMMAND_START,
  COMMAND_RENEW,
  COMMAND_FINISH,
  COMMAND_RELEASE,
  COMMAND_CANCEL,
  COMMAND_REVIEW,
  COMMAND_RETRY,
  COMMAND_BATCH,
  COMMAND_NAMESPACE_CREATE,
  COMMAND_APPLICATION_CREATE,
  COMMAND_APPLICATION_CHANGE,
  COMMAND_QUEUE_CREATE,
  COMMAND_QUEUE_CHANGE,
  COMMAND_QUEUE_PAUSE,
  COMMAND_QUEUE_RESUME,
  COMMAND_CREDENTIAL_CREATE,
  COMMAND_CREDENTIAL_ROTATE,
  COMMAND_CREDENTIAL_REVOKE,
  COMMAND_SUBSCRIPTION_CREATE,
  COMMAND_SUBSCRIPTION_ACK,
  COMMAND_SUBSCRIPTION_DELETE,
  COMMAND_SCHEDULE_CREATE,
  COMMAND_SCHEDULE_CHANGE,
  COMMAND_SCHEDULE_PAUSE,
  COMMAND_SCHEDULE_RESUME,
  COMMAND_SCHEDULE_DELETE,
  COMMAND_LIST_TASKS, /* reads from here on */
  COMMAND_LIST_OBJECTS,
  COMMAND_LIST_AUDIT,
  COMMAND_GET_QUEUE,
  COMMAND_GET_APPLICATION,
  COMMAND_GET_CREDENTIAL,
  COMMAND_GET_SCHEDULE,
  COMMAND_PREVIEW_TIMES,
  COMMAND_GET_METRICS,
  COMMAND_GET_SUBSCRIPTION,
  COMMAND_OPEN_FEED,
  COMMAND_KIND_COUNT
};

struct command {
  enum command_kind kind;
  struct principal who;
  struct operation operation;
  uint64_t session; /* worker commands: the channel's session number; 0 else */
  union {
    struct submit_command submit;
    struct id task_id;   /* COMMAND_GET_TASK */
    struct id object_id; /* COMMAND_GET_QUEUE, …_APPLICATION, …_CREDENTIAL, …_SUBSCRIPTION, …_SCHEDULE */
    struct batch_command batch;
    struct list_tasks_command list_tasks;
    struct list_objects_command list_objects;
    struct list_audit_command list_audit;
    struct namespace_command namespace_;
    struct queue_command queue;
    struct application_command application;
    struct credential_command credential;
    struct subscription_command subscription;
    struct open_feed_command open_feed;
    struct schedule_command schedule;
    struct preview_command preview;
    struct hello_command hello;
    struct capacity_command capacity;
    struct id message_id;   /* COMMAND_DRAIN */
    struct attempt_ref ref; /* START, RENEW, RELEASE */
    struct finish_command finish;
    struct cancel_command cancel;
    struct review_command review;
    struct retry_command retry;
  } as;
};

const char *command_kind_text(enum command_kind kind); /* "task.submit", "task.start", … for operations, audit and metrics */

#endif
