/* liborbit: the C client of Orbit. This header has what every program needs (results, credentials, clients) and the tasks of
 * producers, and brings in the rest: orbit/events.h for whoever follows what happens and waits for tasks,
 * orbit/recovery.h for people who settle tasks by hand and read what was done to them,
 * orbit/worker.h for programs that carry tasks out, orbit/schedule.h for tasks at certain times,
 * orbit/admin.h for whoever runs a namespace.
 *
 * Rules that hold for everything here
 *
 *   Documents.   Payloads, results and details are JSON text in UTF-8: a pointer and a size in bytes. Numbers in them reach the
 *                other side exactly as written. Texts (`const char *` without a size) are UTF-8 and end with a NUL.
 *   Ownership.   Arguments are borrowed for the call alone. What comes back through `ret_…` belongs to the caller, who gives it
 *                to the function that its comment names. Pointers inside a result live as long as the result. Every free
 *                function takes NULL. `ret_…` is untouched when a function fails.
 *   Errors.      A function returns ORBIT_OK or says why not; with a pointer to struct orbit_error it also says it in words.
 *                That pointer may be NULL. Any function may return ORBIT_INVALID_ARGUMENT (an argument that the library itself
 *                can see is wrong; nothing was sent) and ORBIT_NO_MEMORY; the comments list what else it may return, and, in
 *                capitals, the codes of refusals to expect.
 *   Identities.  The library never makes up the identity of an operation and never repeats a request by itself: every write
 *                takes an operation_key (1–128 visible ASCII characters), which the caller chose and keeps. Whether a write
 *                whose answer was lost is repeated, under the same key, is the caller's decision, and safe: the same key with
 *                the same content is done once and gets the first answer; with other content it is refused with
 *                IDEMPOTENCY_CONFLICT. (HTTP itself sends a request again, once, where a kept connection turns out to have
 *                been closed meanwhile.) (The control messages of a worker are another matter: see orbit/worker.h.)
 *   Lists.       A page holds at most `limit` items (1–100; 0: Orbit's default, 20). cursor NULL asks for the first page; the
 *                next_cursor of a page, with everything else the same, for the one behind it.
 *   Threads.     A client may be used by any number of threads at once. A worker may too, where its functions do not say
 *                otherwise. Results are plain memory.
 *   Processes.   A child that was forked while no other thread was in a call may use the client of its parent: it makes
 *                connections of its own. The functions of a worker are for the process that started it alone. Programs that
 *                are started from it do not inherit its connections.
 *   Times.       Points in time are microseconds since 1970-01-01T00:00:00Z, 0 where absent. Durations name their unit.
 *   Stability.   Structures that the caller makes begin with `size` and are made with their …_INIT macro; fields are only ever
 *                added at the end, so a program built against an older header keeps working. Structures that the library makes
 *                grow at the end likewise: never copy them by value. Enumerations grow too: treat a value that you do not know
 *                as "something else". struct orbit_error and struct orbit_retry never change. */
#ifndef ORBIT_H
#define ORBIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Results ---- */

enum orbit_status {
  ORBIT_OK = 0,
  ORBIT_INVALID_ARGUMENT = 1, /* the library refused the call; nothing was sent */
  ORBIT_NO_MEMORY = 2,
  ORBIT_IO_ERROR = 3,      /* a local file, thread or the random source */
  ORBIT_NOT_CONNECTED = 4, /* no connection could be made: the request did not reach Orbit */
  ORBIT_NO_ANSWER = 5,     /* the connection broke or time ran out: the request may or may not have been carried out */
  ORBIT_BAD_ANSWER = 6,    /* an answer that Orbit does not give; for what was carried out, the same as ORBIT_NO_ANSWER */
  ORBIT_REFUSED = 7,       /* Orbit refused: see orbit_error.http_status and .code */
  ORBIT_TIMEOUT = 8,       /* what was waited for did not happen in time */
  ORBIT_STOPPED = 9,       /* the worker has ended: stopped, or for a reason that connecting again does not mend */
  ORBIT_WRONG_STATE = 10,  /* the worker is not in the state that the call needs */
};

