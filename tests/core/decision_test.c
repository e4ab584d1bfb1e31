/* The decision table: each row, each boundary, and every combination against the rules in plain words. */
#include "core/decision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_text.h"
#include "core/backoff.h"
#include "support/support.h"

#define I RECOVERY_IDEMPOTENT
#define R RECOVERY_RECONCILE_ONLY
enum { no = 0, yes = 1 };

static const int64_t now = INT64_C(1789603200000000);
/* Where a deadline lies as seen from the next attempt's time, µs: it must be later than that. */
enum { fits = 1, equal = 0, past = -1 };
static const int64_t none = INT64_MIN;

struct decision_case {
  enum fact fact;
  enum recovery_safety safety;
  int uncertain, cancel;
  uint32_t count, max;
  int64_t deadline, start_deadline; /* relative to the next attempt's time */
  enum task_state state;
  enum decision decision;
  int uncertain_after, delayed;
};

static struct decision_input input_of(const struct decision_case *c, uint64_t initial, uint64_t cap) {
  struct decision_input input = {.fact = c->fact,
                                 .recovery_safety = c->safety,
                                 .effect_uncertain = c->uncertain,
                                 .cancel_requested = c->cancel,
                                 .attempt_count = c->count,
                                 .max_attempts = c->max,
                                 .initial_delay_ms = initial,
                                 .max_delay_ms = cap,
                                 .attempt_id = {{1, 2, 3}},
                                 .now_us = now};
  uint64_t delay = c->count == 0 ? 0 : backoff_delay_ms(backoff_base_ms(initial, cap, c->count), &input.attempt_id);
  int64_t next = c->fact == FACT_WAITING_EXPIRED ? now : now + (int64_t)delay * us_per_ms;
  input.deadline_at = next + c->deadline;
  input.start_deadline_at = c->start_deadline == none ? 0 : next + c->start_deadline;
  return input;
}

#define WAITING TASK_WAITING
#define SUCCEEDED TASK_SUCCEEDED
#define FAILED TASK_FAILED
#define NEEDS_REVIEW TASK_NEEDS_REVIEW
#define CANCELLED TASK_CANCELLED

/* fact, safety, uncertain, cancel requested, claims of budget, deadline, start deadline -> state, code, uncertain, delay drawn
 */
