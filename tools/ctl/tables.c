/* Owns the tables of the commands that are one request: tasks, queues, applications, credentials, namespaces, audit,
 * subscriptions.
 */
#include "remote.h"
#include "task.h"

#define COUNT(columns) (sizeof(columns) / sizeof((columns)[0]))

/* ---- tasks ---- */

static const struct remote_option list_options[] = {
    {"queue", "queue_id", REMOTE_PARAMETER, false, "ID", "of this queue"},
    {"state", "state", REMOTE_PARAMETER, false, "STATE",
     "WAITING, LEASED, RUNNING, NEEDS_REVIEW, SUCCEEDED, FAILED or CANCELLED"},
    {"handler", "handler", REMOTE_PARAMETER, false, "NAME", "of this handler"},
    {"business-key", "business_key", REMOTE_PARAMETER, false, "TEXT", "with this business key"},
    {"after", "created_after", REMOTE_PARAMETER, false, "TIME", "accepted after this time"},
    {"before", "created_before", REMOTE_PARAMETER, false, "TIME", "accepted before this time"},
    {NULL, NULL, REMOTE_TEXT, false, NULL, NULL},
};
static const struct remote_option cancel_options[] = {
    {"reason", "reason", REMOTE_TEXT, true, "TEXT", "why (required)"},
    {"revision", "expected_revision", REMOTE_TEXT, false, "N", "only while the task has this revision"},
    {NULL, NULL, REMOTE_TEXT, false, NULL, NULL},
};
static const struct remote_option review_options[] = {
    {"revision", "expected_revision", REMOTE_TEXT, true, "N", "the revision that was looked at (required)"},
    {"outcome", "outcome", REMOTE_TEXT, true, "WORD", "SUCCEEDED or FAILED: what was found (required)"},
    {"reason", "reason", REMOTE_TEXT, true, "TEXT", "how that was found out (required)"},
    {"evidence", "evidence_ref", REMOTE_TEXT, true, "REF", "reference to the record that shows it; never a secret (required)"},
    {"result", "result", REMOTE_DOCUMENT, true, "JSON", "the finding's result (required)"},
    {"execution-settled", "execution_settled", REMOTE_FLAG, true, NULL,
     "confirm: every old execution is over and has no further effect (required)"},
    {NULL, NULL, REMOTE_TEXT, false, NULL, NULL},
};
static const struct remote_option retry_options[] = {
    {"revision", "expected_revision", REMOTE_TEXT, true, "N", "the ended task's revision (required)"},
    {"reason", "reason", REMOTE_TEXT, true, "TEXT", "why it is to run again (required)"},
    {"evidence", "evidence_ref", REMOTE_TEXT, true, "REF", "reference to what shows that it is safe (required)"},
    {"safe-to-retry", "safe_to_retry", REMOTE_FLAG, true, NULL,
     "confirm: old executions are over, running again is safe (required)"},
    {"timeout-ms", "task_timeout_ms", REMOTE_NUMBER, true, "N", "the new task's time budget (required)"},
    {"available-at", "available_at", REMOTE_TEXT, false, "TIME", "not before this time"},
    {"start-deadline-at", "start_deadline_at", REMOTE_TEXT, false, "TIME", "not started after this time"},
    {NULL, NULL, REMOTE_TEXT, false, NULL, NULL},
};
static const struct print_column operation_columns[] = {
    {"created_at", "TIME", PRINT_TIME, false, 0}, {"action", "ACTION", PRINT_PLAIN, false, 0},
    {"id", "AUDIT", PRINT_PLAIN, false, 0},       {"actor_id", "ACTOR", PRINT_PLAIN, false, 8},
    {"task_id", NULL, PRINT_PLAIN, false, 0},     {"operation_id", NULL, PRINT_PLAIN, false, 0},
    {"reason", NULL, PRINT_PLAIN, false, 0},      {"evidence_ref", NULL, PRINT_PLAIN, false, 0},
    {"before", NULL, PRINT_DOCUMENT, false, 0},   {"after", NULL, PRINT_DOCUMENT, false, 0},
};
static const struct print_column event_columns[] = {
    {"position", "SEQ", PRINT_PLAIN, true, 0},   {"time", "TIME", PRINT_TIME, false, 0},
    {"type", "TYPE", PRINT_PLAIN, false, 0},     {"revision", "REV", PRINT_PLAIN, true, 0},
    {"data", "DATA", PRINT_DOCUMENT, false, 12},
};
static const struct print_column evidence_columns[] = {
    {"reported_at", "REPORTED", PRINT_TIME, false, 0}, {"reason", "REASON", PRINT_PLAIN, false, 0},
    {"outcome", "OUTCOME", PRINT_STATE, false, 0},     {"evidence_id", "EVIDENCE", PRINT_PLAIN, false, 0},
    {"attempt_id", NULL, PRINT_PLAIN, false, 0},       {"epoch", NULL, PRINT_PLAIN, true, 0},
    {"message_id", NULL, PRINT_PLAIN, false, 0},       {"error.code", NULL, PRINT_PLAIN, false, 0},
    {"result", NULL, PRINT_DOCUMENT, false, 0},
};

