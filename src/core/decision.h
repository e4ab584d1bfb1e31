/* The decision table (schema/semantics.md "Decisions"): from durable facts to what becomes of the task. One pure function over
 * one table of rows. */
#ifndef ORBIT_CORE_DECISION_H
#define ORBIT_CORE_DECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "core/event.h"
#include "core/words.h"

/* What happened, reported with authority or observed by Orbit. */
enum fact {
  FACT_SUCCEEDED = 1,
  FACT_FAILED, /* retryable=false */
  FACT_FAILED_RETRYABLE,
  FACT_UNKNOWN,         /* reported, or a granted attempt ended without a report */
  FACT_CANCELLED,       /* confirmed after a cancel request */
  FACT_LEASE_EXPIRED,   /* before the start grant */
  FACT_RELEASED,        /* before the start grant, by its worker */
  FACT_WAITING_EXPIRED, /* a waiting task reached a deadline */
  FACT_CANCEL,          /* a cancel request ends a waiting task, or a leased one that had no start grant */
};

struct decision_input {
  enum fact fact;
  enum recovery_safety recovery_safety;
  bool effect_uncertain; /* so far */
  bool cancel_requested;
  uint32_t attempt_count; /* claims consumed, this one included */
  uint32_t max_attempts;
  uint64_t initial_delay_ms, max_delay_ms;
  struct id attempt_id; /* draws the jitter; unused where no attempt ended */
  int64_t deadline_at;
  int64_t start_deadline_at; /* 0: none */
  int64_t now_us;
};

struct decision_result {
  enum task_state state;
  enum decision decision;
  bool effect_uncertain;
  bool has_delay; /* a retry was considered: delay and next time were computed */
  uint64_t delay_ms;
  int64_t next_available_at; /* now + delay */
};

struct decision_result decision_make(const struct decision_input *input);

/* What a decision event holds, in one shape for its five kinds. */
struct decision_record {
  enum task_state state;
  enum decision decision;
  uint64_t attempt_count, max_attempts;
  bool effect_uncertain;
  uint64_t delay_ms;
  int64_t next_available_at; /* 0: none */
};
/* False when the event is not a decision. */
bool decision_of_event(const struct event *event, struct decision_record *ret_record);

#endif
