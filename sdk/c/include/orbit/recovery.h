/* liborbit for people: settling by hand what Orbit could not decide, and reading what was done to a task. Part of orbit.h.
 *
 * Both operations say in the caller's name that something is so in the world outside; Orbit cannot check it and only records
 * who said it. The answer of an operation is the task as the operation left it: orbit_get_task tells how it stands now. */
#ifndef ORBIT_RECOVERY_H
#define ORBIT_RECOVERY_H

#include "../orbit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Review: what became of a task that is in NEEDS_REVIEW ---- */

struct orbit_review_request {
  size_t size;                /* ORBIT_REVIEW_REQUEST_INIT sets it */
  uint64_t expected_revision; /* required: of the task as it was looked at */
  const char *reason;         /* required, 1–1,024 characters, not white space alone */
  const char *evidence_ref; /* required, 1–512 characters without white space: where the evidence is filed; never a secret */
  bool execution_settled;   /* must be true: every execution has ended and will have no further effect. That its lease is over
                               does not prove it. */
  int32_t outcome;          /* required: ORBIT_SUCCEEDED or ORBIT_FAILED */
  const char *result;       /* required, JSON, not null, at most 256 KiB */
  size_t result_size;
};
#define ORBIT_REVIEW_REQUEST_INIT \
  { sizeof(struct orbit_review_request), 0, NULL, NULL, false, 0, NULL, 0 }

struct orbit_review_result {
  const struct orbit_task *task;
  const char *audit_id;
  bool deduplicated; /* this is the answer to an earlier request with the same key */
  const char *json;  /* the whole answer, with a NUL after it */
  size_t json_size;
};

/* Permission tasks:review. NOT_FOUND, STATE_CONFLICT (another state or revision). For orbit_review_result_free. */
int orbit_review_task(struct orbit_client *client, const char *operation_key, const char *task_id,
                      const struct orbit_review_request *request, struct orbit_review_result **ret_result,
                      struct orbit_error *error);
void orbit_review_result_free(struct orbit_review_result *result);

/* ---- Retry by hand: a new task for one that has FAILED or was CANCELLED ---- */

struct orbit_retry_request {
  size_t size;                /* ORBIT_RETRY_REQUEST_INIT sets it */
  uint64_t expected_revision; /* required: of the old task */
  const char *reason;         /* required, 1–1,024 characters, not white space alone */
  const char *evidence_ref;   /* required, 1–512 characters without white space; never a secret */
  bool safe_to_retry;         /* must be true: every old execution has ended, and doing the work again is safe */
  uint64_t task_timeout_ms; /* required, 1–2,592,000,000, not below the attempt timeout: the new task's deadline is acceptance
                               plus this */
  int64_t available_at;     /* time before which it is not given out; 0: at once */
  int64_t start_deadline_at; /* time after which it is not started; 0: none but the deadline */
};
#define ORBIT_RETRY_REQUEST_INIT \
  { sizeof(struct orbit_retry_request), 0, NULL, NULL, false, 0, 0, 0 }

struct orbit_retry_result {
  const char *source_task_id;
  const struct orbit_task *task; /* the new one: its retry_of is source_task_id. The old one stays as it is. */
  const char *audit_id;
  bool deduplicated; /* this is the answer to an earlier request with the same key */
  const char *json;  /* the whole answer, with a NUL after it */
  size_t json_size;
};

/* Permission tasks:retry. Everything but the times is the old task's. The new task has another id: a handler that must not do
 * its work twice cannot use the task id as its key here. A task has one such successor at most. NOT_FOUND, STATE_CONFLICT
 * (another state or revision, an effect that is uncertain, a successor), QUEUE_FULL, APPLICATION_FULL. For
 * orbit_retry_result_free. */
int orbit_retry_task(struct orbit_client *client, const char *operation_key, const char *task_id,
                     const struct orbit_retry_request *request, struct orbit_retry_result **ret_result,
                     struct orbit_error *error);
void orbit_retry_result_free(struct orbit_retry_result *result);

/* ---- Operations: who did what to the task (permission tasks:audit:read) ---- */

struct orbit_operation {
  const char *id; /* the audit id */
  const char *task_id;
  const char *operation_id; /* ties the events, the audit record and the answer of one command together */
  const char *actor_id;     /* the credential, or the node */
  const char *action;       /* "task.review", "task.retry", "task.cancel" … */
  int64_t created_at;
  /* From here on to json: of orbit_get_task_operation alone. */
  const char *reason;       /* NULL for none */
  const char *evidence_ref; /* NULL for none */
  const char *before;       /* JSON, with a NUL after it; NULL for none */
  size_t before_size;
  const char *after; /* likewise */
  size_t after_size;
  const char *json; /* the whole of it, with a NUL after it */
  size_t json_size;
};

struct orbit_operation_list {
  const struct orbit_operation *const *items; /* newest first */
  size_t count;
  const char *next_cursor; /* NULL on the last page */
};

/* A page of the task's operations. NOT_FOUND. */
int orbit_list_task_operations(struct orbit_client *client, const char *task_id, uint32_t limit, const char *cursor,
                               struct orbit_operation_list **ret_list, struct orbit_error *error);
void orbit_operation_list_free(struct orbit_operation_list *list);
/* One operation of the task, whole. NOT_FOUND. */
int orbit_get_task_operation(struct orbit_client *client, const char *task_id, const char *audit_id,
                             struct orbit_operation **ret_operation, struct orbit_error *error);
void orbit_operation_free(struct orbit_operation *operation);

/* ---- Events: the task's part of the log (permission tasks:audit:read) ---- */

struct orbit_event {
  uint64_t position; /* in the log */
  const char *type;  /* "task.accepted", "attempt.leased" … */
  int64_t time;
  const char *task_id;  /* NULL for none */
  const char *queue_id; /* NULL for none */
  uint64_t revision;    /* of the task, 0 where the event does not change it */
  const char *data;     /* JSON, with a NUL after it: what the event holds */
  size_t data_size;
  const char *json; /* the whole event, with a NUL after it */
  size_t json_size;
};

struct orbit_event_list {
  const struct orbit_event *const *items; /* oldest first */
  size_t count;
  const char *next_cursor; /* NULL on the last page */
};

/* A page of the task's own events, as they are stored. NOT_FOUND. */
int orbit_list_task_events(struct orbit_client *client, const char *task_id, uint32_t limit, const char *cursor,
                           struct orbit_event_list **ret_list, struct orbit_error *error);
void orbit_event_list_free(struct orbit_event_list *list);

#ifdef __cplusplus
}
#endif

#endif
