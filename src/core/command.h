/* What people, producers and workers ask for, and what Orbit asks of itself. Commands are values; their texts are spans
 * borrowed from whoever made the command (a request's body) and must live until the command is answered. Ids of new objects
 * come in with the command, so that deciding stays pure. */
#ifndef ORBIT_CORE_COMMAND_H
#define ORBIT_CORE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/id.h"
#include "core/words.h"

/* Who asks: the authenticated credential, by value. */
struct principal {
  struct id credential_id;
  struct id application_id;
  struct id namespace_id;
  uint64_t permissions; /* expanded */
};

/* The operation identity and the meaning's digest (schema/semantics.md "Receipts"). identity zero: none (reads, renewals). */
struct operation {
  struct id identity;
  struct id digest;
};

struct submit_command {
  struct id queue_id;
  struct bytes handler, handler_version, payload_version;
  struct bytes payload;          /* JSON without outside white space */
  struct bytes business_key;     /* data NULL: absent */
  struct bytes concurrency_key;  /* data NULL: absent */
  uint64_t task_timeout_ms;
  int64_t available_at;          /* 0: absent */
  int64_t start_deadline_at;     /* 0: absent */
  enum recovery_safety recovery_safety;
  uint32_t max_attempts;
  uint32_t initial_delay_ms, max_delay_ms;
  uint32_t attempt_timeout_ms;   /* filled with task_timeout_ms when omitted */
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
  enum outcome outcome;     /* SUCCEEDED or FAILED */
  struct bytes result;      /* JSON */
  struct id result_digest;
};

struct retry_command {
  struct id task_id;
  uint64_t expected_revision;
  struct bytes reason, evidence_ref;
  uint64_t task_timeout_ms;
  int64_t available_at;      /* 0: absent */
  int64_t start_deadline_at; /* 0: absent */
};

enum command_kind {
  COMMAND_SUBMIT = 1,
  COMMAND_GET_TASK,      /* read */
  COMMAND_GET_LOG_STATE, /* read: position, for /v1/info */
  COMMAND_HELLO,         /* a worker session's first message; no event */
  COMMAND_CAPACITY,
  COMMAND_DRAIN,
  COMMAND_BYE,           /* the session's socket is gone; no answer is expected by anybody, but the ticket returns */
  COMMAND_START,
  COMMAND_RENEW,
  COMMAND_FINISH,
  COMMAND_RELEASE,
  COMMAND_CANCEL,
  COMMAND_REVIEW,
  COMMAND_RETRY,
  COMMAND_KIND_COUNT
};

struct command {
  enum command_kind kind;
  struct principal who;
  struct operation operation;
  uint64_t session; /* worker commands: the channel's session number; 0 else */
  union {
    struct submit_command submit;
    struct id task_id; /* COMMAND_GET_TASK */
    struct hello_command hello;
    struct capacity_command capacity;
    struct id message_id; /* COMMAND_DRAIN */
    struct attempt_ref ref; /* START, RENEW, RELEASE */
    struct finish_command finish;
    struct cancel_command cancel;
    struct review_command review;
    struct retry_command retry;
  } as;
};

const char *command_kind_text(enum command_kind kind); /* "task.submit", "task.start", … for operations, audit and metrics */

#endif
