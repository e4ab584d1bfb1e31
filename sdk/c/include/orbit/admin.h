/* liborbit for whoever runs a namespace: queues, applications, credentials, namespaces, and the audit of all that. Part of
 * orbit.h.
 *
 * The answer of a write is the object as that write left it, without what is live (counts, what is unfinished): the …_get_…
 * functions have that. A change names the revision that it was made for, and is refused with STATE_CONFLICT when the object has
 * been changed since. */
#ifndef ORBIT_ADMIN_H
#define ORBIT_ADMIN_H

#include "../orbit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which fields a change is about. */
enum orbit_change {
  ORBIT_CHANGE_NAME = 1,
  ORBIT_CHANGE_MAX_UNFINISHED = 2,
  ORBIT_CHANGE_MAX_RUNNING = 4,
  ORBIT_CHANGE_KEY_CONCURRENCY = 8,
  ORBIT_CHANGE_RATE = 16,
  ORBIT_CHANGE_LEASE_MS = 32,
  ORBIT_CHANGE_DISABLED = 64,
};

/* ---- Queues: permissions queues:read and queues:manage ---- */

/* At most so many leases: `tasks` in each `per_ms` milliseconds on average, `burst` at once; each 1–1,000,000,000. All 0: no
 * bound. Never changes. */
struct orbit_rate {
  uint64_t tasks;
  uint64_t per_ms;
  uint64_t burst;
};

struct orbit_task_counts {
  uint64_t waiting;
  uint64_t leased;
  uint64_t running;
  uint64_t needs_review;
  uint64_t succeeded;
  uint64_t failed;
  uint64_t cancelled;
};

struct orbit_queue {
  const char *id;
  const char *namespace_id;
  const char *name;
  uint64_t revision;
  bool paused;
  uint64_t max_unfinished;  /* 0: no limit */
  uint64_t max_running;     /* leased and running together; 0: no limit */
  uint64_t key_concurrency; /* tasks with one concurrency_key leased and running at once */
  struct orbit_rate rate;   /* all 0: none */
  uint64_t lease_ms;
  const struct orbit_task_counts *counts; /* NULL in answers to writes */
  int64_t oldest_waiting_at;              /* 0 where nothing waits, and in answers to writes */
  const char *json;                       /* the whole queue, with a NUL after it */
  size_t json_size;
};

struct orbit_queue_list {
  const struct orbit_queue *const *items; /* oldest first */
  size_t count;
  const char *next_cursor; /* NULL on the last page */
};

struct orbit_queue_request {
  size_t size;              /* ORBIT_QUEUE_REQUEST_INIT sets it */
  const char *name;         /* required, 1–128 characters */
  uint64_t max_unfinished;  /* 1–1,000,000,000; 0: no limit */
  uint64_t max_running;     /* likewise */
  uint64_t key_concurrency; /* 1–1,000,000,000; 0: 1 */
  struct orbit_rate rate;
  uint64_t lease_ms; /* 5,000–300,000; 0: 30,000 */
};
#define ORBIT_QUEUE_REQUEST_INIT \
  { sizeof(struct orbit_queue_request), NULL, 0, 0, 0, {0, 0, 0}, 0 }

struct orbit_queue_change {
  size_t size;                /* ORBIT_QUEUE_CHANGE_INIT sets it */
  uint64_t expected_revision; /* required */
  uint32_t fields;            /* of enum orbit_change, those that follow, at least one; the others are not looked at */
  const char *name;
  uint64_t max_unfinished;  /* 0 takes the limit away */
  uint64_t max_running;     /* 0 takes the limit away */
  uint64_t key_concurrency; /* 1–1,000,000,000 */
  struct orbit_rate rate;   /* all 0 takes it away */
  uint64_t lease_ms;        /* 5,000–300,000 */
};
#define ORBIT_QUEUE_CHANGE_INIT \
  { sizeof(struct orbit_queue_change), 0, 0, NULL, 0, 0, 0, {0, 0, 0}, 0 }

/* The queue is for orbit_queue_free. NOT_FOUND where a queue is named. */
int orbit_create_queue(struct orbit_client *client, const char *operation_key, const struct orbit_queue_request *request,
                       struct orbit_queue **ret_queue, struct orbit_error *error);
