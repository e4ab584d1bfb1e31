/* Schedules as users meet them: orbitctl's rows and liborbit's functions against the real server, and a restart between. */
#include "api/orbitctl_fixture.h"

#include <time.h>

#include "orbit.h"

static char admin_variable[320];
static const char *admin_environment[4];
static struct api_run_options as_admin = {.environment = admin_environment};

#define TEMPLATE \
  "{\"handler\":\"report.make\",\"handler_version\":\"1\",\"payload_version\":\"1\",\"payload\":{},\"task_timeout_ms\":60000}"

static int begin(void **state) {
  (void)start(state);
  (void)snprintf(admin_variable, sizeof admin_variable, "ORBIT_CREDENTIALS_FILE=%s", server.admin_credentials);
  admin_environment[0] = url_variable;
  admin_environment[1] = admin_variable;
  return 0;
}

/* ---- orbitctl ---- */

static void rows_of_orbitctl(void **state) {
  (void)state;
  struct api_run run;
  api_orbitctl(&as_admin, &run, "schedule", "preview", "--kind", "CRON", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin",
               "--after", "2027-03-27T12:00:00Z", "--count", "2", "-o", "json", NULL);
  expect_code(&run, 0);
  expect_in(run.out, "[\"2027-03-28T01:00:00Z\",\"2027-03-29T00:30:00Z\"]");
  api_run_clear(&run);
  api_orbitctl(&as_admin, &run, "schedule", "create", "--name", "nightly", "--queue", server.queue_id, "--kind", "CRON",
               "--cron", "30 2 * * *", "--template", TEMPLATE, "--overlap", "SERIAL", "--end-at", "2090-01-01T00:00:00Z", "-o",
               "json", NULL);
  expect_code(&run, 0);
  cleanup(guard_free) char *id = value_of(run.out, "schedule.id"), *zone = value_of(run.out, "schedule.timezone");
  assert_string_equal(zone, "UTC");
  api_run_clear(&run);
  api_orbitctl(&as_admin, &run, "schedule", "change", id, "--revision", "1", "--end-at", "none", "--missed", "ALL",
               "--catch-up-limit", "3", NULL);
  expect_code(&run, 0);
  expect_in(run.out, "catch_up_limit  3");
  api_run_clear(&run);
  api_orbitctl(&as_admin, &run, "schedule", "pause", id, "--reason", "holidays", NULL);
  expect_code(&run, 0);
  api_run_clear(&run);
  api_orbitctl(&as_admin, &run, "schedule", "resume", id, NULL);
  expect_code(&run, 0);
  api_run_clear(&run);
  api_orbitctl(&as_admin, &run, "schedule", "list", NULL);
  expect_code(&run, 0);
  expect_in(run.out, "30 2 * * *");
  expect_in(run.out, "T02:30:00");
  api_run_clear(&run);
  api_orbitctl(&as_admin, &run, "schedule", "triggers", id, "-o", "json", NULL);
  expect_code(&run, 0);
  expect_in(run.out, "\"items\":[]");
  api_run_clear(&run);
  api_orbitctl(&as_admin, &run, "schedule", "delete", id, NULL);
  expect_code(&run, 0);
  expect_in(run.out, "deleted");
  api_run_clear(&run);
  api_orbitctl(&as_admin, &run, "schedule", "get", id, NULL);
  expect_code(&run, 1);
  expect_in(run.err, "NOT_FOUND");
  api_run_clear(&run);
  api_orbitctl(&as_admin, &run, "schedule", "create", "--name", "x", "--queue", server.queue_id, "--kind", "CRON", "--cron",
               "61 * * * *", "--template", TEMPLATE, NULL);
  expect_code(&run, 1);
  expect_in(run.err, "minute, character 1: 61 is not within 0 and 59");
  api_run_clear(&run);
}

/* ---- liborbit ---- */

