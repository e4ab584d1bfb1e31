/* What a handler says, and the task.finish that is made of it. */
#ifndef ORBIT_SDK_REPORT_H
#define ORBIT_SDK_REPORT_H

#include "base/bytes.h"
#include "base/id.h"
#include "sdk.h"

struct orbit_report {
  enum orbit_outcome outcome;
  bool retryable;
  const char *code;       /* static or in arena; NULL: the handler said nothing */
  const char *message;    /* NULL: none */
  struct buffer document; /* result or details, without outside white space; empty: none */
  struct sdk_arena arena;
  const struct orbit_assignment *assignment; /* whose report it is */
};

void sdk_report_init(struct orbit_report *report, const struct orbit_assignment *assignment);
void sdk_report_clear(struct orbit_report *report);

/* Once the handler has returned: makes the report what will be sent. An outcome that is not the one returned, or none, is
 * UNKNOWN; so is everything when `lost` (the lease was over), with what the handler had said as details. */
void sdk_report_settle(struct orbit_report *report, enum orbit_outcome returned, bool lost);
/* Replaces a report that Orbit does not take by an UNKNOWN with Orbit's words. */
void sdk_report_replace(struct orbit_report *report, const char *code, struct bytes message);

struct sdk_attempt_name {
  struct id task_id, attempt_id;
  uint64_t epoch;
};
/* Appends the whole message. */
void sdk_finish_write(struct buffer *out, const struct id *message_id, const struct sdk_attempt_name *attempt,
                      const struct orbit_report *report);

#endif