int ctl_task_remote(int argc, char **argv) {
  const struct remote_command rows[] = {
      {"list", "GET", "/v1/tasks", NULL, list_options, "items", task_columns, task_column_count, "tasks, the newest first"},
      {"cancel", "POST", "/v1/tasks/%s:cancel", "TASK", cancel_options, "task", task_columns, task_column_count,
       "ask that a task ends; a running attempt's report decides"},
      {"review", "POST", "/v1/tasks/%s:review", "TASK", review_options, "task", task_columns, task_column_count,
       "account for a task whose effect is in doubt"},
      {"retry", "POST", "/v1/tasks/%s:retry", "TASK", retry_options, "task", task_columns, task_column_count,
       "make the one successor of a failed or cancelled task"},
      {"operations", "GET", "/v1/tasks/%s/operations", "TASK", NULL, "items", operation_columns, COUNT(operation_columns),
       "who did what to it, the newest first"},
      {"operation", "GET", "/v1/tasks/%s/operations/%s", "TASK AUDIT", NULL, NULL, operation_columns, COUNT(operation_columns),
       "one of these in full"},
      {"events", "GET", "/v1/tasks/%s/events", "TASK", NULL, "items", event_columns, COUNT(event_columns),
       "its events as stored"},
      {"evidence", "GET", "/v1/tasks/%s/evidence", "TASK", NULL, "items", evidence_columns, COUNT(evidence_columns),
       "reports that came without authority"},
      {NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL},
  };
  return remote_named(rows, argc, argv);
}

/* ---- queues ---- */

static const struct print_column queue_columns[] = {
    {"id", "QUEUE", PRINT_PLAIN, false, 0},
    {"name", "NAME", PRINT_PLAIN, false, 8},
    {"paused", "PAUSED", PRINT_PLAIN, false, 0},
    {"counts.WAITING", "WAITING", PRINT_PLAIN, true, 0},
    {"counts.RUNNING", "RUNNING", PRINT_PLAIN, true, 0},
    {"counts.NEEDS_REVIEW", "REVIEW", PRINT_PLAIN, true, 0},
    {"counts.LEASED", NULL, PRINT_PLAIN, true, 0},
    {"counts.SUCCEEDED", NULL, PRINT_PLAIN, true, 0},
    {"counts.FAILED", NULL, PRINT_PLAIN, true, 0},
    {"counts.CANCELLED", NULL, PRINT_PLAIN, true, 0},
    {"oldest_waiting_at", NULL, PRINT_TIME, false, 0},
    {"revision", NULL, PRINT_PLAIN, true, 0},
    {"max_unfinished", NULL, PRINT_PLAIN, true, 0},
    {"max_running", NULL, PRINT_PLAIN, true, 0},
    {"key_concurrency", NULL, PRINT_PLAIN, true, 0},
    {"rate", NULL, PRINT_DOCUMENT, false, 0},
    {"lease_ms", NULL, PRINT_PLAIN, true, 0},
    {"namespace_id", NULL, PRINT_PLAIN, false, 0},
};
#define QUEUE_LIMITS                                                                                                  \
  {"max-unfinished", "max_unfinished", REMOTE_LIMIT, false, "N|none", "unfinished tasks that it may hold"},           \
      {"max-running", "max_running", REMOTE_LIMIT, false, "N|none", "leased and running at once"},                    \
      {"key-concurrency", "key_concurrency", REMOTE_NUMBER, false, "N", "at once with one concurrency key (1)"},      \
      {"rate", "rate", REMOTE_RATE, false, "T/MS/B|none", "T tasks in MS milliseconds, B at once: like 100/1000/20"}, \
      {"lease-ms", "lease_ms", REMOTE_NUMBER, false, "N", "length of a lease where the worker names none (30000)"},   \
      {NULL, NULL, REMOTE_TEXT, false, NULL, NULL},
