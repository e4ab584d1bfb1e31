/* What producers, workers, people and administrators of the simulation ask for, in plain numbers: the simulator makes commands
 * from it for the product, and the model judges it as it stands. Nothing in it has gone through the product's code. */
#ifndef ORBIT_TESTS_SIM_REQUEST_H
#define ORBIT_TESTS_SIM_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/id.h"
#include "core/command.h"

/* The small world of every run. */
enum {
  queues_first = 3, /* there from the beginning */
  queues_max = 5,
  queue_masks = 1 << queues_max,
  narrow_queue = 2, /* the one queue that the narrow credential reaches */
  applications_max = 2,
  principals_max = 3,
  credentials_max = 8,
  schedules_max = 6,
  cron_shapes_max = 6,
  subscriptions_here_max = 8,
  subscription_names_max = 4,
  type_lists_max = 6, /* 0: none, which is all */
  handlers_offered_max = 3,
  instances_max = 8,
  texts_max = 8,
  concurrency_keys_max = 4, /* 0: none */
  business_keys_max = 4,    /* likewise */
};

/* Who asks: the credentials of the world. The narrow one reaches one queue alone and shares the first's application. */
enum { WHO_FIRST = 0, WHO_OTHER, WHO_NARROW };

static inline unsigned who_application(unsigned who) { return who == WHO_OTHER ? 1 : 0; }
static inline bool who_reaches(unsigned who, unsigned queue) { return who != WHO_NARROW || queue == narrow_queue; }

enum { LIMIT_UNFINISHED = 0, LIMIT_RUNNING, LIMIT_KEY, LIMIT_RATE_TASKS, LIMIT_RATE_PER_MS, LIMIT_RATE_BURST, LIMIT_LEASE_MS };
enum { limits_max = 7 };

/* What a page of a list is asked for. */
enum { asked_any = 0xFF };
struct asked {
  uint8_t list;           /* enum object_list; 0: tasks, or audit records */
  uint8_t queue, handler; /* asked_any: whatever it is */
  uint8_t business_key;   /* 0: any */
  enum task_state state;  /* NONE: any */
  int64_t created_after, created_before;
  struct id target, after; /* audit: whose records; zero: all, and from the newest or oldest on */
  uint64_t before_seq;     /* audit: where it goes on; 0: from the newest on */
  uint32_t limit;
};

/* What a schedule shall be, beside what its tasks shall be. */
struct planned {
  bool by_clock; /* CRON */
  uint8_t shape; /* CRON: which expression */
  uint64_t interval_ms;
  int64_t start_at, end_at; /* 0: none */
  enum overlap overlap;
  enum missed missed;
  uint32_t catch_up_limit;
  bool paused;
};

/* What is done to an application or a credential. */
struct administered {
  uint8_t object; /* its number; a new credential: of its application */
  bool disabled;  /* application.change */
  bool narrow;    /* credential.create: it reaches narrow_queue alone */
  uint64_t token; /* credential.create, .rotate: the number of the new token */
  int64_t expires_at;
};

/* What a reader of the feed wants, beside queue (asked_any: any) and task (zero: any). */
struct subscribed {
  uint8_t object; /* the subscription's number + 1; 0: none */
  uint8_t name, types;
  enum feed_from from;
  uint64_t position; /* create: from where on; ack: up to where; open: behind which */
};

struct request {
  enum command_kind kind;
  uint8_t who;
  uint8_t schedule; /* its number + 1; a task: of the schedule that makes it; 0: none */
  uint8_t queue, handler;
  uint8_t concurrency_key, business_key, priority; /* keys 0: none */
  bool idempotent, retryable;
  uint8_t text; /* which payload, reason, result or error */
  enum outcome outcome;
  uint32_t max_attempts, initial_delay_ms, max_delay_ms, attempt_timeout_ms;
  uint64_t task_timeout_ms;
  int64_t available_at, start_deadline_at; /* 0: absent */
  uint64_t key;                            /* Idempotency-Key, or the worker's message */
  struct id task_id, attempt_id;
  uint64_t epoch, expected_revision; /* revision 0: any */
  unsigned given;                    /* queue.change: GIVEN_… */
  uint64_t limits[limits_max];
  uint64_t session;
  uint8_t instance, queue_mask, handler_mask; /* hello */
  uint32_t capacity, lease_ms;                /* hello; 0: the queue's */
  union {
    struct asked asked;               /* lists */
    struct administered administered; /* applications, credentials */
    struct planned planned;           /* schedules; preview */
    struct subscribed subscribed;     /* subscriptions; reading the feed */
  };
};

/* The texts by number. */
struct bytes text_payload(unsigned number);
struct bytes text_result(unsigned number); /* of a success or a review */
struct bytes text_details(unsigned number);
struct bytes text_reason(unsigned number);
struct bytes text_evidence(unsigned number);
struct bytes text_name(void); /* of queues, applications, credentials */
struct bytes text_handler(unsigned number);
struct bytes text_concurrency_key(unsigned number); /* 0: absent */
struct bytes text_business_key(unsigned number);    /* likewise */

struct bytes text_cron(unsigned shape);
struct bytes text_subscription(unsigned name);
struct bytes text_types(unsigned number); /* names of types, in the order of their numbers; 0: absent */

/* A bearer token, NUL-terminated. */
struct token_text {
  char text[40];
};
struct token_text text_token(uint64_t number);

struct id instance_id_of(unsigned instance);
struct id message_id_of(uint64_t key);

/* The meaning of both is the same, whoever asks under whatever key. */
bool request_means_the_same(const struct request *a, const struct request *b);
/* It is about one task. */
bool request_names_task(const struct request *request);
/* An operation with an identity of its own. */
bool request_has_identity(const struct request *request);
/* Both name the same operation: kind, target, key and, for workers, application. */
bool request_is_the_same(const struct request *a, const struct request *b);

#endif
