/* orbit-crash: a server under load is broken again and again, and nothing that was ever answered may be lost, nothing may
 * happen that was not asked for. Without arguments by kill -9; with "faults" in all ways that campaign.h lists, by way of a
 * library between the server and its log; with "full-disk" by a small file system of its own that is filled. CRASH_ROUNDS
 * (10, 7 and 1) and ORBIT_TEST_SEED in the environment. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "campaign.h"
#include "support/support.h"

enum { exit_misuse = 2 };

struct plan {
  const char *name;
  unsigned breaks, rounds, rounds_max; /* each full disk makes the log longer, and the small one is small */
  bool small_disk;
};

static const struct plan plans[] = {
    {"kill9", BREAKS_KILL, 10, 100000, false},
    {"faults", BREAKS_ALL, break_kind_count, 100000, false}, /* each way once */
    {"full-disk", BREAKS_FULL, 1, 2, true},
};

static struct campaign campaign;
static struct fault fault;
static enum status ran;
static unsigned long rounds;
static const struct plan *plan = &plans[0];

static int run(void **state) {
  const char *text = getenv("CRASH_ROUNDS");
  rounds = text != NULL && text[0] != '\0' ? strtoul(text, NULL, 10) : plan->rounds;
  (void)state;
  if (sodium_init() < 0 || rounds == 0 || rounds > 100000) return -1;
  if (rounds > plan->rounds_max) rounds = plan->rounds_max;
  ran = campaign_run(&campaign, test_seed(), (unsigned)rounds, plan->breaks, plan->small_disk, &fault);
  return 0;
}

static int clear(void **state) {
  (void)state;
  campaign_clear(&campaign);
  return 0;
}

static void holds(enum property property) {
  if (ran == STATUS_NOT_FOUND) {
    print_message("skipped: %s\n", fault.message);
    skip();
  }
  if (ran != STATUS_OK) fail_msg("the campaign did not come to its end: %s", fault.message);
  assert_int_equal(campaign.oracle.violations[property], 0);
}

static void every_kill_met_a_server_at_work(void **state) {
  (void)state;
  holds(FOLD_IS_SOUND);
  assert_true(campaign.kills > 0);
  for (unsigned kind = 0; kind < break_kind_count && rounds >= break_kind_count; kind++)
    assert_true((plan->breaks & 1U << kind) == 0 || campaign.broke[kind] > 0);
  assert_true(campaign.oracle.submission_count > 0 && campaign.oracle.attempt_count > 0);
  assert_true(campaign.repeats > 0 && campaign.looks >= campaign.oracle.submission_count);
}

static void what_was_acknowledged_is_recovered(void **state) {
  (void)state;
  holds(ACKNOWLEDGED_IS_RECOVERED);
}

static void what_is_recovered_was_sent(void **state) {
  (void)state;
  holds(RECOVERED_WAS_SENT);
}

static void a_repeat_gets_the_first_answer(void **state) {
  (void)state;
  holds(REPEAT_GETS_FIRST_ANSWER);
}

static void every_log_folds_twice_to_the_same(void **state) {
  (void)state;
  holds(FOLD_IS_SOUND);
}

static void workers_get_their_attempts_back(void **state) {
  (void)state;
  holds(ATTEMPTS_COME_BACK);
}

static void a_failed_disk_stops_the_process(void **state) {
  (void)state;
  holds(FAILED_DISK_STOPS);
}

static void a_pause_or_a_full_disk_does_not(void **state) {
  (void)state;
  holds(SERVES_AGAIN);
  if (campaign.broke[BREAK_FULL] != 0) assert_true(campaign.refusals > 0);
}

static void all_work_comes_to_its_end(void **state) {
  (void)state;
  holds(WORK_COMES_TO_ITS_END);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kill_met_a_server_at_work),   cmocka_unit_test(what_was_acknowledged_is_recovered),
      cmocka_unit_test(what_is_recovered_was_sent),        cmocka_unit_test(a_repeat_gets_the_first_answer),
      cmocka_unit_test(every_log_folds_twice_to_the_same), cmocka_unit_test(workers_get_their_attempts_back),
      cmocka_unit_test(a_failed_disk_stops_the_process),   cmocka_unit_test(a_pause_or_a_full_disk_does_not),
      cmocka_unit_test(all_work_comes_to_its_end),
  };
  plan = NULL;
  for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++)
    if (argc <= 2 && strcmp(plans[i].name, argc == 2 ? argv[1] : plans[0].name) == 0) plan = &plans[i];
  if (plan == NULL) {
    (void)fprintf(stderr, "usage: orbit-crash [kill9 | faults | full-disk]\n");
    return exit_misuse;
  }
  return cmocka_run_group_tests_name(plan->name, tests, run, clear);
}