static const struct remote_option queue_create_options[] = {
    {"name", "name", REMOTE_TEXT, true, "TEXT", "for people (required)"}, QUEUE_LIMITS};
static const struct remote_option queue_change_options[] = {
    {"revision", "expected_revision", REMOTE_TEXT, true, "N", "the revision that was looked at (required)"},
    {"name", "name", REMOTE_TEXT, false, "TEXT", "for people"},
    QUEUE_LIMITS};
static const struct remote_option reason_options[] = {{"reason", "reason", REMOTE_TEXT, false, "TEXT", "why"},
                                                      {NULL, NULL, REMOTE_TEXT, false, NULL, NULL}};

int ctl_queue(int argc, char **argv) {
  const struct remote_command rows[] = {
      {"create", "POST", "/v1/queues", NULL, queue_create_options, "queue", queue_columns, COUNT(queue_columns),
       "make a queue"},
      {"list", "GET", "/v1/queues", NULL, NULL, "items", queue_columns, COUNT(queue_columns), "the queues with their counts"},
      {"get", "GET", "/v1/queues/%s", "QUEUE", NULL, "queue", queue_columns, COUNT(queue_columns), "one queue"},
      {"change", "PATCH", "/v1/queues/%s", "QUEUE", queue_change_options, "queue", queue_columns, COUNT(queue_columns),
       "change its limits"},
      {"pause", "POST", "/v1/queues/%s:pause", "QUEUE", reason_options, "queue", queue_columns, COUNT(queue_columns),
       "stop assignment; running work goes on"},
      {"resume", "POST", "/v1/queues/%s:resume", "QUEUE", reason_options, "queue", queue_columns, COUNT(queue_columns),
       "assign again"},
      {NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL},
  };
  return remote_run(rows, argc, argv);
}

/* ---- applications, credentials, namespaces, audit ---- */

static const struct print_column application_columns[] = {
    {"id", "APPLICATION", PRINT_PLAIN, false, 0},    {"name", "NAME", PRINT_PLAIN, false, 8},
    {"disabled", "DISABLED", PRINT_PLAIN, false, 0}, {"unfinished", "UNFINISHED", PRINT_PLAIN, true, 0},
    {"max_unfinished", "MAX", PRINT_PLAIN, true, 0}, {"revision", "REV", PRINT_PLAIN, true, 0},
    {"namespace_id", NULL, PRINT_PLAIN, false, 0},
};
static const struct remote_option application_create_options[] = {
    {"name", "name", REMOTE_TEXT, true, "TEXT", "for people (required)"},
    {"max-unfinished", "max_unfinished", REMOTE_NUMBER, false, "N", "unfinished tasks that it may own"},
    {NULL, NULL, REMOTE_TEXT, false, NULL, NULL},
};
static const struct remote_option application_change_options[] = {
    {"revision", "expected_revision", REMOTE_TEXT, true, "N", "the revision that was looked at (required)"},
    {"name", "name", REMOTE_TEXT, false, "TEXT", "for people"},
    {"max-unfinished", "max_unfinished", REMOTE_LIMIT, false, "N|none", "unfinished tasks that it may own"},
    {"disabled", "disabled", REMOTE_BOOL, false, "true|false", "its credentials are refused"},
    {NULL, NULL, REMOTE_TEXT, false, NULL, NULL},
};

int ctl_application(int argc, char **argv) {
  const struct remote_command rows[] = {
      {"create", "POST", "/v1/applications", NULL, application_create_options, "application", application_columns,
       COUNT(application_columns), "make an application"},
      {"list", "GET", "/v1/applications", NULL, NULL, "items", application_columns, COUNT(application_columns),
       "the applications"},
      {"get", "GET", "/v1/applications/%s", "APPLICATION", NULL, "application", application_columns, COUNT(application_columns),
       "one application"},
      {"change", "PATCH", "/v1/applications/%s", "APPLICATION", application_change_options, "application", application_columns,
       COUNT(application_columns), "change its quota, or disable it"},
      {NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL},
  };
  return remote_run(rows, argc, argv);
}