static const struct decision_case rows[] = {
    /* a success ends everything, whatever was in doubt and whatever the hour */
    {FACT_SUCCEEDED, R, no, no, 1, 1, fits, none, SUCCEEDED, DECISION_SUCCEEDED, no, no},
    {FACT_SUCCEEDED, I, yes, no, 3, 3, fits, none, SUCCEEDED, DECISION_SUCCEEDED, no, no},
    {FACT_SUCCEEDED, I, yes, yes, 1, 3, past, past, SUCCEEDED, DECISION_SUCCEEDED, no, no},

    /* a failure that is not retryable */
    {FACT_FAILED, R, no, no, 1, 3, fits, none, FAILED, DECISION_NON_RETRYABLE_FAILURE, no, no},
    {FACT_FAILED, I, no, no, 1, 3, fits, none, FAILED, DECISION_NON_RETRYABLE_FAILURE, no, no},
    {FACT_FAILED, I, yes, no, 1, 3, fits, none, NEEDS_REVIEW, DECISION_NON_RETRYABLE_FAILURE, yes, no},
    {FACT_FAILED, R, no, yes, 1, 3, fits, none, FAILED, DECISION_NON_RETRYABLE_FAILURE, no, no},
    {FACT_FAILED, I, yes, yes, 1, 3, fits, none, NEEDS_REVIEW, DECISION_NON_RETRYABLE_FAILURE, yes, no},

    /* a retryable one, nothing in doubt */
    {FACT_FAILED_RETRYABLE, R, no, no, 1, 3, fits, none, WAITING, DECISION_RETRYABLE_FAILURE, no, yes},
    {FACT_FAILED_RETRYABLE, R, no, no, 2, 3, fits, fits, WAITING, DECISION_RETRYABLE_FAILURE, no, yes},
    {FACT_FAILED_RETRYABLE, R, no, no, 3, 3, fits, none, FAILED, DECISION_ATTEMPT_LIMIT, no, no},
    {FACT_FAILED_RETRYABLE, R, no, no, 1, 3, equal, none, FAILED, DECISION_DEADLINE_EXCEEDED, no, yes},
    {FACT_FAILED_RETRYABLE, R, no, no, 1, 3, past, none, FAILED, DECISION_DEADLINE_EXCEEDED, no, yes},
    {FACT_FAILED_RETRYABLE, R, no, no, 1, 3, fits, equal, FAILED, DECISION_START_DEADLINE_EXCEEDED, no, yes},
    {FACT_FAILED_RETRYABLE, R, no, no, 1, 3, fits, past, FAILED, DECISION_START_DEADLINE_EXCEEDED, no, yes},
    {FACT_FAILED_RETRYABLE, R, no, yes, 1, 3, fits, none, FAILED, DECISION_CANCEL_REQUESTED, no, no},
    /* several obstacles: cancel, then budget, then deadline, then start deadline */
    {FACT_FAILED_RETRYABLE, R, no, yes, 3, 3, equal, equal, FAILED, DECISION_CANCEL_REQUESTED, no, no},
    {FACT_FAILED_RETRYABLE, R, no, no, 3, 3, equal, equal, FAILED, DECISION_ATTEMPT_LIMIT, no, no},
    {FACT_FAILED_RETRYABLE, R, no, no, 1, 3, equal, equal, FAILED, DECISION_DEADLINE_EXCEEDED, no, yes},

    /* a retryable one with something in doubt from before */
    {FACT_FAILED_RETRYABLE, I, yes, no, 1, 3, fits, none, WAITING, DECISION_RETRYABLE_FAILURE, yes, yes},
    {FACT_FAILED_RETRYABLE, I, yes, no, 3, 3, fits, none, NEEDS_REVIEW, DECISION_ATTEMPT_LIMIT, yes, no},
    {FACT_FAILED_RETRYABLE, I, yes, no, 1, 3, equal, none, NEEDS_REVIEW, DECISION_DEADLINE_EXCEEDED, yes, yes},
    {FACT_FAILED_RETRYABLE, I, yes, no, 1, 3, fits, equal, NEEDS_REVIEW, DECISION_START_DEADLINE_EXCEEDED, yes, yes},
    {FACT_FAILED_RETRYABLE, I, yes, yes, 1, 3, fits, none, NEEDS_REVIEW, DECISION_CANCEL_REQUESTED, yes, no},
    {FACT_FAILED_RETRYABLE, R, yes, no, 1, 3, fits, none, NEEDS_REVIEW, DECISION_RECONCILIATION_REQUIRED, yes, no},
    {FACT_FAILED_RETRYABLE, R, yes, yes, 3, 3, equal, none, NEEDS_REVIEW, DECISION_RECONCILIATION_REQUIRED, yes, no},

    /* unknown, or silence after the start grant */
    {FACT_UNKNOWN, R, no, no, 1, 3, fits, none, NEEDS_REVIEW, DECISION_RECONCILIATION_REQUIRED, yes, no},
    {FACT_UNKNOWN, R, yes, no, 3, 3, equal, none, NEEDS_REVIEW, DECISION_RECONCILIATION_REQUIRED, yes, no},
    {FACT_UNKNOWN, R, no, yes, 1, 3, fits, none, NEEDS_REVIEW, DECISION_RECONCILIATION_REQUIRED, yes, no},
    {FACT_UNKNOWN, I, no, no, 1, 3, fits, none, WAITING, DECISION_IDEMPOTENT_UNKNOWN, yes, yes},
    {FACT_UNKNOWN, I, yes, no, 2, 3, fits, fits, WAITING, DECISION_IDEMPOTENT_UNKNOWN, yes, yes},
    {FACT_UNKNOWN, I, no, no, 3, 3, fits, none, NEEDS_REVIEW, DECISION_ATTEMPT_LIMIT, yes, no},
    {FACT_UNKNOWN, I, no, no, 1, 3, equal, none, NEEDS_REVIEW, DECISION_DEADLINE_EXCEEDED, yes, yes},
    {FACT_UNKNOWN, I, no, no, 1, 3, fits, equal, NEEDS_REVIEW, DECISION_START_DEADLINE_EXCEEDED, yes, yes},
    {FACT_UNKNOWN, I, no, yes, 1, 3, fits, none, NEEDS_REVIEW, DECISION_CANCEL_REQUESTED, yes, no},

    /* the lease ran out before the start grant: no effect is possible, the attempt stays consumed */
    {FACT_LEASE_EXPIRED, R, no, no, 1, 3, fits, none, WAITING, DECISION_UNSTARTED_LEASE_EXPIRED, no, yes},
    {FACT_LEASE_EXPIRED, R, no, no, 3, 3, fits, none, FAILED, DECISION_ATTEMPT_LIMIT, no, no},
    {FACT_LEASE_EXPIRED, R, no, no, 1, 3, equal, none, FAILED, DECISION_DEADLINE_EXCEEDED, no, yes},
    {FACT_LEASE_EXPIRED, R, no, no, 1, 3, fits, equal, FAILED, DECISION_START_DEADLINE_EXCEEDED, no, yes},
    {FACT_LEASE_EXPIRED, I, yes, no, 1, 3, fits, none, WAITING, DECISION_UNSTARTED_LEASE_EXPIRED, yes, yes},
    {FACT_LEASE_EXPIRED, I, yes, no, 3, 3, fits, none, NEEDS_REVIEW, DECISION_ATTEMPT_LIMIT, yes, no},
    {FACT_LEASE_EXPIRED, I, yes, no, 1, 3, equal, none, NEEDS_REVIEW, DECISION_DEADLINE_EXCEEDED, yes, yes},
    {FACT_LEASE_EXPIRED, R, yes, no, 1, 3, fits, none, NEEDS_REVIEW, DECISION_RECONCILIATION_REQUIRED, yes, no},

    /* given back before the start grant: the same, under its own name */
    {FACT_RELEASED, R, no, no, 1, 3, fits, none, WAITING, DECISION_UNSTARTED_RELEASED, no, yes},
    {FACT_RELEASED, R, no, no, 3, 3, fits, none, FAILED, DECISION_ATTEMPT_LIMIT, no, no},
    {FACT_RELEASED, R, no, no, 1, 3, equal, none, FAILED, DECISION_DEADLINE_EXCEEDED, no, yes},
    {FACT_RELEASED, I, yes, no, 1, 3, fits, none, WAITING, DECISION_UNSTARTED_RELEASED, yes, yes},
    {FACT_RELEASED, I, yes, no, 1, 3, fits, equal, NEEDS_REVIEW, DECISION_START_DEADLINE_EXCEEDED, yes, yes},
    {FACT_RELEASED, R, yes, no, 1, 3, fits, none, NEEDS_REVIEW, DECISION_RECONCILIATION_REQUIRED, yes, no},

    /* a waiting task reached a deadline; deadline_at has the word when both have come */
    {FACT_WAITING_EXPIRED, R, no, no, 0, 3, equal, none, FAILED, DECISION_DEADLINE_EXCEEDED, no, no},
    {FACT_WAITING_EXPIRED, R, no, no, 0, 3, past, none, FAILED, DECISION_DEADLINE_EXCEEDED, no, no},
    {FACT_WAITING_EXPIRED, R, no, no, 0, 3, fits, equal, FAILED, DECISION_START_DEADLINE_EXCEEDED, no, no},
    {FACT_WAITING_EXPIRED, R, no, no, 1, 3, equal, equal, FAILED, DECISION_DEADLINE_EXCEEDED, no, no},
    {FACT_WAITING_EXPIRED, I, yes, no, 1, 3, equal, none, NEEDS_REVIEW, DECISION_DEADLINE_EXCEEDED, yes, no},
    {FACT_WAITING_EXPIRED, I, yes, no, 1, 3, fits, past, NEEDS_REVIEW, DECISION_START_DEADLINE_EXCEEDED, yes, no},

    /* cancelled: confirmed by the worker of a running attempt, or at once where nothing runs */
    {FACT_CANCELLED, R, no, yes, 1, 3, fits, none, CANCELLED, DECISION_CANCEL_CONFIRMED, no, no},
    {FACT_CANCELLED, I, yes, yes, 2, 3, fits, none, NEEDS_REVIEW, DECISION_CANCEL_CONFIRMED, yes, no},
    {FACT_CANCEL, R, no, no, 0, 3, fits, none, CANCELLED, DECISION_CANCEL_REQUESTED, no, no},
    {FACT_CANCEL, I, no, no, 3, 3, fits, none, CANCELLED, DECISION_CANCEL_REQUESTED, no, no},
    {FACT_CANCEL, I, yes, no, 1, 3, fits, none, NEEDS_REVIEW, DECISION_CANCEL_REQUESTED, yes, no},
};

