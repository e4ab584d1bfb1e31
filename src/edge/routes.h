/* The routes: one table of method, path, permission and functions. A new route is a row and its functions. */
#ifndef ORBIT_EDGE_ROUTES_H
#define ORBIT_EDGE_ROUTES_H

#include "core/answer.h"
#include "core/command.h"
#include "edge/request.h"

enum route_flag {
  ROUTE_OPEN = 1,    /* no token */
  ROUTE_ALWAYS = 2,  /* answers also while Orbit replays or stops */
  ROUTE_WRITE = 4,   /* has a JSON body, and an Idempotency-Key unless ROUTE_KEYLESS */
  ROUTE_KEYLESS = 8, /* a write whose items carry their own keys */
  ROUTE_PAGED = 16,  /* takes `limit` and `cursor`: request->page_start and page_limit are filled before begin */
  ROUTE_CHANGE = 32, /* a write that makes no object of its own: 200 also the first time */
  ROUTE_SECRET = 64, /* the answer may hold a token: its memory is wiped */
  ROUTE_FEED = 512, /* reads the feed: a page that may wait, or a stream of events; finish writes the page, without an answer */
  ROUTE_TEXT = 128, /* metrics: plain text without the envelope; open, and there while the log is read, with --metrics-open */
};

/* Makes the command from path, parameters and body (request->job has the body and room for texts). The caller fills in who asks
 * and the operation's identity. Any failure is the answer. */
typedef enum status route_begin(struct request *request, struct command *command, struct fault *fault);
/* Writes the answer's data, one JSON value, to request->out. answer is the engine's (its status is OK), or NULL on a route
 * without begin, which needs no engine, and for metrics while there is none. May set http_status and retry_after_ms. */
typedef enum status route_finish(struct request *request, const struct answer *answer, struct fault *fault);

struct route {
  const char *method;
  const char *path;              /* "/v1/tasks/{id}:cancel": {…} stands for one id */
  enum permission permission;    /* unused with ROUTE_OPEN */
  unsigned flags;                /* enum route_flag */
  uint32_t body_bytes_max;       /* writes */
  const char *const *parameters; /* NULL-terminated; NULL: none */
  const char *cursor_kind;       /* lists; differs from that of every other */
  route_begin *begin;            /* NULL: no engine needed */
  route_finish *finish;
};

/* The route of this method and path with its ids. NOT_FOUND: no such path, or an id in it is none; METHOD_NOT_ALLOWED:
 * ret_allow holds the value of Allow. *ret_route is set as soon as method and path fit, even when an id is malformed (that
 * NOT_FOUND is for those who may know). */
enum status route_find(const char *method, const struct target *target, const struct route **ret_route, struct id ret_ids[2],
                       char ret_allow[64], struct fault *fault);

/* routes_tasks.c */
route_begin tasks_submit_begin, tasks_get_begin;
route_finish tasks_submit_finish, tasks_get_finish, tasks_attempts_finish, tasks_attempt_finish, tasks_evidence_finish;
/* routes_recovery.c */
route_begin tasks_review_begin, tasks_retry_begin, tasks_cancel_begin;
route_finish tasks_review_finish, tasks_retry_finish, tasks_cancel_finish;
route_finish tasks_operations_finish, tasks_operation_finish, tasks_events_finish;
/* routes_batch.c */
route_begin tasks_batch_begin;
route_finish tasks_batch_finish;
/* routes_list.c */
route_begin tasks_list_begin, queues_list_begin, applications_list_begin, credentials_list_begin, audit_list_begin,
    subscriptions_list_begin;
route_finish tasks_list_finish, queues_list_finish, applications_list_finish, credentials_list_finish, audit_list_finish,
    subscriptions_list_finish;
/* routes_admin.c */
route_begin namespaces_create_begin, queues_create_begin, queues_change_begin, queues_pause_begin, queues_resume_begin,
    queues_get_begin;
route_finish namespaces_create_finish, queues_write_finish, queues_get_finish;
route_begin applications_create_begin, applications_change_begin, applications_get_begin;
route_finish applications_write_finish, applications_get_finish;
route_begin credentials_create_begin, credentials_rotate_begin, credentials_revoke_begin, credentials_get_begin;
route_finish credentials_write_finish, credentials_get_finish;
/* routes_schedules.c */
route_begin schedules_create_begin, schedules_change_begin, schedules_pause_begin, schedules_resume_begin,
    schedules_delete_begin, schedules_get_begin, schedules_preview_begin, schedules_list_begin;
route_finish schedules_write_finish, schedules_get_finish, schedules_triggers_finish, schedules_preview_finish,
    schedules_list_finish;
/* Appends the schedule with its texts, as it is now (live) or as it was configured. INTERNAL, UNAVAILABLE. */
enum status schedule_write_whole(struct request *request, const struct schedule *schedule, bool live, struct fault *fault);
/* routes_metrics.c */
route_begin metrics_begin;
route_finish metrics_finish;
/* routes_feed.c */
route_begin feed_begin_events, feed_begin_subscription, subscriptions_create_begin, subscriptions_ack_begin,
    subscriptions_delete_begin, subscriptions_get_begin;
route_finish feed_finish, subscriptions_write_finish, subscriptions_get_finish;
/* routes_node.c */
route_finish node_info_finish, node_health_finish, node_ready_finish, node_worker_finish;

/* ---- what finish functions share; spans live until the end of the round (request_pool_release) ---- */

/* The task as it was answered, with its texts. INTERNAL, UNAVAILABLE. */
enum status tasks_document(struct request *request, const struct task *task, struct task_document *ret_document,
                           struct fault *fault);
/* The same of a submission: its command has the texts of a task that it made, so that the log need not be read again. */
enum status tasks_submitted_document(struct request *request, const struct command *command, const struct answer *answer,
                                     struct task_document *ret_document, struct fault *fault);
/* The texts of an administrative object, from the event at its config_seq. INTERNAL, UNAVAILABLE. */
struct object_texts;
enum status object_texts_read(struct request *request, uint64_t config_seq, struct object_texts *ret_texts,
                              struct fault *fault);

/* ---- pages (routes_page.c) ---- */

/* The parameter `limit`. INVALID_ARGUMENT. */
enum status page_limit_read(const struct request *request, uint32_t *ret_limit, struct fault *fault);
/* The parameter `cursor`: where the page goes on, `size` bytes as page_cursor_write got them; *ret_given is false when it was
 * not given. filters: a digest of the list's filters, or of what it lists something of. INVALID_ARGUMENT. */
enum status page_cursor_read(const struct request *request, const struct id *filters, void *position, size_t size,
                             bool *ret_given, struct fault *fault);
/* Appends ,"next_cursor":"…" */
void page_cursor_write(struct request *request, const struct id *filters, struct bytes position);

/* Reads `limit` and `cursor` of a ROUTE_PAGED request. INVALID_ARGUMENT. */
enum status page_read(struct request *request, struct fault *fault);
/* Ends a page of `count` rows that stopped before row `next`: closes the array and writes next_cursor when rows are left. */
void page_end(struct request *request, uint32_t next, uint32_t count);

#endif