/* What went wrong. Filled on failure only; every text ends with a NUL and is "" where there is nothing to say. */
struct orbit_error {
  int32_t status;          /* enum orbit_status: the value that the function returned */
  int32_t http_status;     /* 400…599 with ORBIT_REFUSED; else 0 */
  uint64_t retry_after_ms; /* Orbit's advice, 0 for none */
  char code[64];           /* ORBIT_REFUSED: "INVALID_ARGUMENT", "QUEUE_FULL", "IDEMPOTENCY_CONFLICT" … */
  char field[192];         /* the field, header or parameter to blame: a JSON Pointer or a name */
  char message[512];       /* a sentence for people; never holds a secret */
  char request_id[64];     /* as Orbit logged the request */
};

/* The name of a status ("NOT_CONNECTED"). Static; "UNKNOWN_STATUS" for numbers that are none. */
const char *orbit_status_name(int status);
/* The library's version, "0.1.0". Static. */
const char *orbit_version(void);

/* ---- Credentials files ---- */

/* A credentials file is a JSON object with url, namespace_id, application_id, queue_id and token (`orbitctl init --dev` writes
 * one). Fields that the file does not have are "". */
struct orbit_credentials {
  const char *url; /* http://host:port or https://host:port */
  const char *namespace_id;
  const char *application_id;
  const char *queue_id;
  const char *token; /* secret */
  const char *path;  /* of the file that was read */
  bool exposed;      /* the file can be read or written by others than its owner: tell the user */
};

/* Reads the file at path; with path NULL the one that the environment names: $ORBIT_CREDENTIALS_FILE, else
 * $XDG_CONFIG_HOME/orbit/credentials.json, else $HOME/.config/orbit/credentials.json. Whatever path is, $ORBIT_URL, where set
 * and not empty, takes the place of the file's url. Unknown fields are passed over. The result is for orbit_credentials_free,
 * which wipes the token.
 * ORBIT_IO_ERROR: the file cannot be found or read. ORBIT_INVALID_ARGUMENT: not such a file (field says where), no token, or
 * no url in file and environment. */
int orbit_credentials_load(const char *path, struct orbit_credentials **ret_credentials, struct orbit_error *error);
void orbit_credentials_free(struct orbit_credentials *credentials);

/* Fills out with 32 random lower-case hexadecimal digits and a NUL: good for an operation key or an instance id that the caller
 * then keeps. ORBIT_IO_ERROR: no randomness. */
enum { ORBIT_ID_SIZE = 33 };
int orbit_random_id(char out[ORBIT_ID_SIZE]);

/* ---- Clients ---- */

struct orbit_client;

struct orbit_client_options {
  size_t size;                 /* ORBIT_CLIENT_OPTIONS_INIT sets it */
  const char *url;             /* required: http://host[:port] or https://host[:port] */
  const char *token;           /* bearer token; NULL for the open routes alone (orbit_info) */
  const char *user_agent;      /* NULL: "liborbit/VERSION" */
  const char *ca_file;         /* PEM file of the authorities to trust for https; NULL: $ORBIT_CA_FILE, else the system's */
  uint32_t connect_timeout_ms; /* 0: 5,000 */
  uint32_t timeout_ms;         /* for a whole request and its answer; 0: 35,000 */
};
#define ORBIT_CLIENT_OPTIONS_INIT \
  { sizeof(struct orbit_client_options), NULL, NULL, NULL, NULL, 0, 0 }

/* Makes no connection yet. Proxies of the environment are not used. The client keeps copies of all texts; for
 * orbit_client_free. ORBIT_INVALID_ARGUMENT: url or token malformed. */
int orbit_client_new(const struct orbit_client_options *options, struct orbit_client **ret_client, struct orbit_error *error);
/* orbit_credentials_load(NULL) and orbit_client_new in one; errors of both. */
int orbit_client_from_environment(struct orbit_client **ret_client, struct orbit_error *error);
/* No call may be under way. Wipes the token. */
void orbit_client_free(struct orbit_client *client);

/* Any route. Errors of this function are the errors of every function below that takes a client: ORBIT_NOT_CONNECTED,
 * ORBIT_NO_ANSWER, ORBIT_BAD_ANSWER, ORBIT_REFUSED.
 * method: "GET", "POST", "PATCH", "DELETE". path: begins with "/", query included, percent-encoded by the caller.
 * idempotency_key: NULL, or 1–128 visible ASCII characters. body: JSON, or NULL. */
struct orbit_response {
  int32_t http_status;    /* 200…299 */
  const char *request_id; /* "" where the answer has none */
  const char *body;       /* as received, with a NUL after it */
  size_t body_size;
  const char *data; /* the envelope's `data` as written, with a NUL after it; NULL where the answer has no envelope */
  size_t data_size;
};
int orbit_call(struct orbit_client *client, const char *method, const char *path, const char *idempotency_key, const char *body,
               size_t body_size, struct orbit_response **ret_response, struct orbit_error *error);