static void check(const struct decision_case *c, uint64_t initial, uint64_t cap, size_t at) {
  struct decision_input input = input_of(c, initial, cap);
  struct decision_result result = decision_make(&input);
  if (result.state != c->state || result.decision != c->decision || result.effect_uncertain != c->uncertain_after ||
      result.has_delay != c->delayed)
    fail_msg("row %zu (delays %llu, %llu): %s %s uncertain=%d delay=%d", at, (unsigned long long)initial,
             (unsigned long long)cap, task_state_text(result.state), decision_text(result.decision), result.effect_uncertain,
             result.has_delay);
  if (!result.has_delay) {
    assert_int_equal(result.delay_ms, 0);
    assert_int_equal(result.next_available_at, 0);
    return;
  }
  uint64_t base = backoff_base_ms(initial, cap, c->count);
  assert_int_equal(result.delay_ms, backoff_delay_ms(base, &input.attempt_id));
  assert_int_equal(result.next_available_at, now + (int64_t)result.delay_ms * us_per_ms);
}

static void every_row(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    check(&rows[i], 0, 0, i);
    check(&rows[i], 500, 2000, i);
    check(&rows[i], 1, 86400000, i);
    check(&rows[i], 86400000, 86400000, i);
  }
}

/* The rules once more, as prose would have them; written apart from the table. */
static void expect(const struct decision_case *c, struct decision_case *ret) {
  bool budget = c->count < c->max;
  bool in_time = c->deadline > 0 && (c->start_deadline == none || c->start_deadline > 0);
  bool may_retry = !c->cancel && budget && in_time;
  enum decision obstacle = c->cancel          ? DECISION_CANCEL_REQUESTED
                           : !budget          ? DECISION_ATTEMPT_LIMIT
                           : c->deadline <= 0 ? DECISION_DEADLINE_EXCEEDED
                                              : DECISION_START_DEADLINE_EXCEEDED;
  bool barred = c->safety == R && (c->uncertain || c->fact == FACT_UNKNOWN); /* only IDEMPOTENT goes on in doubt */
  enum decision retried = c->fact == FACT_FAILED_RETRYABLE ? DECISION_RETRYABLE_FAILURE
                          : c->fact == FACT_UNKNOWN        ? DECISION_IDEMPOTENT_UNKNOWN
                          : c->fact == FACT_RELEASED       ? DECISION_UNSTARTED_RELEASED
                                                           : DECISION_UNSTARTED_LEASE_EXPIRED;
  *ret = *c;
  ret->delayed = no;
  ret->uncertain_after = c->uncertain || c->fact == FACT_UNKNOWN;
  ret->state = ret->uncertain_after ? NEEDS_REVIEW : FAILED;
  switch (c->fact) {
    case FACT_SUCCEEDED:
      ret->state = SUCCEEDED, ret->decision = DECISION_SUCCEEDED, ret->uncertain_after = no;
      break;
    case FACT_FAILED:
      ret->decision = DECISION_NON_RETRYABLE_FAILURE;
      break;
    case FACT_CANCELLED:
    case FACT_CANCEL:
      ret->state = c->uncertain ? NEEDS_REVIEW : CANCELLED;
      ret->decision = c->fact == FACT_CANCEL ? DECISION_CANCEL_REQUESTED : DECISION_CANCEL_CONFIRMED;
      break;
    case FACT_WAITING_EXPIRED:
      ret->decision = c->deadline <= 0 ? DECISION_DEADLINE_EXCEEDED : DECISION_START_DEADLINE_EXCEEDED;
      break;
    default:
      ret->decision = barred ? DECISION_RECONCILIATION_REQUIRED : may_retry ? retried : obstacle;
      if (!barred && may_retry) ret->state = WAITING;
      ret->delayed = !barred && !c->cancel && budget;
  }
}

