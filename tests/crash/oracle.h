/* What the crash campaign knows from outside: what it sent, what it was told, and what the log must therefore hold after a
 * crash. */
#ifndef ORBIT_TESTS_CRASH_ORACLE_H
#define ORBIT_TESTS_CRASH_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "core/words.h"

/* The properties that are judged; each is a test case. */
enum property {
  ACKNOWLEDGED_IS_RECOVERED, /* every answer that came is true in the log and in the server after the crash */
  RECOVERED_WAS_SENT,        /* the log holds no task, start or report that nobody sent, and none twice */
  REPEAT_GETS_FIRST_ANSWER,  /* the same identity with the same content: same task, deduplicated; other content: 409 */
  FOLD_IS_SOUND,             /* the log folds, its invariants hold, and two folds are the same */
  ATTEMPTS_COME_BACK,        /* a worker that comes back is told of every attempt it holds */
  WORK_COMES_TO_ITS_END,     /* nothing is lost: everything that was submitted is decided in the end */
  FAILED_DISK_STOPS,         /* after a write or sync that failed, the process stops and says why */
  SERVES_AGAIN,              /* it goes on after a pause; a full disk refuses new work alone, until there is room */
  property_count
};

struct submission {
  bool sent;
  bool known;        /* an answer or an assignment named its id */
  bool acknowledged; /* its submission was answered */
  bool large;        /* its payload is */
  bool lies_ahead;   /* it is not to run before somebody has cancelled it */
  struct id id;
  uint64_t revision; /* the newest that an answer told, and the state that it led to */
  enum task_state state;
};

enum step { STEP_ASK, STEP_WORK, STEP_REPORT, STEP_OVER };

/* One attempt, as its worker sees it. Messages keep their ids over repeats and crashes. */
struct attempt_fact {
  struct id id;
  uint64_t task; /* its submission's number */
  char epoch[21];
  enum step step;
  bool under_way;  /* its message was sent on this connection */
  bool gives_back; /* task.release instead of task.start */
  bool start_sent, start_answered, report_sent, report_answered;
  struct id start_message, report_message;
  enum outcome outcome;
  bool retryable;
  bool in_log_started, in_log_reported; /* while a log is judged */
};

struct oracle {
  struct submission *submissions; /* by number */
  uint64_t submission_count, submission_capacity;
  uint64_t decided;              /* of them, those that are decided as far as answers told */
  struct attempt_fact *attempts; /* in the order in which they were heard of; indexes stay */
  uint64_t attempt_count, attempt_capacity;
  uint64_t violations[property_count];
  uint64_t events, commits; /* of the log judged last */
};

void oracle_clear(struct oracle *oracle);
/* Counts a violation and says it on stderr. */
void oracle_violated(struct oracle *oracle, enum property property, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A new submission; returns its number. */
uint64_t oracle_submit(struct oracle *oracle);
/* Text of its business key and idempotency key: "crash-N". */
enum { crash_key_size = 32 };
void crash_key(uint64_t number, char out[crash_key_size]);
/* Something named the task of a submission: the id must be the one that was named before. */
void oracle_named(struct oracle *oracle, uint64_t number, const struct id *id);
/* An answer told that the task was in this state at this revision. */
void oracle_learn(struct oracle *oracle, uint64_t number, uint64_t revision, enum task_state state);
bool submission_is_decided(const struct submission *submission); /* nothing more will happen to it by itself */

/* A new attempt of a submission's task; returns its index. */
uint64_t oracle_attempt(struct oracle *oracle, const struct id *id, uint64_t task);

/* Reads the log of a stopped or killed server, read-only, and judges it against all of this. */
void oracle_judge_log(struct oracle *oracle, const char *data);

#endif