static const struct print_column credential_columns[] = {
    {"id", "CREDENTIAL", PRINT_PLAIN, false, 0},
    {"name", "NAME", PRINT_PLAIN, false, 8},
    {"revoked", "REVOKED", PRINT_PLAIN, false, 0},
    {"expires_at", "EXPIRES", PRINT_TIME, false, 0},
    {"permissions", "PERMISSIONS", PRINT_DOCUMENT, false, 12},
    {"application_id", NULL, PRINT_PLAIN, false, 0},
    {"queue_ids", NULL, PRINT_DOCUMENT, false, 0},
    {"revision", NULL, PRINT_PLAIN, true, 0},
    {"namespace_id", NULL, PRINT_PLAIN, false, 0},
};
static const struct remote_option credential_create_options[] = {
    {"application", "application_id", REMOTE_TEXT, true, "ID", "whose it is (required)"},
    {"permissions", "permissions", REMOTE_LIST, true, "P,P…", "tasks:submit,tasks:read,… (required)"},
    {"name", "name", REMOTE_TEXT, false, "TEXT", "for people"},
    {"queues", "queue_ids", REMOTE_LIST, false, "ID,ID…", "only these queues (every queue of the namespace, later ones too)"},
    {"expires-at", "expires_at", REMOTE_TEXT, false, "TIME", "refused from then on"},
    {NULL, NULL, REMOTE_TEXT, false, NULL, NULL},
};

int ctl_credential(int argc, char **argv) {
  const struct remote_command rows[] = {
      {"create", "POST", "/v1/credentials", NULL, credential_create_options, "credential", credential_columns,
       COUNT(credential_columns), "make a credential; its token is shown once"},
      {"list", "GET", "/v1/credentials", NULL, NULL, "items", credential_columns, COUNT(credential_columns), "the credentials"},
      {"get", "GET", "/v1/credentials/%s", "CREDENTIAL", NULL, "credential", credential_columns, COUNT(credential_columns),
       "one credential"},
      {"rotate", "POST", "/v1/credentials/%s:rotate", "CREDENTIAL", NULL, "credential", credential_columns,
       COUNT(credential_columns), "give it a new token, shown once; the old one is refused at once"},
      {"revoke", "POST", "/v1/credentials/%s:revoke", "CREDENTIAL", NULL, "credential", credential_columns,
       COUNT(credential_columns), "refuse it from now on, for ever"},
      {NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL},
  };
  return remote_run(rows, argc, argv);
}

static const struct print_column namespace_columns[] = {{"id", "NAMESPACE", PRINT_PLAIN, false, 0},
                                                        {"name", "NAME", PRINT_PLAIN, false, 8}};
static const struct remote_option namespace_options[] = {{"name", "name", REMOTE_TEXT, true, "TEXT", "for people (required)"},
                                                         {NULL, NULL, REMOTE_TEXT, false, NULL, NULL}};

int ctl_namespace(int argc, char **argv) {
  const struct remote_command rows[] = {
      {"create", "POST", "/v1/namespaces", NULL, namespace_options, "namespace", namespace_columns, COUNT(namespace_columns),
       "make a namespace with an application and an admin credential (root only)"},
      {NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL},
  };
  return remote_run(rows, argc, argv);
}