static void every_combination(void **state) {
  (void)state;
  static const int64_t gaps[] = {past, equal, fits, INT64_C(3600000000)};
  static const uint32_t counts[][2] = {{1, 1}, {1, 2}, {2, 2}, {99, 100}, {100, 100}};
  unsigned checked = 0;
  for (unsigned bits = 0; bits < 8; bits++)
    for (enum fact fact = FACT_SUCCEEDED; fact <= FACT_CANCEL; fact++)
      for (unsigned k = 0; k < 5; k++)
        for (unsigned d = 0; d < 4; d++)
          for (unsigned s = 0; s < 5; s++) {
            struct decision_case c = {.fact = fact,
                                      .safety = bits & 1 ? I : R,
                                      .uncertain = bits >> 1 & 1,
                                      .cancel = bits >> 2 & 1,
                                      .count = counts[k][0],
                                      .max = counts[k][1],
                                      .deadline = gaps[d],
                                      .start_deadline = s < 4 ? gaps[s] : none};
            expect(&c, &c);
            check(&c, 500, 2000, checked);
            check(&c, 86400000, 86400000, checked++);
          }
  assert_int_equal(checked, 8 * 9 * 5 * 4 * 5);
}

/* ---- the document ---- */

static const char *const fact_texts[] = {
    [FACT_SUCCEEDED] = "succeeded",
    [FACT_FAILED] = "failed",
    [FACT_FAILED_RETRYABLE] = "failed, retryable",
    [FACT_UNKNOWN] = "unknown",
    [FACT_CANCELLED] = "cancelled",
    [FACT_LEASE_EXPIRED] = "lease expired unstarted",
    [FACT_RELEASED] = "released unstarted",
    [FACT_WAITING_EXPIRED] = "waiting task out of time",
    [FACT_CANCEL] = "cancel of a waiting or leased task",
};

