/* liborbit for tasks at certain times: schedules, what became of their times, and previews. Part of orbit.h.
 *
 * Words (kind, overlap, missed, outcome) are texts as the server has them, so that a newer server can be read. The answer of a
 * write is the schedule as that write left it, without next_at and last: orbit_get_schedule has those. */
#ifndef ORBIT_SCHEDULE_H
#define ORBIT_SCHEDULE_H

#include "../orbit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What became of one time of a schedule. Never changes. */
struct orbit_trigger {
  int64_t scheduled_at; /* 0: there is none */
  const char *outcome;  /* "SUBMITTED", "SKIPPED_OVERLAP", "SKIPPED_MISSED", "REJECTED" */
  const char *task_id;  /* SUBMITTED; NULL else */
  const char *code;     /* REJECTED: "QUEUE_FULL" …; NULL else */
  int64_t decided_at;
};

struct orbit_schedule {
  const char *id;
  const char *namespace_id;
  const char *queue_id;
  const char *name;
  uint64_t revision;
  const char *kind;     /* "CRON", "INTERVAL" */
  const char *cron;     /* NULL with an interval */
  const char *timezone; /* NULL with an interval */
  uint64_t interval_ms; /* 0 with an expression */
  int64_t start_at;     /* 0: none */
  int64_t end_at;       /* 0: none */
  const char *overlap;  /* "ALLOW", "SKIP", "SERIAL" */
  const char *missed;   /* "SKIP", "LATEST", "ALL" */
  uint32_t catch_up_limit;
  bool paused;
  bool deleted; /* the answer of orbit_delete_schedule */
  int64_t created_at;
  int64_t updated_at;
  int64_t next_at;           /* 0: none, or the answer of a write */
  struct orbit_trigger last; /* scheduled_at 0: none yet, or the answer of a write */
  const char *json;          /* the whole schedule with its template, with a NUL after it */
  size_t json_size;
};

struct orbit_schedule_list {
  const struct orbit_schedule *const *items; /* oldest first */
  size_t count;
  const char *next_cursor; /* NULL on the last page */
};

struct orbit_trigger_list {
  const struct orbit_trigger *const *items; /* newest first */
  size_t count;
  const char *next_cursor; /* NULL on the last page */
};

struct orbit_schedule_request {
  size_t size;                           /* ORBIT_SCHEDULE_REQUEST_INIT sets it */
  const char *name;                      /* required, 1–128 characters */
  const struct orbit_task_request *task; /* required: its tasks, and in queue_id their queue; without times */
  const char *cron;                      /* an expression of 1–256 characters; or NULL, and interval_ms */
  const char *timezone;                  /* with cron; NULL: UTC */
  uint64_t interval_ms;                  /* 1,000 and more; or 0, and cron */
  int64_t start_at;                      /* 0: none */
  int64_t end_at;                        /* 0: none */
  const char *overlap;                   /* NULL: "ALLOW" */
  const char *missed;                    /* NULL: "LATEST" */
  uint32_t catch_up_limit;               /* 1–1,000; 0: 10 */
  bool paused;
};
#define ORBIT_SCHEDULE_REQUEST_INIT \
  { sizeof(struct orbit_schedule_request), NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL, 0, false }

/* What is to be another than it is: fields that are NULL or 0 stay as they are. */
struct orbit_schedule_change {
  size_t size;                /* ORBIT_SCHEDULE_CHANGE_INIT sets it */
  uint64_t expected_revision; /* required */
  const char *name;
  const struct orbit_task_request *task; /* as a whole; its queue_id is not looked at, but must be an id */
  const char *cron, *timezone;
  uint64_t interval_ms;
  int64_t start_at, end_at; /* a time; -1 takes it away */
  const char *overlap, *missed;
  uint32_t catch_up_limit;
};
#define ORBIT_SCHEDULE_CHANGE_INIT \
  { sizeof(struct orbit_schedule_change), 0, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL, 0 }

/* Times to look at before there is a schedule. */
struct orbit_preview_request {
  size_t size;          /* ORBIT_PREVIEW_REQUEST_INIT sets it */
  const char *cron;     /* an expression of 1–256 characters; or NULL, and interval_ms */
  const char *timezone; /* with cron; NULL: UTC */
  uint64_t interval_ms; /* 1,000 and more, counted from after; or 0, and cron */
  int64_t after;        /* times strictly after this; 0: now */
  uint32_t count;       /* how many at most, 1–100; 0: 10 */
};
#define ORBIT_PREVIEW_REQUEST_INIT \
  { sizeof(struct orbit_preview_request), NULL, NULL, 0, 0, 0 }

struct orbit_preview {
  const int64_t *times; /* the earliest first */
  size_t count;         /* less than what was asked for where the expression has no more times */
};

/* ---- Permissions schedules:read and schedules:manage. Schedules are for orbit_schedule_free. NOT_FOUND where one is named.
 * INVALID_ARGUMENT: an expression is none, and the error's message names the part and the character. ---- */

int orbit_create_schedule(struct orbit_client *client, const char *operation_key, const struct orbit_schedule_request *request,
                          struct orbit_schedule **ret_schedule, struct orbit_error *error);
int orbit_get_schedule(struct orbit_client *client, const char *schedule_id, struct orbit_schedule **ret_schedule,
                       struct orbit_error *error);
int orbit_list_schedules(struct orbit_client *client, uint32_t limit, const char *cursor, struct orbit_schedule_list **ret_list,
                         struct orbit_error *error);
/* STATE_CONFLICT: another revision. */
int orbit_change_schedule(struct orbit_client *client, const char *operation_key, const char *schedule_id,
                          const struct orbit_schedule_change *change, struct orbit_schedule **ret_schedule,
                          struct orbit_error *error);
/* reason: 1–1,024 characters, or NULL. STATE_CONFLICT: it is so already. */
int orbit_pause_schedule(struct orbit_client *client, const char *operation_key, const char *schedule_id, const char *reason,
                         struct orbit_schedule **ret_schedule, struct orbit_error *error);
int orbit_resume_schedule(struct orbit_client *client, const char *operation_key, const char *schedule_id, const char *reason,
                          struct orbit_schedule **ret_schedule, struct orbit_error *error);
int orbit_delete_schedule(struct orbit_client *client, const char *operation_key, const char *schedule_id, const char *reason,
                          struct orbit_schedule **ret_schedule, struct orbit_error *error);
void orbit_schedule_free(struct orbit_schedule *schedule);
void orbit_schedule_list_free(struct orbit_schedule_list *list);

/* A page of what became of its times. For orbit_trigger_list_free. */
int orbit_list_triggers(struct orbit_client *client, const char *schedule_id, uint32_t limit, const char *cursor,
                        struct orbit_trigger_list **ret_list, struct orbit_error *error);
void orbit_trigger_list_free(struct orbit_trigger_list *list);

/* The times that such a schedule would have; nothing is stored. Permission schedules:read. For orbit_preview_free.
 * INVALID_ARGUMENT also where an expression has no time at all. */
int orbit_preview_schedule(struct orbit_client *client, const struct orbit_preview_request *request,
                           struct orbit_preview **ret_preview, struct orbit_error *error);
void orbit_preview_free(struct orbit_preview *preview);

#ifdef __cplusplus
}
#endif

#endif