static const struct print_column subscription_columns[] = {
    {"id", "SUBSCRIPTION", PRINT_PLAIN, false, 0},  {"name", "NAME", PRINT_PLAIN, false, 8},
    {"position", "POSITION", PRINT_PLAIN, true, 0}, {"lag", "LAG", PRINT_PLAIN, true, 0},
    {"types", "TYPES", PRINT_DOCUMENT, false, 12},  {"queue_id", NULL, PRINT_PLAIN, false, 0},
    {"task_id", NULL, PRINT_PLAIN, false, 0},       {"revision", NULL, PRINT_PLAIN, true, 0},
    {"namespace_id", NULL, PRINT_PLAIN, false, 0},
};
static const struct print_column feed_columns[] = {
    {"position", "POSITION", PRINT_PLAIN, true, 0}, {"time", "TIME", PRINT_TIME, false, 0},
    {"type", "TYPE", PRINT_PLAIN, false, 0},        {"task_id", "TASK", PRINT_PLAIN, false, 0},
    {"revision", "REV", PRINT_PLAIN, true, 0},      {"queue_id", NULL, PRINT_PLAIN, false, 0},
    {"data", "DATA", PRINT_DOCUMENT, false, 12},
};
static const struct remote_option subscription_create_options[] = {
    {"name", "name", REMOTE_TEXT, true, "TEXT", "no other of the namespace has it (required)"},
    {"from", "from", REMOTE_TEXT, true, "WHERE", "earliest, latest or a position (required)"},
    {"types", "types", REMOTE_LIST, false, "T,T…", "only events of these types: task.succeeded,task.failed,…"},
    {"queue", "queue_id", REMOTE_TEXT, false, "ID", "only of this queue"},
    {"task", "task_id", REMOTE_TEXT, false, "ID", "only of this task"},
    {NULL, NULL, REMOTE_TEXT, false, NULL, NULL},
};
static const struct remote_option subscription_read_options[] = {
    {"limit", "limit", REMOTE_PARAMETER, false, "N", "1 to 100 events (20)"},
    {"wait-ms", "wait_ms", REMOTE_PARAMETER, false, "N", "wait so long for the first one (0)"},
    {NULL, NULL, REMOTE_TEXT, false, NULL, NULL},
};
static const struct remote_option subscription_ack_options[] = {
    {"position", "position", REMOTE_TEXT, true, "N", "everything up to here has been handled (required)"},
    {NULL, NULL, REMOTE_TEXT, false, NULL, NULL},
};

int ctl_subscription(int argc, char **argv) {
  const struct remote_command rows[] = {
      {"create", "POST", "/v1/subscriptions", NULL, subscription_create_options, "subscription", subscription_columns,
       COUNT(subscription_columns), "make a subscription"},
      {"list", "GET", "/v1/subscriptions", NULL, NULL, "items", subscription_columns, COUNT(subscription_columns),
       "the subscriptions with their lag"},
      {"get", "GET", "/v1/subscriptions/%s", "SUBSCRIPTION", NULL, "subscription", subscription_columns,
       COUNT(subscription_columns), "one subscription"},
      {"read", "GET", "/v1/subscriptions/%s/events", "SUBSCRIPTION", subscription_read_options, "items", feed_columns,
       COUNT(feed_columns), "the events behind its position; moves nothing"},
      {"ack", "POST", "/v1/subscriptions/%s:ack", "SUBSCRIPTION", subscription_ack_options, "subscription",
       subscription_columns, COUNT(subscription_columns), "move it forward"},
      {"delete", "POST", "/v1/subscriptions/%s:delete", "SUBSCRIPTION", NULL, "subscription", subscription_columns,
       COUNT(subscription_columns), "end it; its name is free again"},
      {NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL},
  };
  return remote_run(rows, argc, argv);
}

static const struct print_column audit_columns[] = {
    {"created_at", "TIME", PRINT_TIME, false, 0},
    {"action", "ACTION", PRINT_PLAIN, false, 0},
    {"target_id", "TARGET", PRINT_PLAIN, false, 0},
    {"actor_id", "ACTOR", PRINT_PLAIN, false, 8},
    {"id", NULL, PRINT_PLAIN, false, 0},
    {"operation_id", NULL, PRINT_PLAIN, false, 0},
    {"reason", NULL, PRINT_PLAIN, false, 0},
    {"before", NULL, PRINT_DOCUMENT, false, 0},
    {"after", NULL, PRINT_DOCUMENT, false, 0},
};
static const struct remote_option audit_options[] = {{"target", "target_id", REMOTE_PARAMETER, false, "ID", "of this object"},
                                                     {NULL, NULL, REMOTE_TEXT, false, NULL, NULL}};

int ctl_audit(int argc, char **argv) {
  const struct remote_command rows[] = {
      {"list", "GET", "/v1/audit", NULL, audit_options, "items", audit_columns, COUNT(audit_columns),
       "administrative operations, the newest first"},
      {NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL},
  };
  return remote_run(rows, argc, argv);
}