void orbit_response_free(struct orbit_response *response);

/* ---- Tasks ---- */

enum orbit_recovery_safety {
  ORBIT_RECONCILE_ONLY = 0, /* an execution whose effect is unknown is looked at by a person */
  ORBIT_IDEMPOTENT = 1,     /* it may be carried out again: the handler vouches for that, whatever happens */
};

/* When and how often Orbit tries again after a failure that the handler calls retryable. */
struct orbit_retry {
  uint32_t max_attempts;       /* 1–100; 0: 1 */
  uint32_t initial_delay_ms;   /* 0–86,400,000 */
  uint32_t max_delay_ms;       /* initial_delay_ms–86,400,000 */
  uint64_t attempt_timeout_ms; /* 1–task_timeout_ms, counted from the start grant; 0: task_timeout_ms */
};

struct orbit_task_request {
  size_t size;                 /* ORBIT_TASK_REQUEST_INIT sets it */
  const char *queue_id;        /* required, id */
  const char *handler;         /* required, 1–128 of [A-Za-z0-9._:/-] */
  const char *handler_version; /* required, likewise */
  const char *payload_version; /* required, likewise */
  const char *payload;         /* required, JSON, not null, at most 256 KiB */
  size_t payload_size;
  uint64_t task_timeout_ms;  /* required, 1–2,592,000,000: the deadline is acceptance plus this */
  int64_t available_at;      /* time before which it is not given out; 0: at once */
  int64_t start_deadline_at; /* time after which it is not started; 0: none but the deadline */
  int32_t recovery_safety;   /* enum orbit_recovery_safety */
  uint32_t priority;         /* 0–9, higher first */
  struct orbit_retry retry;
  const char *business_key;    /* 1–256 characters, shown and filterable; NULL: none */
  const char *concurrency_key; /* 1–256 characters, tasks with the same one run one after the other; NULL: none */
};
#define ORBIT_TASK_REQUEST_INIT \
  { sizeof(struct orbit_task_request), NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, {0, 0, 0, 0}, NULL, NULL }

enum orbit_task_state {
  ORBIT_TASK_OTHER = 0, /* a state that this version of the library does not know: see state_name */
  ORBIT_TASK_WAITING = 1,
  ORBIT_TASK_LEASED = 2,
  ORBIT_TASK_RUNNING = 3,
  ORBIT_TASK_NEEDS_REVIEW = 4,
  ORBIT_TASK_SUCCEEDED = 5,
  ORBIT_TASK_FAILED = 6,
  ORBIT_TASK_CANCELLED = 7,
};

/* The error of a failed task or attempt. */
struct orbit_fault {
  const char *code;    /* "" when there is no error */
  const char *message; /* "" for none */
  const char *details; /* JSON as written, with a NUL after it; NULL for none */
  size_t details_size;
};

struct orbit_task {
  const char *id;
  const char *namespace_id;
  const char *queue_id;
  int32_t state; /* enum orbit_task_state */
  const char *state_name;
  uint64_t revision;
  const char *handler;
  const char *handler_version;
  const char *payload_version;
  const char *payload; /* JSON as written, with a NUL after it; NULL where the answer has none */
  size_t payload_size;
  const char *business_key;    /* NULL for none */
  const char *concurrency_key; /* NULL for none */
  uint32_t priority;
  int64_t available_at; /* 0 for none, like all times here */
  int64_t start_deadline_at;
  int64_t deadline_at;
  int32_t recovery_safety; /* enum orbit_recovery_safety */
  struct orbit_retry retry;
  uint32_t attempt_count;
  bool effect_uncertain;
  int64_t cancel_requested_at;
  struct orbit_fault error;
  const char *result; /* JSON as written, with a NUL after it; NULL for none */
  size_t result_size;
  int64_t completed_at;
  int64_t created_at;
  int64_t updated_at;
  const char *json; /* the whole task as Orbit gave it, with a NUL after it */
  size_t json_size;
  bool deduplicated;    /* orbit_submit_task, orbit_cancel_task: this is the answer to an earlier request with the same key */
  const char *retry_of; /* the task that this one was made from by hand; NULL for none */
  const char *schedule_id; /* the schedule that made it; NULL for none */
  const char *audit_id;    /* orbit_cancel_task: the audit record of the operation; else NULL */
  bool applied;            /* orbit_cancel_task: false when a cancel request was on record already */
};