static struct orbit_client *admin_client(void) {
  struct orbit_client_options options = ORBIT_CLIENT_OPTIONS_INIT;
  struct orbit_client *client = NULL;
  options.url = server.url;
  options.token = server.admin_token;
  assert_int_equal(orbit_client_new(&options, &client, NULL), ORBIT_OK);
  return client;
}

static struct orbit_task_request task_of_schedule(void) {
  struct orbit_task_request task = ORBIT_TASK_REQUEST_INIT;
  task.queue_id = server.queue_id;
  task.handler = "report.make";
  task.handler_version = "1";
  task.payload_version = "1";
  task.payload = "{\"n\":1.10}";
  task.payload_size = strlen(task.payload);
  task.task_timeout_ms = 60000;
  return task;
}

/* Until it has as many triggers; the caller frees. */
static struct orbit_trigger_list *wait_for_triggers(struct orbit_client *client, const char *id, size_t count) {
  for (unsigned tries = 0; tries < 3000; tries++) {
    struct orbit_trigger_list *list = NULL;
    assert_int_equal(orbit_list_triggers(client, id, 100, NULL, &list, NULL), ORBIT_OK);
    if (list->count >= count) return list;
    orbit_trigger_list_free(list);
    (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
  fail_msg("%zu triggers never came", count);
  return NULL;
}

static void liborbit_previews(void **state) {
  (void)state;
  const struct {
    struct orbit_preview_request request;
    int status;
    const char *field;
    size_t count;
    int64_t first, last;
  } rows[] = {
      {{.interval_ms = 1000, .after = 1800000000000000, .count = 3}, ORBIT_OK, NULL, 3, 1800000001000000, 1800000003000000},
      {{.interval_ms = 1000, .after = 1800000000000000}, ORBIT_OK, NULL, 10, 1800000001000000, 1800000010000000},
      {{.interval_ms = 1000, .after = 1800000000000000, .count = 100}, ORBIT_OK, NULL, 100, 1800000001000000, 1800000100000000},
      {{.cron = "0 0 1 1 *", .after = 1767225600000000, .count = 2}, ORBIT_OK, NULL, 2, 1798761600000000, 1830297600000000},
      {{.cron = "0 1 1 1 *", .timezone = "Europe/Berlin", .after = 1767225600000000, .count = 1},
       ORBIT_OK,
       NULL,
       1,
       1798761600000000,
       1798761600000000},
      {{.count = 1}, ORBIT_INVALID_ARGUMENT, "/cron", 0, 0, 0},
      {{.cron = "@daily", .interval_ms = 1000, .count = 1}, ORBIT_INVALID_ARGUMENT, "/cron", 0, 0, 0},
      {{.interval_ms = 1000, .timezone = "UTC", .count = 1}, ORBIT_INVALID_ARGUMENT, "/timezone", 0, 0, 0},
      {{.interval_ms = 999, .count = 1}, ORBIT_INVALID_ARGUMENT, "/interval_ms", 0, 0, 0},
      {{.interval_ms = 1000, .count = 101}, ORBIT_INVALID_ARGUMENT, "/count", 0, 0, 0},
      {{.interval_ms = 1000, .after = 1, .count = 1}, ORBIT_INVALID_ARGUMENT, "/after", 0, 0, 0},
      {{.cron = "61 * * * *", .count = 1}, ORBIT_REFUSED, "/cron", 0, 0, 0}, /* by the server */
      {{.cron = "0 0 30 2 *", .count = 1}, ORBIT_REFUSED, "/cron", 0, 0, 0}, /* the thirtieth of February */
      {{.cron = "@daily", .timezone = "Mars/Olympus"}, ORBIT_REFUSED, "/timezone", 0, 0, 0},
  };
  struct orbit_client *client = admin_client();
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct orbit_preview_request request = rows[i].request;
    struct orbit_preview *preview = NULL;
    struct orbit_error error;
    request.size = sizeof request;
    int status = orbit_preview_schedule(client, &request, &preview, &error);
    if (status != rows[i].status) fail_msg("row %u: %s: %s", i, error.field, error.message);
    if (rows[i].field != NULL) {
      assert_string_equal(error.field, rows[i].field);
      assert_null(preview);
      continue;
    }
    assert_int_equal(preview->count, rows[i].count);
    assert_int_equal(preview->times[0], rows[i].first);
    assert_int_equal(preview->times[preview->count - 1], rows[i].last);
    orbit_preview_free(preview);
  }
  orbit_client_free(client);
}

static void functions_of_liborbit(void **state) {
  (void)state;
  struct orbit_client *client = admin_client();
  struct orbit_error error;
  struct orbit_schedule *schedule = NULL, *read = NULL;
  struct orbit_schedule_list *list = NULL;
  struct orbit_task_request task = task_of_schedule();
  struct orbit_schedule_request request = ORBIT_SCHEDULE_REQUEST_INIT;
  assert_int_equal(orbit_create_schedule(client, "s", &request, &schedule, &error), ORBIT_INVALID_ARGUMENT);
  assert_string_equal(error.field, "/name");
  request.name = "often";
  request.task = &task;
  request.interval_ms = 1000;
  request.overlap = "SKIP";
  task.available_at = INT64_C(2000000000000000);
  assert_int_equal(orbit_create_schedule(client, "s", &request, &schedule, &error), ORBIT_INVALID_ARGUMENT);
  assert_string_equal(error.field, "/template");
  task.available_at = 0;
  assert_int_equal(orbit_create_schedule(client, "s", &request, &schedule, &error), ORBIT_OK);
  assert_string_equal(schedule->kind, "INTERVAL");
  assert_int_equal(schedule->next_at, 0);
  struct orbit_trigger_list *triggers = wait_for_triggers(client, schedule->id, 2);
  assert_string_equal(triggers->items[triggers->count - 1]->outcome, "SUBMITTED"); /* the first; its task waits */
  assert_string_equal(triggers->items[0]->outcome, "SKIPPED_OVERLAP");
  assert_null(triggers->items[0]->task_id);
  orbit_trigger_list_free(triggers);
  assert_int_equal(orbit_get_schedule(client, schedule->id, &read, NULL), ORBIT_OK);
  assert_true(read->next_at > 0 && read->last.scheduled_at > 0 && read->last.outcome != NULL);
  orbit_schedule_free(read);
  assert_int_equal(orbit_list_schedules(client, 0, NULL, &list, NULL), ORBIT_OK);
  assert_int_equal(list->count, 1);
  assert_string_equal(list->items[0]->id, schedule->id);
  orbit_schedule_list_free(list);

  struct orbit_schedule_change change = ORBIT_SCHEDULE_CHANGE_INIT;
  change.expected_revision = 1;
  change.interval_ms = 2000;
  change.end_at = -1;
  change.task = &task;
  assert_int_equal(orbit_change_schedule(client, "c", schedule->id, &change, &read, NULL), ORBIT_OK);
  assert_int_equal(read->interval_ms, 2000);
  orbit_schedule_free(read);
  assert_int_equal(orbit_pause_schedule(client, "p", schedule->id, "holidays", &read, NULL), ORBIT_OK);
  assert_true(read->paused);
  orbit_schedule_free(read);
  assert_int_equal(orbit_resume_schedule(client, "r", schedule->id, NULL, &read, NULL), ORBIT_OK);
  assert_false(read->paused);
  orbit_schedule_free(read);
  assert_int_equal(orbit_delete_schedule(client, "d", schedule->id, NULL, &read, NULL), ORBIT_OK);
  assert_true(read->deleted);
  orbit_schedule_free(read);
  assert_int_equal(orbit_get_schedule(client, schedule->id, &read, &error), ORBIT_REFUSED);
  assert_int_equal(error.http_status, 404);
  orbit_schedule_free(schedule);
  orbit_client_free(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_of_orbitctl),
      cmocka_unit_test(liborbit_previews),
      cmocka_unit_test(functions_of_liborbit),
  };
  return cmocka_run_group_tests(tests, begin, stop);
}
