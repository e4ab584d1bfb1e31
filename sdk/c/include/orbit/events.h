/* liborbit for whoever follows what happens: the feed of events, subscriptions, which are durable named cursors over it, and
 * waiting for a task. Part of orbit.h. Permission events:read.
 *
 * Events come in the order of the log, each at least once. Keep the next_position of a page once its events have been handled,
 * and go on from there: then nothing is missed, however often the program ends in between, and a page may come twice. */
#ifndef ORBIT_EVENTS_H
#define ORBIT_EVENTS_H

#include "../orbit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The feed ---- */

/* Which events: those that fit all that is set. */
struct orbit_event_filter {
  size_t size;          /* ORBIT_EVENT_FILTER_INIT sets it */
  const char *types;    /* names with commas between: "task.succeeded,task.failed"; NULL: every type of the feed */
  const char *queue_id; /* NULL: any within the credential's reach */
  const char *task_id;  /* NULL: any */
};
#define ORBIT_EVENT_FILTER_INIT \
  { sizeof(struct orbit_event_filter), NULL, NULL, NULL }

struct orbit_event_page {
  const struct orbit_event *const
      *items; /* oldest first; queue_id is set, and the payload's size stands in place of a payload */
  size_t count;
  uint64_t next_position; /* behind everything that was looked at, shown or not */
};

/* The events behind position `after`; 0 is the beginning of the log. limit 1–100 (0: Orbit's default). While there is none,
 * waits for wait_ms (at most 30,000; the client's timeout_ms must be longer) and then gives an empty page; one may also come
 * before that, where much was passed over. filter NULL: all events. INVALID_ARGUMENT (after lies behind the end of the log, a
 * type that the feed does not show), NOT_FOUND (queue, task). */
int orbit_events_next(struct orbit_client *client, const struct orbit_event_filter *filter, uint64_t after, uint32_t limit,
                      uint32_t wait_ms, struct orbit_event_page **ret_page, struct orbit_error *error);
void orbit_event_page_free(struct orbit_event_page *page);

/* Waits until the task has come to rest: it has ended, or is in NEEDS_REVIEW and waits for a person. Permission tasks:read as
 * well. The task comes as it stands then. ORBIT_TIMEOUT: it did not within timeout_ms. NOT_FOUND. */
int orbit_wait_task(struct orbit_client *client, const char *task_id, uint32_t timeout_ms, struct orbit_task **ret_task,
                    struct orbit_error *error);

/* ---- Subscriptions ---- */

struct orbit_subscription {
  const char *id;
  const char *namespace_id;
  const char *name;
  uint64_t revision;
  const char *const *types; /* NULL: every type of the feed */
  size_t type_count;
  const char *queue_id; /* NULL: any */
  const char *task_id;  /* NULL: any */
  uint64_t position;    /* acknowledged up to here */
  uint64_t lag;         /* events of the log behind it, of whatever kind; 0 in answers to writes */
  const char *json;     /* the whole subscription, with a NUL after it */
  size_t json_size;
};

struct orbit_subscription_list {
  const struct orbit_subscription *const *items; /* oldest first */
  size_t count;
  const char *next_cursor; /* NULL on the last page */
};

struct orbit_subscription_request {
  size_t size;              /* ORBIT_SUBSCRIPTION_REQUEST_INIT sets it */
  const char *name;         /* required, 1–128 characters; no other of the namespace has it */
  const char *const *types; /* type_count names; NULL: every type of the feed */
  size_t type_count;
  const char *queue_id; /* NULL: any */
  const char *task_id;  /* NULL: any */
  const char *from;     /* "earliest", "latest" or a position in digits; NULL: "latest" */
};
#define ORBIT_SUBSCRIPTION_REQUEST_INIT \
  { sizeof(struct orbit_subscription_request), NULL, NULL, 0, NULL, NULL, NULL }

/* The subscription is for orbit_subscription_free. STATE_CONFLICT: the name is taken, or the namespace has as many as it may.
 */
int orbit_subscription_create(struct orbit_client *client, const char *operation_key,
                              const struct orbit_subscription_request *request, struct orbit_subscription **ret_subscription,
                              struct orbit_error *error);
int orbit_subscription_get(struct orbit_client *client, const char *subscription_id,
                           struct orbit_subscription **ret_subscription, struct orbit_error *error);
int orbit_subscription_list(struct orbit_client *client, uint32_t limit, const char *cursor,
                            struct orbit_subscription_list **ret_list, struct orbit_error *error);
/* What follows the acknowledged position, as orbit_events_next gives it. It moves nothing: asked again, it gives the same. */
int orbit_subscription_next(struct orbit_client *client, const char *subscription_id, uint32_t limit, uint32_t wait_ms,
                            struct orbit_event_page **ret_page, struct orbit_error *error);
/* Everything up to the position (a page's next_position) has been handled. A position that was passed already changes nothing.
 */
int orbit_subscription_ack(struct orbit_client *client, const char *operation_key, const char *subscription_id,
                           uint64_t position, struct orbit_subscription **ret_subscription, struct orbit_error *error);
/* Ends it for ever; its name is free again. */
int orbit_subscription_delete(struct orbit_client *client, const char *operation_key, const char *subscription_id,
                              struct orbit_subscription **ret_subscription, struct orbit_error *error);
void orbit_subscription_free(struct orbit_subscription *subscription);
void orbit_subscription_list_free(struct orbit_subscription_list *list);

#ifdef __cplusplus
}
#endif

#endif