/* True for SUCCEEDED, FAILED and CANCELLED: such a task never changes again. */
bool orbit_task_is_terminal(const struct orbit_task *task);
void orbit_task_free(struct orbit_task *task);

/* Submits under operation_key: the same key with the same content gives the same task, however often it is sent. The task comes
 * as it stood at acceptance; for orbit_task_free. Refusals to expect: INVALID_ARGUMENT, NOT_FOUND (no such queue in scope),
 * QUEUE_FULL, APPLICATION_FULL, RATE_LIMITED, IDEMPOTENCY_CONFLICT, UNAVAILABLE. */
int orbit_submit_task(struct orbit_client *client, const char *operation_key, const struct orbit_task_request *request,
                      struct orbit_task **ret_task, struct orbit_error *error);
/* The task as it stands. NOT_FOUND. */
int orbit_get_task(struct orbit_client *client, const char *task_id, struct orbit_task **ret_task, struct orbit_error *error);
/* Asks for the task to be cancelled; reason 1–1,024 characters; expected_revision 0: whatever it is. The task comes as the
 * operation left it, which for a running one is RUNNING. NOT_FOUND, STATE_CONFLICT. */
int orbit_cancel_task(struct orbit_client *client, const char *operation_key, const char *task_id, const char *reason,
                      uint64_t expected_revision, struct orbit_task **ret_task, struct orbit_error *error);

/* Several submissions in one request and one commit, each with a key of its own. */
struct orbit_submission { /* never changes */
  const char *operation_key;
  const struct orbit_task_request *request;
};
struct orbit_submission_answer {
  int32_t http_status;           /* 201: accepted; 200: had been accepted before; 400…599: refused */
  const struct orbit_task *task; /* as it stood at acceptance; NULL when refused */
  struct orbit_error error;      /* why it was refused; status ORBIT_OK when it was not */
};
struct orbit_submission_answer_list {
  const struct orbit_submission_answer *const *items; /* one for each submission, in their order */
  size_t count;
};
/* 1–1,000 submissions, all together at most 4 MiB. They are accepted or refused one by one: ORBIT_OK says only that each has an
 * answer. ORBIT_INVALID_ARGUMENT names the submission: "/items/3/payload". */
int orbit_submit_tasks(struct orbit_client *client, const struct orbit_submission *submissions, size_t count,
                       struct orbit_submission_answer_list **ret_answers, struct orbit_error *error);
void orbit_submission_answer_list_free(struct orbit_submission_answer_list *answers);

/* Which tasks to list: those that fit all that is set. */
struct orbit_task_filter {
  size_t size;              /* ORBIT_TASK_FILTER_INIT sets it */
  const char *queue_id;     /* NULL: any within the credential's reach */
  int32_t state;            /* enum orbit_task_state; ORBIT_TASK_OTHER: any */
  const char *handler;      /* NULL: any */
  const char *business_key; /* NULL: any */
  int64_t created_after;    /* strictly after; 0: any */
  int64_t created_before;   /* strictly before; 0: any */
};
#define ORBIT_TASK_FILTER_INIT \
  { sizeof(struct orbit_task_filter), NULL, 0, NULL, NULL, 0, 0 }

struct orbit_task_list {
  const struct orbit_task *const *items; /* newest first; without payload, result and retry_of: orbit_get_task has them */
  size_t count;
  const char *next_cursor; /* NULL on the last page */
};
/* filter NULL: all tasks. */
int orbit_list_tasks(struct orbit_client *client, const struct orbit_task_filter *filter, uint32_t limit, const char *cursor,
                     struct orbit_task_list **ret_list, struct orbit_error *error);
void orbit_task_list_free(struct orbit_task_list *list);

/* ---- The history of a task ---- */

enum orbit_attempt_state {
  ORBIT_ATTEMPT_OTHER = 0,
  ORBIT_ATTEMPT_LEASED = 1,
  ORBIT_ATTEMPT_RUNNING = 2,
  ORBIT_ATTEMPT_SUCCEEDED = 3,
  ORBIT_ATTEMPT_FAILED = 4,
  ORBIT_ATTEMPT_UNKNOWN = 5,
  ORBIT_ATTEMPT_CANCELLED = 6,
  ORBIT_ATTEMPT_EXPIRED = 7,
  ORBIT_ATTEMPT_REVOKED = 8,
};