int orbit_get_queue(struct orbit_client *client, const char *queue_id, struct orbit_queue **ret_queue,
                    struct orbit_error *error);
int orbit_list_queues(struct orbit_client *client, uint32_t limit, const char *cursor, struct orbit_queue_list **ret_list,
                      struct orbit_error *error);
/* STATE_CONFLICT: another revision. */
int orbit_change_queue(struct orbit_client *client, const char *operation_key, const char *queue_id,
                       const struct orbit_queue_change *change, struct orbit_queue **ret_queue, struct orbit_error *error);
/* A paused queue takes tasks and gives none out. reason: 1–1,024 characters, or NULL. */
int orbit_pause_queue(struct orbit_client *client, const char *operation_key, const char *queue_id, const char *reason,
                      struct orbit_queue **ret_queue, struct orbit_error *error);
int orbit_resume_queue(struct orbit_client *client, const char *operation_key, const char *queue_id, const char *reason,
                       struct orbit_queue **ret_queue, struct orbit_error *error);
void orbit_queue_free(struct orbit_queue *queue);
void orbit_queue_list_free(struct orbit_queue_list *list);

/* ---- Applications: permission admin, like all that follows ---- */

struct orbit_application {
  const char *id;
  const char *namespace_id;
  const char *name;
  uint64_t revision;
  uint64_t max_unfinished; /* 0: no limit */
  bool disabled;           /* its credentials are refused */
  bool has_unfinished;     /* false in answers to writes */
  uint64_t unfinished;     /* its tasks that are not over */
  const char *json;        /* the whole application, with a NUL after it */
  size_t json_size;
};

struct orbit_application_list {
  const struct orbit_application *const *items; /* oldest first */
  size_t count;
  const char *next_cursor; /* NULL on the last page */
};

struct orbit_application_request {
  size_t size;             /* ORBIT_APPLICATION_REQUEST_INIT sets it */
  const char *name;        /* required, 1–128 characters */
  uint64_t max_unfinished; /* 1–1,000,000,000; 0: no limit */
};
#define ORBIT_APPLICATION_REQUEST_INIT \
  { sizeof(struct orbit_application_request), NULL, 0 }

struct orbit_application_change {
  size_t size;                /* ORBIT_APPLICATION_CHANGE_INIT sets it */
  uint64_t expected_revision; /* required */
  uint32_t fields;            /* of enum orbit_change, those that follow, at least one; the others are not looked at */
  const char *name;
  uint64_t max_unfinished; /* 0 takes the limit away */
  bool disabled;
};
#define ORBIT_APPLICATION_CHANGE_INIT \
  { sizeof(struct orbit_application_change), 0, 0, NULL, 0, false }

/* The application is for orbit_application_free. NOT_FOUND where one is named. */
int orbit_create_application(struct orbit_client *client, const char *operation_key,
                             const struct orbit_application_request *request, struct orbit_application **ret_application,
                             struct orbit_error *error);
int orbit_get_application(struct orbit_client *client, const char *application_id, struct orbit_application **ret_application,
                          struct orbit_error *error);
int orbit_list_applications(struct orbit_client *client, uint32_t limit, const char *cursor,
                            struct orbit_application_list **ret_list, struct orbit_error *error);
/* STATE_CONFLICT: another revision. */
int orbit_change_application(struct orbit_client *client, const char *operation_key, const char *application_id,
                             const struct orbit_application_change *change, struct orbit_application **ret_application,
                             struct orbit_error *error);
void orbit_application_free(struct orbit_application *application);
void orbit_application_list_free(struct orbit_application_list *list);

/* ---- Credentials ---- */

/* The record of a credential, which Orbit keeps; struct orbit_credentials is the file that a program reads. */
struct orbit_credential {
  const char *id;
  const char *namespace_id;       /* NULL for none */
  const char *application_id;     /* NULL for none */
  const char *name;               /* NULL for none */
  const char *const *permissions; /* "tasks:submit" … */
  size_t permission_count;
  const char *const *queue_ids; /* the queues within reach; NULL: all of the namespace */
  size_t queue_count;
  int64_t expires_at; /* 0: never */
  bool revoked;
  uint64_t revision;
  const char *token; /* secret; wiped by the free function. NULL but in the first answer to a create or rotate: Orbit does not
                        keep tokens, so that an answer that was lost is mended by rotating under another key. */
  const char *json;  /* the whole credential, never with the token, and a NUL after it */
  size_t json_size;
};