/* A cell fits what it names, and everything when it says "any". */
static bool cell_fits(const char *cell, const char *text) { return strcmp(cell, "any") == 0 || strcmp(cell, text) == 0; }
static const char *yes_text(bool value) { return value ? "yes" : "no"; }

/* Every case that fits the row must come out as the row says. Returns how many there were. */
static unsigned check_document_row(char cells[7][64]) {
  unsigned count = 0;
  for (enum fact fact = FACT_SUCCEEDED; fact <= FACT_CANCEL; fact++) {
    if (strcmp(cells[0], fact_texts[fact]) != 0) continue;
    for (unsigned bits = 0; bits < 32; bits++) {
      struct decision_case c = {.fact = fact,
                                .safety = bits & 1 ? I : R,
                                .uncertain = bits >> 1 & 1,
                                .cancel = bits >> 2 & 1,
                                .count = bits & 8 ? 3 : 1,
                                .max = 3,
                                .deadline = bits & 16 ? equal : fits,
                                .start_deadline = none};
      if (fact == FACT_WAITING_EXPIRED && !(bits & 16)) c.start_deadline = equal; /* else it would not be out of time */
      bool may_retry = fact != FACT_WAITING_EXPIRED && !c.cancel && c.count < c.max && c.deadline > 0;
      if (!cell_fits(cells[1], recovery_safety_text(c.safety)) || !cell_fits(cells[2], yes_text(c.uncertain)) ||
          !cell_fits(cells[3], yes_text(may_retry)))
        continue;
      struct decision_input input = input_of(&c, 500, 2000);
      struct decision_result result = decision_make(&input);
      const char *obstacle = fact == FACT_WAITING_EXPIRED ? (bits & 16 ? "DEADLINE_EXCEEDED" : "START_DEADLINE_EXCEEDED")
                             : c.cancel                   ? "CANCEL_REQUESTED"
                             : c.count == c.max           ? "ATTEMPT_LIMIT"
                                                          : "DEADLINE_EXCEEDED";
      assert_string_equal(task_state_text(result.state), cells[4]);
      assert_string_equal(decision_text(result.decision), strcmp(cells[5], "obstacle") == 0 ? obstacle : cells[5]);
      assert_string_equal(yes_text(result.effect_uncertain), cells[6]);
      count++;
    }
  }
  return count;
}