/* What a handler says about its execution. */
enum orbit_outcome {
  ORBIT_UNKNOWN = 0, /* the effect cannot be vouched for */
  ORBIT_SUCCEEDED = 1,
  ORBIT_FAILED = 2,    /* there was no effect, or it has been undone */
  ORBIT_CANCELLED = 3, /* stopped without effect because of a cancel request */
};

struct orbit_attempt {
  const char *attempt_id;
  uint32_t number; /* 1, 2, … */
  uint64_t epoch;
  int32_t state; /* enum orbit_attempt_state */
  const char *state_name;
  const char *worker_instance_id;
  const char *worker_name; /* NULL for none */
  int64_t leased_at;
  int64_t lease_expires_at; /* as granted, without renewals */
  int64_t started_at;       /* 0: never started */
  int64_t attempt_deadline_at;
  int64_t finished_at;
  const char *ended_by; /* "LEASE_EXPIRED", "REVOKED" …: what ended it when it was no report; NULL otherwise */
  const char *outcome;  /* "SUCCEEDED", "FAILED", "UNKNOWN", "CANCELLED"; NULL without one */
  bool retryable;
  struct orbit_fault error;
  const char *result; /* JSON as written, with a NUL after it; NULL for none */
  size_t result_size;
  const char *decision; /* "RETRYABLE_FAILURE" …; NULL for none yet */
  uint64_t delay_ms;
  int64_t next_available_at;
  const char *json; /* the whole attempt, with a NUL after it */
  size_t json_size;
};

struct orbit_attempt_list {
  const struct orbit_attempt *const *items; /* oldest first */
  size_t count;
  const char *next_cursor; /* NULL on the last page */
};

/* A page of the task's attempts. NOT_FOUND. */
int orbit_list_attempts(struct orbit_client *client, const char *task_id, uint32_t limit, const char *cursor,
                        struct orbit_attempt_list **ret_list, struct orbit_error *error);
void orbit_attempt_list_free(struct orbit_attempt_list *list);
/* One attempt. NOT_FOUND. */
int orbit_get_attempt(struct orbit_client *client, const char *task_id, const char *attempt_id,
                      struct orbit_attempt **ret_attempt, struct orbit_error *error);
void orbit_attempt_free(struct orbit_attempt *attempt);

/* A report that came without authority: kept for people, it changed nothing. */
struct orbit_evidence {
  const char *evidence_id;
  const char *attempt_id;
  uint64_t epoch;
  const char *message_id;
  int64_t reported_at;
  const char *reason; /* "LEASE_LOST", "STALE_EPOCH", "TASK_ENDED", "CONFLICTING_REPORT" */
  const char *outcome;
  bool retryable;
  struct orbit_fault error;
  const char *result; /* JSON as written, with a NUL after it; NULL for none */
  size_t result_size;
  const char *json; /* the whole of it, with a NUL after it */
  size_t json_size;
};

struct orbit_evidence_list {
  const struct orbit_evidence *const *items; /* oldest first */
  size_t count;
  const char *next_cursor; /* NULL on the last page */
};

/* A page of the task's evidence. NOT_FOUND. */
int orbit_list_evidence(struct orbit_client *client, const char *task_id, uint32_t limit, const char *cursor,
                        struct orbit_evidence_list **ret_list, struct orbit_error *error);
void orbit_evidence_list_free(struct orbit_evidence_list *list);

/* ---- The server ---- */

struct orbit_server_info {
  const char *version;
  const char *node_id;
  int64_t time;
  const char *worker_url;  /* ws://… or wss://…; "" where the server names none */
  const char *limits_json; /* with a NUL after it; NULL for none */
  size_t limits_json_size;
  uint64_t log_position;
};
/* GET /v1/info; needs no token. */
int orbit_info(struct orbit_client *client, struct orbit_server_info **ret_info, struct orbit_error *error);
void orbit_server_info_free(struct orbit_server_info *info);
/* GET /metrics: the body is text in the format of Prometheus; the credential needs metrics:read. For orbit_response_free. */
int orbit_metrics(struct orbit_client *client, struct orbit_response **ret_response, struct orbit_error *error);

#ifdef __cplusplus
}
#endif

#include "orbit/admin.h"
#include "orbit/events.h"
#include "orbit/recovery.h"
#include "orbit/schedule.h"
#include "orbit/worker.h"

#endif