struct orbit_credential_list {
  const struct orbit_credential *const *items; /* oldest first */
  size_t count;
  const char *next_cursor; /* NULL on the last page */
};

struct orbit_credential_request {
  size_t size;                    /* ORBIT_CREDENTIAL_REQUEST_INIT sets it */
  const char *application_id;     /* required, id */
  const char *name;               /* 1–128 characters; NULL: none */
  const char *const *permissions; /* required, each once */
  size_t permission_count;
  const char *const *queue_ids; /* 1–256 ids, each once; NULL: all queues of the namespace */
  size_t queue_count;
  int64_t expires_at; /* in the future; 0: never */
};
#define ORBIT_CREDENTIAL_REQUEST_INIT \
  { sizeof(struct orbit_credential_request), NULL, NULL, NULL, 0, NULL, 0, 0 }

/* The credential is for orbit_credential_free, which wipes the token. NOT_FOUND where an object is named. */
int orbit_create_credential(struct orbit_client *client, const char *operation_key,
                            const struct orbit_credential_request *request, struct orbit_credential **ret_credential,
                            struct orbit_error *error);
int orbit_get_credential(struct orbit_client *client, const char *credential_id, struct orbit_credential **ret_credential,
                         struct orbit_error *error);
int orbit_list_credentials(struct orbit_client *client, uint32_t limit, const char *cursor,
                           struct orbit_credential_list **ret_list, struct orbit_error *error);
/* Another token for the same credential; the old one is refused from now on. STATE_CONFLICT: it is revoked. */
int orbit_rotate_credential(struct orbit_client *client, const char *operation_key, const char *credential_id,
                            struct orbit_credential **ret_credential, struct orbit_error *error);
/* For good: the token is refused from now on. STATE_CONFLICT: it is revoked already. */
int orbit_revoke_credential(struct orbit_client *client, const char *operation_key, const char *credential_id,
                            struct orbit_credential **ret_credential, struct orbit_error *error);
void orbit_credential_free(struct orbit_credential *credential);
void orbit_credential_list_free(struct orbit_credential_list *list);

/* ---- Namespaces: permission root ---- */

/* A namespace comes with an application and a credential with permission admin for whoever will run it. */
struct orbit_namespace {
  const char *id;
  const char *name;
  const struct orbit_application *application;
  const struct orbit_credential *credential; /* with its token in the first answer */
  const char *json;                          /* id and name, with a NUL after it */
  size_t json_size;
};

/* name: 1–128 characters. For orbit_namespace_free, which wipes the token. */
int orbit_create_namespace(struct orbit_client *client, const char *operation_key, const char *name,
                           struct orbit_namespace **ret_namespace, struct orbit_error *error);
void orbit_namespace_free(struct orbit_namespace *made);

/* ---- The audit of administration ---- */

struct orbit_audit_record {
  const char *id;
  const char *target_id; /* the queue, application, credential or namespace */
  const char *operation_id;
  const char *actor_id; /* the credential that asked */
  const char *action;   /* "queue.pause" … */
  int64_t created_at;
  const char *reason; /* NULL for none */
  const char *before; /* JSON, with a NUL after it; NULL for none */
  size_t before_size;
  const char *after; /* likewise */
  size_t after_size;
  const char *json; /* the whole record, with a NUL after it */
  size_t json_size;
};

struct orbit_audit_list {
  const struct orbit_audit_record *const *items; /* newest first */
  size_t count;
  const char *next_cursor; /* NULL on the last page */
};

/* A page of what was done to one object, or with target_id NULL to any of the namespace. For orbit_audit_list_free. */
int orbit_list_audit(struct orbit_client *client, const char *target_id, uint32_t limit, const char *cursor,
                     struct orbit_audit_list **ret_list, struct orbit_error *error);
void orbit_audit_list_free(struct orbit_audit_list *list);

#ifdef __cplusplus
}
#endif

#endif
