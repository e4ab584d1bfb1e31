/* What the feed shows, and sets of types. */
#include "core/feed.h"
#include "support/support.h"

#include <string.h>

/* Of every type of the table, whether the feed shows it: a new type must take its place here. */
static void every_type_is_shown_or_not_by_its_object(void **context) {
  (void)context;
  static const char *const shown[] = {"task.", "attempt.", "evidence.", "queue.", "schedule."};
  unsigned types = 0;
  for (unsigned number = 0; number < EVENT_type_end + 10; number++) {
    const char *name = event_type_text((enum event_type)number);
    bool expected = false;
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
      if (strncmp(name, shown[i], strlen(shown[i])) == 0) expected = true;
    if (feed_shows_type((enum event_type)number) != expected) fail_msg("%u %s", number, name);
    types += expected;
  }
  assert_true(types >= 18);
}

static void names_read_and_print(void **context) {
  (void)context;
  static const struct {
    const char *names, *printed;
  } rows[] = {
      {"task.failed", "task.failed"},
      {"task.reviewed,task.succeeded", "task.succeeded,task.reviewed"},
      {"queue.paused,task.accepted,queue.created", "queue.created,queue.paused,task.accepted"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct feed_types types, again;
    char text[feed_types_text_bytes];
    assert_true(feed_types_parse(bytes_text(rows[i].names), &types));
    assert_int_equal(feed_types_format(&types, text), strlen(rows[i].printed));
    assert_string_equal(text, rows[i].printed);
    assert_true(feed_types_parse(bytes_text(text), &again) && feed_types_equal(&types, &again));
  }
}

static void other_names_do_not_read(void **context) {
  (void)context;
  static const char *const names[] = {"",
                                      ",",
                                      "task.failed,",
                                      ",task.failed",
                                      "task.failed,,task.succeeded",
                                      "task.failed,task.failed",
                                      "task.failed task.succeeded",
                                      "task.fail",
                                      "task.*",
                                      "*",
                                      "audit.recorded",
                                      "node.started",
                                      "credential.created",
                                      "application.changed",
                                      "namespace.created",
                                      "subscription.acked"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    struct feed_types types = {{7, 7}};
    if (feed_types_parse(bytes_text(names[i]), &types)) fail_msg("\"%s\" reads", names[i]);
    assert_true(types.bits[0] == 7 && types.bits[1] == 7);
  }
}

static void all_names_fit(void **context) {
  (void)context;
  struct feed_types all = {{0, 0}}, again;
  char text[feed_types_text_bytes];
  for (unsigned number = 1; number < EVENT_type_end; number++)
    if (feed_shows_type((enum event_type)number))
      assert_true(feed_types_add(&all, bytes_text(event_type_text((enum event_type)number))));
  size_t length = feed_types_format(&all, text);
  assert_true(feed_types_parse(bytes_of(text, length), &again) && feed_types_equal(&all, &again));
  assert_true(feed_types_add(&all, bytes_text("task.failed")) && feed_types_equal(&all, &again)); /* a set */
}

static void no_types_are_all_that_is_shown(void **context) {
  (void)context;
  struct feed_types none = {{0, 0}}, one;
  assert_true(feed_types_parse(bytes_text("task.failed"), &one));
  for (unsigned number = 0; number < EVENT_type_end + 3; number++) {
    assert_int_equal(feed_types_have(&none, (enum event_type)number), feed_shows_type((enum event_type)number));
    assert_int_equal(feed_types_have(&one, (enum event_type)number), number == EVENT_task_failed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_type_is_shown_or_not_by_its_object),
      cmocka_unit_test(names_read_and_print),
      cmocka_unit_test(other_names_do_not_read),
      cmocka_unit_test(all_names_fit),
      cmocka_unit_test(no_types_are_all_that_is_shown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