static void the_document_says_the_same(void **state) {
  (void)state;
  FILE *page = fopen(ORBIT_SOURCE_DIR "/schema/semantics.md", "r");
  char line[400], cells[7][64];
  unsigned document_rows = 0, cases = 0;
  assert_non_null(page);
  while (fgets(line, sizeof line, page) != NULL) {
    if (sscanf(line, "| %63[^|] | %63[^|] | %63[^|] | %63[^|] | %63[^|] | %63[^|] | %63[^|] |", cells[0], cells[1], cells[2],
               cells[3], cells[4], cells[5], cells[6]) != 7)
      continue;
    for (unsigned i = 0; i < 7; i++) cells[i][strcspn(cells[i], "|")] = 0;
    for (unsigned i = 0; i < 7; i++)
      for (size_t size = strlen(cells[i]); size > 0 && cells[i][size - 1] == ' '; size--) cells[i][size - 1] = 0;
    unsigned count = check_document_row(cells);
    document_rows += count > 0;
    cases += count;
  }
  (void)fclose(page);
  assert_int_equal(document_rows, 27); /* as many as the program has */
  assert_int_equal(cases, 9 * 32);     /* each case fits exactly one */
}

static void largest_numbers_do_not_overflow(void **state) {
  (void)state;
  struct decision_input input = {.fact = FACT_FAILED_RETRYABLE,
                                 .recovery_safety = R,
                                 .attempt_count = 1,
                                 .max_attempts = UINT32_MAX,
                                 .initial_delay_ms = UINT64_MAX,
                                 .max_delay_ms = UINT64_MAX,
                                 .deadline_at = INT64_MAX,
                                 .now_us = time_us_max};
  struct decision_result result = decision_make(&input);
  assert_int_equal(result.state, FAILED); /* a time that cannot be told is too late */
  assert_int_equal(result.decision, DECISION_DEADLINE_EXCEEDED);
  assert_false(result.has_delay);

  input.attempt_count = UINT32_MAX - 1;
  input.initial_delay_ms = input.max_delay_ms = 86400000;
  input.deadline_at = time_us_max;
  input.now_us = time_us_max - 1;
  result = decision_make(&input);
  assert_int_equal(result.decision, DECISION_DEADLINE_EXCEEDED);
  assert_true(result.has_delay && result.next_available_at > time_us_max);
}

static void hundred_attempts_with_the_largest_delays(void **state) {
  (void)state;
  int64_t at = now;
  for (uint32_t count = 1; count <= 100; count++) {
    struct decision_input input = {.fact = FACT_UNKNOWN,
                                   .recovery_safety = I,
                                   .effect_uncertain = count > 1,
                                   .attempt_count = count,
                                   .max_attempts = 100,
                                   .initial_delay_ms = 86400000,
                                   .max_delay_ms = 86400000,
                                   .attempt_id = {{(uint8_t)count, 1}},
                                   .deadline_at = now + INT64_C(101) * 86400 * 1000000,
                                   .now_us = at};
    struct decision_result result = decision_make(&input);
    assert_true(result.effect_uncertain);
    if (count == 100) {
      assert_int_equal(result.state, NEEDS_REVIEW);
      assert_int_equal(result.decision, DECISION_ATTEMPT_LIMIT);
      break;
    }
    assert_int_equal(result.state, WAITING);
    assert_in_range(result.delay_ms, 43200000, 86400000);
    at = result.next_available_at;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_row),
      cmocka_unit_test(every_combination),
      cmocka_unit_test(the_document_says_the_same),
      cmocka_unit_test(largest_numbers_do_not_overflow),
      cmocka_unit_test(hundred_attempts_with_the_largest_delays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
