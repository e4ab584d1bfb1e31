/* orbit-crash: kill -9 under load, again and again (CRASH_ROUNDS, 10), and nothing that was ever answered may be lost, nothing
 * may happen that was not asked for. What it shows is the process's death; a power cut it cannot show. */
#include <sodium.h>
#include <stdlib.h>

#include "campaign.h"
#include "support/support.h"

static struct campaign campaign;
static struct fault fault;
static enum status ran;

static int run(void **state) {
  const char *text = getenv("CRASH_ROUNDS");
  unsigned long rounds = text != NULL ? strtoul(text, NULL, 10) : 10;
  (void)state;
  if (sodium_init() < 0 || rounds == 0 || rounds > 100000) return -1;
  ran = campaign_run(&campaign, test_seed(), (unsigned)rounds, &fault);
  return 0;
}

static int clear(void **state) {
  (void)state;
  campaign_clear(&campaign);
  return 0;
}

static void holds(enum property property) {
  if (ran != STATUS_OK) fail_msg("the campaign did not come to its end: %s", fault.message);
  assert_int_equal(campaign.oracle.violations[property], 0);
}

static void every_kill_met_a_server_at_work(void **state) {
  (void)state;
  holds(FOLD_IS_SOUND);
  assert_true(campaign.kills > 0);
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

static void all_work_comes_to_its_end(void **state) {
  (void)state;
  holds(WORK_COMES_TO_ITS_END);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kill_met_a_server_at_work),   cmocka_unit_test(what_was_acknowledged_is_recovered),
      cmocka_unit_test(what_is_recovered_was_sent),        cmocka_unit_test(a_repeat_gets_the_first_answer),
      cmocka_unit_test(every_log_folds_twice_to_the_same), cmocka_unit_test(workers_get_their_attempts_back),
      cmocka_unit_test(all_work_comes_to_its_end),
  };
  return cmocka_run_group_tests_name("kill9", tests, run, clear);
}
